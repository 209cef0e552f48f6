// cairnd: the node daemon. Arguments, settings, the way into the background, the keeper; then Daemon.
#include <malloc.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "base/log.hpp"
#include "base/trace.hpp"
#include "daemon/daemon.hpp"
#include "daemon/keeper.hpp"
#include "daemon/manual.hpp"
#include "world/real/memory.hpp"

namespace {

using namespace cairn;

struct Arguments {
    bool foreground = false;
    DaemonPlace place;
};

[[noreturn]] void leave(Exit code, const std::string& text = {}) {
    if (!text.empty()) std::fprintf(stderr, "cairnd: %s\n", text.c_str());
    std::fflush(nullptr);
    ::_exit(static_cast<int>(code));
}

[[noreturn]] void print(const std::string& text) {
    if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) leave(Exit::usage, "cannot write the output");
    leave(Exit::fine);
}

Arguments parse(int argc, char** argv) {
    Arguments arguments;
    for (int i = 1; i < argc; ++i) {
        const std::string option = argv[i];
        std::string* value = option == "--node"         ? &arguments.place.node
                             : option == "--scratch"    ? &arguments.place.scratch
                             : option == "--persistent" ? &arguments.place.persistent
                                                        : nullptr;
        if (option == "--help") {
            print(daemon_help());
        } else if (option == "--man") {  // for the build
            print(daemon_manual_page());
        } else if (option == "--version") {
            print("cairnd " CAIRN_VERSION "\n");
        } else if (option == "--foreground") {
            arguments.foreground = true;
        } else if (option == "--io-node") {
            arguments.place.io_node = true;
        } else if (!value) {
            leave(Exit::usage, "unknown argument '" + option + "'; --help lists all");
        } else if (i + 1 == argc || !*argv[i + 1]) {
            leave(Exit::usage, option + " needs a value");
        } else {
            *value = argv[++i];
        }
    }
    return arguments;
}

// Everything of the daemon's life, in the process that stays.
Exit live(DaemonOptions options, const Settings& settings, bool foreground, Report report) {
    const auto cannot_start = [&](const Status& status) {
        log_error("can-not-start", {{"why", status}});
        if (foreground) std::fprintf(stderr, "cairnd: %s\n", status.to_string().c_str());
        report.failed(Exit::cannot_start, status.to_string());
        return Exit::cannot_start;
    };
    Result<Door> door = Door::open(options.scratch_directory, options.scratch);
    if (!door.ok()) return cannot_start(door.status());
    const Result<bool> locked = door->lock();
    if (!locked.ok()) return cannot_start(locked.status());
    if (!*locked) {
        if (foreground) std::fprintf(stderr, "cairnd: another daemon runs in %s\n", options.scratch.root.c_str());
        report.ready();  // there is one
        return Exit::fine;
    }
    const std::vector<Door::Moved> strangers = door->put_strangers_aside();
    if (foreground)
        log_to_descriptor(2, options.log_level);
    else if (const Status opened = log_to_file(options.log_file, options.log_level); !opened.ok())
        return cannot_start(opened);
    for (const Door::Moved& each : strangers) log_warning("put-aside", {{"path", each.path}, {"to", each.to}, {"why", "not a file of the daemon's own"}});
    survive_lost_bytes();
    if (!options.trace_file.empty())
        if (const Status traced = trace_open(options.trace_file, "cairnd"); !traced.ok())
            log_warning("no-trace", {{"why", traced}});
    fit_memory(options, settings);
    Result<std::unique_ptr<Daemon>> daemon = Daemon::start(std::move(options), std::move(door).value());
    if (!daemon.ok()) return cannot_start(daemon.status());
    report.ready();
    const Exit code = (*daemon)->run();
    ::_exit(static_cast<int>(code));  // not through destructors: a thread stuck in a dead file system would hold them
}

}  // namespace

int main(int argc, char** argv) {
    const Arguments arguments = parse(argc, argv);
    const Result<Config> config = load_config();
    if (!config.ok()) leave(Exit::usage, config.status().text());
    Result<DaemonOptions> options = daemon_options(config->settings, arguments.place);
    if (!options.ok()) leave(Exit::usage, options.status().text());
    if (arguments.foreground) options->log_file.clear();
    Report report;
    if (!arguments.foreground) {
        Result<Report> detached = detach(options->start_wait_ms);
        if (!detached.ok()) leave(Exit::cannot_start, detached.status().to_string());
        report = std::move(detached).value();
    }
    options->stepping.own_session = !arguments.foreground;
    settle();
    if (!arguments.foreground && config->settings.daemon.restart) {
        const Result<Life*> life = keep(report, options->log_file, options->log_level, options->scratch.keeper());
        if (!life.ok()) {
            report.failed(Exit::cannot_start, life.status().to_string());
            leave(Exit::cannot_start);
        }
        options->life = *life;
    }
    ::mallopt(M_ARENA_MAX, 2);  // many threads, little of it theirs
    const Exit code = live(std::move(options).value(), config->settings, arguments.foreground, std::move(report));
    leave(code);
}
