// `cairn stop`: ends the daemons of this host, each after it finished what it can, and tells what is left in scratch: also where no daemon runs any more.
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
#include <set>
#include <string>
#include <thread>

#include "base/text_table.hpp"
#include "base/units.hpp"
#include "cli/daemons.hpp"
#include "cli/series.hpp"

namespace cairn::cli {

namespace {

using Json = nlohmann::ordered_json;

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
        console.out << "  left in scratch: " << for_terminal(version_text(key)) << "\n";
    if (outcome.keeper)
        console.out << "stopped the keeper of one that had died, which was about to start another (process " << *outcome.keeper
                    << "); what was sealed stays in scratch\n";
    console.out.flush();
}

// Of the versions in these nodes' scratch those that are not committed, and that a restart may want. Nobody is asked: what is on disk is the truth.
Result<std::vector<VersionKey>> left_in(Console& console, const Arguments& arguments, const std::vector<ScratchLayout>& places) {
    std::vector<VersionKey> left;
    if (places.empty()) return left;
    TRY_ASSIGN(Place place, Place::open(arguments));
    const ScratchView scratch = read_scratch(place, places);
    std::vector<Status> problems = scratch.problems;
    std::set<std::string> names;
    for (const ScratchImage& image : scratch.images) names.insert(image.key.name);
    for (const std::string& name : names) {
        const Result<Series> series = read_series(place, scratch, name, Manifests::heads);
        if (!series.ok()) problems.push_back(series.status().within("whether the images of " + name + " in scratch are committed"));
        if (!series.ok()) continue;
        for (const Seen& seen : series->versions)
            if (in_scratch_only(seen) && series->may_be_current(seen)) left.push_back(seen.key);
    }
    for (const Status& problem : problems) console.err << "cairn stop: " << for_terminal(problem.text()) << "\n";
    return left;
}

struct Stops {
    std::vector<StopOutcome> outcomes;  // by node
    std::vector<Silent> silent;
    std::vector<ScratchLayout> empty;  // where one ran once
    std::vector<VersionKey> left;      // there
    std::size_t unfinished() const {
        std::set<VersionKey> all(left.begin(), left.end());  // one node may name what another has without a daemon
        for (const StopOutcome& outcome : outcomes) all.insert(outcome.unfinished.begin(), outcome.unfinished.end());
        return all.size();
    }
    bool stopped_one() const {
        return std::any_of(outcomes.begin(), outcomes.end(), [](const StopOutcome& outcome) { return outcome.pid != 0; });
    }
};

Stops stop_all(Console& console, const Settings& settings, const std::vector<ScratchLayout>& places, std::uint64_t wait_ms) {
    Stops stops;
    const auto take = [&](Told<StopOutcome> told) {
        for (auto& [place, answer] : told) {
            if (!answer.ok()) stops.silent.push_back({place, answer.status()});
            if (!answer.ok()) continue;
            if ((!*answer || (*answer)->pid == 0) && ::access(place.root.c_str(), F_OK) == 0) stops.empty.push_back(place);
            if (!*answer) continue;
            if (!console.json) tell_stopped(console, **answer);
            stops.outcomes.push_back(**std::move(answer));
        }
    };
    // All at once: they finish together what they hold together.
    ask_all<StopOutcome>(places, [&](const ScratchLayout& place) { return stop_daemon(place, settings, wait_ms); }, take);
    std::sort(stops.outcomes.begin(), stops.outcomes.end(), [](const StopOutcome& a, const StopOutcome& b) { return a.node < b.node; });
    return stops;
}

Json json_of(const std::vector<VersionKey>& keys) {
    Json list = Json::array();
    for (const VersionKey& key : keys) list.push_back({{"checkpoint", key.name}, {"version", key.version}});
    return list;
}

Json json_of(const Stops& stops) {
    Json document = {{"stopped", Json::array()}, {"keepers", Json::array()}};
    for (const StopOutcome& outcome : stops.outcomes) {
        if (outcome.keeper) document["keepers"].push_back(*outcome.keeper);
        if (outcome.pid == 0) continue;
        document["stopped"].push_back({{"node", outcome.node}, {"pid", outcome.pid}, {"unfinished", json_of(outcome.unfinished)}});
    }
    document["left"] = json_of(stops.left);
    document["silent"] = silent_json(stops.silent);
    return document;
}

// A name that never was a node's here is mistyped, or meant another host. Of a node whose daemon has ended there is only nothing to do.
Status check_node(const Settings& settings, const Arguments& arguments) {
    const std::vector<std::string> nodes = scratch_nodes(settings);
    if (!arguments.given("node") || std::find(nodes.begin(), nodes.end(), arguments.text("node")) != nodes.end()) return {};
    std::string there;
    for (const std::string& node : nodes) there += (there.empty() ? "" : ", ") + node;
    return not_found("no daemon of node " + arguments.text("node") + " was ever started by this user on this host for " + settings.paths.persistent + " (scratch " +
                     settings.paths.scratch + "); " + (there.empty() ? "no node is here" : "the nodes here: " + there));
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
    TRY(check_node(config.settings, arguments));
    Stops stops = stop_all(console, config.settings, places, wait_ms);
    Result<std::vector<VersionKey>> left = left_in(console, arguments, stops.empty);
    if (left.ok()) stops.left = *std::move(left);
    if (console.json) {
        console.document(json_of(stops).dump(2, ' ', false, Json::error_handler_t::replace));
    } else if (!stops.stopped_one() && stops.silent.empty()) {
        console.out << "no daemon runs here\n";
    }
    for (const VersionKey& key : stops.left)
        if (!console.json) console.out << "  left in scratch, without a daemon: " << for_terminal(version_text(key)) << "\n";
    TRY(silent_status(stops.silent));
    if (!left.ok()) return left.status().within("what is left in scratch can not be told");
    const std::size_t unfinished = stops.unfinished();
    if (unfinished == 0) return {};
    const bool one = unfinished == 1;
    return deadline_passed(plural(unfinished, "version") + " not committed; " + (one ? "it stays" : "they stay") + " in scratch, and the next daemon finishes " +
                           (one ? "it" : "them") +
                           (stops.left.empty() ? " (`cairn start`, or the next job); the daemon's log says why (\"unfinished\")" : ": `cairn start` on each node, then `cairn stop` again"));
}

}  // namespace

const Command stop_command = {
    "stop",
    "stop daemons on this host, after they finished what they can",
    "Asks the daemons of this user on this host that work for this persistent directory (all virtual nodes, whatever CAIRN_NODE says, or --node) "
    "to finish and end, all at the same time.\n"
    "What failed is tried again, at once and for as long as they may finish, but for what some rank never sealed, or needs a node that stays away. What is\n"
    "not committed then stays in scratch and is named: also where no daemon runs any more, since all were killed.",
    {{"--node", OptionKind::text, "NAME", "Only this node's daemon."},
     {"--wait", OptionKind::text, "TIME",
      "How long it may finish, instead of daemon.stop_wait_ms; \"0\": not at all."}},
    {{Code::deadline, "stopped, or no daemon runs, but versions are left in scratch; or a daemon did not answer, and the others are stopped"},
     {Code::not_found, "no daemon of that --node was ever started here"}},
    true,
    &run_stop,
};

}  // namespace cairn::cli
