// `cairn start` and `cairn stop`: a node's daemon by hand or from a job script.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <thread>

#include "base/text_table.hpp"
#include "base/units.hpp"
#include "cli/daemons.hpp"
#include "client/daemon_link.hpp"
#include "format/names.hpp"

namespace cairn::cli {

namespace {

using Json = nlohmann::ordered_json;

// One that runs ranks' sessions, or was started by them, does not become an I/O node.
Status check_io_node(DaemonLink& link, std::uint64_t wait_ms) {
    TRY_ASSIGN(const control::NodeStatus status,
               link.ask_for<control::NodeStatus>(control::GetStatus{}, Deadline::in_ms(wait_ms)));
    if (status.io_node) return {};
    return {Code::already_exists, "the daemon of node " + status.node + " (process " + std::to_string(status.pid) +
                                      ") runs already, and is not an I/O node: `cairn stop` first, or take another node"};
}

Status run_start(Console& console, const Arguments& arguments) {
    TRY_ASSIGN(const Config config, load_settings(arguments));
    const Settings& settings = config.settings;
    DaemonHome home{settings.paths.scratch,
                    settings.paths.persistent,
                    arguments.given("node") ? arguments.text("node") : this_node(),
                    settings.daemon.program,
                    {},
                    arguments.given("io-node")};
    TRY(check_name(home.node).within("the node's name (--node, CAIRN_NODE, or the host's name)"));
    if (!config.file.empty()) home.environment.push_back("CAIRN_CONFIG=" + config.file);
    const ScratchLayout scratch = ScratchLayout::of(home.scratch, ::geteuid(), home.node, home.persistent);
    const std::uint64_t wait_ms = settings.daemon.start_wait_ms;
    TRY_ASSIGN(const std::optional<Reached> before, reach(scratch, wait_ms));
    const bool ran_before = before.has_value();
    DaemonLink link(home, false, wait_ms);
    TRY(link.ensure(Deadline::in_ms(wait_ms)));
    if (home.io_node) TRY(check_io_node(link, wait_ms));
    const control::Welcome& welcome = link.welcome();
    if (console.json) {
        const Json document = {{"node", welcome.node},
                               {"pid", welcome.pid},
                               {"address", welcome.address},
                               {"started", !ran_before},
                               {"io_node", home.io_node},
                               {"scratch", scratch.root}};
        console.document(document.dump(2, ' ', false, Json::error_handler_t::replace));
        return {};
    }
    console.out << "cairnd of " << (home.io_node ? "I/O node " : "node ") << for_terminal(welcome.node) << (ran_before ? " runs already" : " runs")
                << ": process " << welcome.pid << ", address " << for_terminal(welcome.address) << "\n";
    return {};
}

struct StopOutcome {
    std::string node;
    std::uint64_t pid = 0;
    std::vector<VersionKey> unfinished;
};

// It answers just before it ends; whoever asks next should not meet it any more.
void wait_until_gone(const ScratchLayout& place, std::uint64_t pid) {
    for (int tries = 0; tries < 250; ++tries) {
        const Result<std::optional<Reached>> reached = reach(place, 1000);
        if (!reached.ok() || !*reached || (*reached)->welcome.pid != pid) return;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
}

// Where a daemon has died and its keeper waits to start another (src/daemon/keeper.hpp): the keeper's process, told to end.
// It locks its mark for as long as it waits, and the kernel tells whose a lock is.
std::optional<pid_t> stop_keeper(const ScratchLayout& place) {
    const int mark = ::open(place.keeper().c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (mark < 0) return std::nullopt;
    std::optional<pid_t> keeper;
    for (int tries = 0; tries < 250; ++tries) {
        struct flock held = {};
        held.l_type = F_WRLCK;
        held.l_whence = SEEK_SET;
        if (::fcntl(mark, F_GETLK, &held) != 0 || held.l_type == F_UNLCK) break;
        if (!keeper && held.l_pid > 1 && ::kill(held.l_pid, SIGTERM) == 0) keeper = held.l_pid;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    ::close(mark);
    return keeper;
}

Status run_stop(Console& console, const Arguments& arguments) {
    TRY_ASSIGN(const Config config, load_settings(arguments));
    std::uint64_t wait_ms = config.settings.daemon.stop_wait_ms;
    if (arguments.given("wait")) {
        const Result<std::uint64_t> wait_ns = parse_duration(arguments.text("wait"), 1'000'000'000);
        if (!wait_ns.ok()) return wait_ns.status().within("--wait '" + arguments.text("wait") + "'");
        wait_ms = *wait_ns / 1'000'000;
    }
    TRY_ASSIGN(const std::vector<ScratchLayout> places, chosen_daemons(config.settings, arguments));
    std::vector<StopOutcome> outcomes;
    std::vector<pid_t> keepers;
    std::vector<Silent> silent;
    std::size_t unfinished = 0;
    for (const ScratchLayout& place : places) {
        Result<std::optional<Reached>> found = reach(place, config.settings.daemon.start_wait_ms);
        if (!found.ok()) {
            silent.push_back({place, found.status()});
            continue;
        }
        std::optional<Reached> reached = std::move(found).value();
        if (const std::optional<pid_t> keeper = stop_keeper(place)) keepers.push_back(*keeper);  // also one that a client did not wait for
        if (!reached) continue;
        // It answers when it has finished what it can, so a while after wait_ms at most.
        const Deadline deadline = Deadline::in_ms(wait_ms + config.settings.deadlines.io_ms);
        Result<control::Stopped> stopped = reached->connection->ask_for<control::Stopped>(control::Stop{wait_ms}, deadline);
        if (!stopped.ok()) {
            silent.push_back({place, stopped.status().within(process_text(reached->connection->process()))});
            continue;
        }
        reached->connection.reset();
        wait_until_gone(place, reached->welcome.pid);
        unfinished += stopped->unfinished.size();
        outcomes.push_back({reached->welcome.node, reached->welcome.pid, std::move(stopped->unfinished)});
    }
    if (console.json) {
        Json document = {{"stopped", Json::array()}, {"keepers", keepers}};
        for (const StopOutcome& outcome : outcomes) {
            Json left = Json::array();
            for (const VersionKey& key : outcome.unfinished)
                left.push_back({{"checkpoint", key.name}, {"version", key.version}});
            document["stopped"].push_back(
                {{"node", outcome.node}, {"pid", outcome.pid}, {"unfinished", std::move(left)}});
        }
        document["silent"] = silent_json(silent);
        console.document(document.dump(2, ' ', false, Json::error_handler_t::replace));
    } else {
        for (const StopOutcome& outcome : outcomes) {
            console.out << "cairnd of node " << for_terminal(outcome.node) << " stopped (process " << outcome.pid
                        << ")\n";
            for (const VersionKey& key : outcome.unfinished)
                console.out << "  left in scratch: " << for_terminal(key.name) << " version " << key.version << "\n";
        }
        if (outcomes.empty() && silent.empty()) console.out << "no daemon runs here\n";
        for (const pid_t keeper : keepers)
            console.out << "stopped the keeper of one that had died, which was about to start another (process " << keeper
                        << "); what was sealed stays in scratch\n";
    }
    TRY(silent_status(silent));
    if (unfinished == 0) return {};
    return deadline_passed(plural(unfinished, "version") + " not committed in time; " +
                           (unfinished == 1 ? "it stays" : "they stay") + " in scratch and the next daemon finishes " +
                           (unfinished == 1 ? "it" : "them"));
}

}  // namespace

const Command start_command = {
    "start",
    "start this node's daemon, as a job script does",
    "Clients start the daemon when they need it; but where a launcher kills everything that a step leaves behind "
    "(Slurm), the job script starts it\n"
    "first: docs/jobs.md has one. Does nothing when it runs. Returns when it answers.",
    {{"--node", OptionKind::text, "NAME", "The node's name, instead of CAIRN_NODE or the host's."},
     {"--io-node", OptionKind::flag, "",
      "As a dedicated I/O node: it writes for jobs without ranks here whose setting flush.io_nodes says so, and ends with `cairn stop` only."}},
    {{Code::unavailable, "the daemon can not be started; the text says what it said"},
     {Code::already_exists, "it runs already, but not as the I/O node that was asked for"}},
    true,
    &run_start,
};

const Command stop_command = {
    "stop",
    "stop daemons on this host, after they finished what they can",
    "Asks the daemons of this user on this host that work for this persistent directory (all virtual nodes, or --node) "
    "to finish and end. What is not\n"
    "committed in time stays in scratch and is named.",
    {{"--node", OptionKind::text, "NAME", "Only this node's daemon."},
     {"--wait", OptionKind::text, "TIME",
      "How long it may finish, instead of daemon.stop_wait_ms; \"0\": not at all."}},
    {{Code::deadline, "stopped, but versions are left in scratch; or a daemon did not answer, and the others are stopped"}},
    true,
    &run_stop,
};

}  // namespace cairn::cli
