// `cairn start` and `cairn stop`: a node's daemon by hand or from a job script.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
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
    const Result<std::optional<Reached>> before = reach(scratch, wait_ms);
    if (!before.ok()) return silent_status({{scratch, before.status()}});
    const bool ran_before = before->has_value();
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
    std::optional<pid_t> keeper;  // that was told to end
    bool held = false;            // it has finished and its process does not end: a file system that hangs keeps one of its threads
    std::string node;
    std::uint64_t pid = 0;
    std::vector<VersionKey> unfinished;
};

constexpr std::uint64_t end_wait_ms = 5'000;  // for a process that has said that it is done

// It answers just before it ends: its memory is given back, and its lock is free, when it has. Its process tells that best; where that can not be seen from here
// (a container), or by an old kernel, its lock.
class DaemonsEnd {
  public:
    DaemonsEnd(const ScratchLayout& place, pid_t process)
        : lock_(::open(place.lock().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)),
          process_(process > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, process, 0)) : -1) {}
    // False when it has not ended in time.
    bool wait(Deadline deadline) const {
        Backoff backoff;
        do {
            if (has_ended()) return true;
        } while (backoff.pause(deadline));
        return has_ended();
    }

  private:
    bool has_ended() const {
        pollfd ended{process_.get(), POLLIN, 0};
        if (process_) return ::poll(&ended, 1, 0) == 1;
        if (!lock_ || ::flock(lock_.get(), LOCK_SH | LOCK_NB) != 0) return !lock_;
        ::flock(lock_.get(), LOCK_UN);
        return true;
    }
    files::Descriptor lock_, process_;
};

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

// Nothing where neither a daemon lives nor a keeper.
Result<std::optional<StopOutcome>> stop_daemon(const ScratchLayout& place, const Settings& settings, std::uint64_t wait_ms) {
    TRY_ASSIGN(std::optional<Reached> reached, reach(place, settings.daemon.start_wait_ms));
    StopOutcome outcome;
    outcome.keeper = stop_keeper(place);  // also one that a client did not wait for
    if (!reached) return outcome.keeper ? std::optional(std::move(outcome)) : std::nullopt;
    const pid_t process = reached->connection->process();
    const DaemonsEnd end(place, process);
    // It answers when it has finished what it can, so a while after wait_ms at most.
    const Deadline deadline = Deadline::in_ms(wait_ms + settings.deadlines.io_ms);
    Result<control::Stopped> stopped = reached->connection->ask_for<control::Stopped>(control::Stop{wait_ms}, deadline);
    if (!stopped.ok()) return stopped.status().within(process_text(process));
    reached->connection.reset();
    outcome.held = !end.wait(Deadline::in_ms(end_wait_ms));
    outcome.node = reached->welcome.node;
    outcome.pid = reached->welcome.pid;
    outcome.unfinished = std::move(stopped->unfinished);
    return std::optional(std::move(outcome));
}

void tell_stopped(Console& console, const StopOutcome& outcome) {
    if (outcome.pid != 0) console.out << "cairnd of node " << for_terminal(outcome.node) << " stopped (process " << outcome.pid << ")\n";
    if (outcome.held) console.out << "  its process has not ended yet: a file system that does not answer holds it, and what it gave back of scratch\n";
    for (const VersionKey& key : outcome.unfinished)
        console.out << "  left in scratch: " << for_terminal(key.name) << " version " << key.version << "\n";
    if (outcome.keeper)
        console.out << "stopped the keeper of one that had died, which was about to start another (process " << *outcome.keeper
                    << "); what was sealed stays in scratch\n";
    console.out.flush();
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
    std::vector<Silent> silent;
    std::size_t unfinished = 0;
    const auto take = [&](Told<StopOutcome> told) {
        for (auto& [place, answer] : told) {
            if (!answer.ok()) silent.push_back({place, answer.status()});
            if (!answer.ok() || !*answer) continue;
            if (!console.json) tell_stopped(console, **answer);
            unfinished += (*answer)->unfinished.size();
            outcomes.push_back(**std::move(answer));
        }
    };
    // All at once: they finish together what they hold together.
    ask_all<StopOutcome>(places, [&](const ScratchLayout& place) { return stop_daemon(place, config.settings, wait_ms); }, take);
    std::sort(outcomes.begin(), outcomes.end(), [](const StopOutcome& a, const StopOutcome& b) { return a.node < b.node; });
    if (console.json) {
        Json document = {{"stopped", Json::array()}, {"keepers", Json::array()}};
        for (const StopOutcome& outcome : outcomes) {
            if (outcome.keeper) document["keepers"].push_back(*outcome.keeper);
            if (outcome.pid == 0) continue;
            Json left = Json::array();
            for (const VersionKey& key : outcome.unfinished)
                left.push_back({{"checkpoint", key.name}, {"version", key.version}});
            document["stopped"].push_back(
                {{"node", outcome.node}, {"pid", outcome.pid}, {"unfinished", std::move(left)}});
        }
        document["silent"] = silent_json(silent);
        console.document(document.dump(2, ' ', false, Json::error_handler_t::replace));
    } else if (std::none_of(outcomes.begin(), outcomes.end(), [](const StopOutcome& outcome) { return outcome.pid != 0; }) && silent.empty()) {
        console.out << "no daemon runs here\n";
    }
    TRY(silent_status(silent));
    if (unfinished == 0) return {};
    return deadline_passed(plural(unfinished, "version") + " not committed; " + (unfinished == 1 ? "it stays" : "they stay") +
                           " in scratch and the next daemon finishes " + (unfinished == 1 ? "it" : "them") +
                           "; the daemon's log says why (\"unfinished\")");
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
    "to finish and end, all at the same time.\n"
    "What failed is tried again, at once and for as long as they may finish, but for what some rank never sealed, or needs a node that stays away. What is\n"
    "not committed then stays in scratch and is named.",
    {{"--node", OptionKind::text, "NAME", "Only this node's daemon."},
     {"--wait", OptionKind::text, "TIME",
      "How long it may finish, instead of daemon.stop_wait_ms; \"0\": not at all."}},
    {{Code::deadline, "stopped, but versions are left in scratch; or a daemon did not answer, and the others are stopped"}},
    true,
    &run_stop,
};

}  // namespace cairn::cli
