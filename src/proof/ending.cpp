// Once faults stopped: what is sealed commits, everybody is told, nothing is left over, and all comes to rest.
#include <algorithm>

#include "proof/promise.hpp"
#include "copies/scratch.hpp"
#include "proof/steps.hpp"
#include "format/names.hpp"
#include "world/sim/network.hpp"

namespace cairn::testing {

namespace {

// What the limits of a node add to a block on each of its ways there: never more than what ends every such wait (pace.hpp).
Nanos held_back(const SeedRun& run, const PaceLimits& limits) {
    const Nanos most = run.cluster.options.settings.io_wait / 2;
    if (limits.closed) return most;
    double slowest = 1e18;
    for (const double rate : {limits.in_bytes_s, limits.out_bytes_s, limits.memory_bytes_s / 3})
        if (rate > 0) slowest = std::min(slowest, rate);
    return std::min(most, static_cast<Nanos>(static_cast<double>(run.cluster.options.block_bytes) / slowest * static_cast<double>(second)));
}

// How long bytes take at the slowest of what they pass on their way from scratch to a part: storage, one target, cards; and what nodes let move, block after
// block, when it is fetched, answered, and written at both ends.
Nanos time_of(const SeedRun& run, std::uint64_t bytes) {
    const ClusterOptions& options = run.cluster.options;
    double slowest = std::min(options.model.persistent_rate, options.model.nic_rate);
    for (const double rate : options.model.target_rates) slowest = std::min(slowest, rate);
    Nanos each = 0;
    for (const Host& host : run.cluster.hosts)
        if (host.daemon) each = std::max(each, held_back(run, host.daemon->pace().limits()));
    return static_cast<Nanos>(static_cast<double>(bytes) / slowest * static_cast<double>(second)) + static_cast<Nanos>(4 * div_up(bytes, options.block_bytes)) * each;
}

// The versions that have not ended, and the next one, one after the other.
Nanos undisturbed(const SeedRun& run) {
    const FlushSettings& settings = run.cluster.options.settings;
    std::set<VersionKey> versions = {run.cluster.key(run.known.next_version)};
    for (const Host& host : run.cluster.hosts) {
        if (!host.daemon) continue;
        for (const VersionKey& key : host.daemon->versions())
            if (!host.daemon->state(key).final) versions.insert(key);
    }
    Nanos sum = 0;
    for (const VersionKey& key : versions) {
        std::uint64_t bytes = 0;
        for (Rank rank = 0; rank < run.cluster.ranks(); ++rank) bytes += div_up(run.cluster.options.image_bytes(rank, key.version), run.cluster.options.block_bytes) * run.cluster.options.block_bytes;
        sum += time_of(run, bytes) + 4 * settings.heartbeat + settings.peer_wait / 2;  // and for an I/O node that does not answer
    }
    return sum;
}

// Of all that anybody may be waiting for when faults stop: who looks at its scratch does so for a minute (cluster.cpp), and as long is the longest pause
// between attempts that fail (coordinator/coordinator.cpp).
Nanos longest_deadline(const SeedRun& run) {
    const FlushSettings& settings = run.cluster.options.settings;
    return std::max({settings.version_wait, settings.peer_wait, settings.io_wait, 60 * second});
}

// A node that crashed took sealed images with it.
bool lost_scratch(const SeedRun& run) {
    for (NodeIndex node = 0; node < run.cluster.hosts.size(); ++node) {
        const Host& host = run.cluster.hosts[node];
        if (!run.cluster.is_io_node(node) && !host.gone && (!host.daemon || !host.daemon->knows(run.cluster.roster.incarnation))) return true;
    }
    return false;
}

// Where nothing went wrong, nothing stays beside the manifest and the parts that it names.
void check_nothing_left_over(SeedRun& run) {
    const VersionKey key = run.cluster.key(run.known.next_version);
    run.cluster.sim.run_until(run.cluster.sim.now() + second);
    const auto newest = run.cluster.newest_committed();
    if (!newest.ok() || !*newest || (*newest)->key != key) return run.fail("the last version is not the newest");
    const std::vector<std::string>& roots = run.cluster.options.roots;
    bool has_index = false;
    for (std::uint32_t root = 0; root <= roots.size(); ++root) {
        const auto entries = run.cluster.sim.persistent().list(Layout::version_below(run.cluster.layout.root(roots, root), key));
        if (!entries.ok() && root != 0 && entries.code() == Code::not_found) continue;
        if (!entries.ok()) return run.fail("the last version's directory: " + entries.status().to_string());
        for (const DirectoryEntry& entry : *entries) {
            const std::optional<Id128> attempt_id = parse_attempt_of(entry.name);
            const bool ours = attempt_id && attempt_id->high == key.incarnation.high;
            const auto is_it = [&](const PartInfo& part) {
                const bool is_index = part.index_bytes != 0 && entry.name == part_index_file_name(part.file);
                return (part.file == entry.name || is_index) && part.root == root;
            };
            const bool named = std::any_of((*newest)->parts.begin(), (*newest)->parts.end(), is_it);
            if (ours && !named) return run.fail("something is left over beside the last version: " + entry.name);
            has_index |= entry.name == safetensors_index_name;
        }
    }
    if (run.cluster.options.layout == FileLayout::tensors && !has_index) run.fail("the last version's safetensors files have no index");
}

// A node that holds all it sealed of a version asks how it ended until it is told. What is published it could read for itself; that the job went back
// behind a version nobody publishes, and only the coordinator says so.
void check_all_told(SeedRun& run) {
    const auto untold = [&]() -> std::optional<std::string> {
        for (NodeIndex node = 0; node < run.cluster.hosts.size(); ++node) {
            if (run.cluster.is_io_node(node) || run.cluster.hosts[node].gone) continue;
            const Node& daemon = *run.cluster.hosts[node].daemon;
            for (const VersionKey& key : daemon.versions()) {
                const Host& coordinator = run.cluster.hosts[run.cluster.coordinator(key.incarnation)];
                // Where nobody is left to say so, what is published is to be found all the same.
                const bool ended = coordinator.gone ? run.known.reported.count(key) && !run.known.removed.count(key) : coordinator.daemon->state(key).final;
                bool holds_all = true;
                for (Rank rank = 0; rank < run.cluster.ranks(); ++rank) holds_all &= run.cluster.node_of(rank, key.incarnation) != node || daemon.image(key, rank) != nullptr;
                if (holds_all && ended && !daemon.state(key).final)
                    return "node " + std::to_string(node) + " was not told how a version ended: version " + std::to_string(key.version) + ": " +
                           (coordinator.gone ? "its coordinator is gone" : coordinator.daemon->state(key).failure.to_string());
            }
        }
        return std::nullopt;
    };
    if (run.cluster.sim.run_until([&] { return !untold(); }, run.cluster.sim.now() + longest_deadline(run))) return;
    if (const std::optional<std::string> who = untold()) run.fail(*who);
}

// All work comes to an end: nobody leads or flushes any more, what was asked for has come or is not waited for, and scratch can let go of what is
// committed. A buffer that waits for ever is a credit that is lost.
void check_rest(SeedRun& run) {
    const auto busy = [&]() -> std::optional<std::string> {
        for (const Host& host : run.cluster.hosts) {
            if (!host.daemon) continue;
            if (host.process->network().postings_open() != 0) return "a buffer waits for data that nobody will send";
            if (host.daemon->pace().under_way_in() + host.daemon->pace().under_way_out() != 0) return "data that nobody moves counts as under way";
            if (!host.daemon->idle()) return "a daemon never comes to rest";
            if (host.daemon->filling() > 0) return "a daemon waits for an image that nobody fills any more";
            if (host.daemon->counters().leading > 0) return "a daemon leads, and every version has ended";
            if (host.daemon->counters().sending > 0) return "a daemon sends data, and every version has ended";
        }
        return std::nullopt;
    };
    // Of a lost job something may be under way.
    (void)run.cluster.sim.run_until([&] { return !busy(); }, run.cluster.sim.now() + calm_span(run));
    if (const std::optional<std::string> why = busy()) return run.fail(*why);
    Status held;
    const auto all_let_go = [&] {
        for (Host& host : run.cluster.hosts) {
            if (!host.daemon) continue;
            for (const VersionKey& key : host.daemon->versions())
                for (Rank rank = 0; host.daemon->state(key).final && rank < run.cluster.ranks(); ++rank)
                    if (held = drop_image(run, host, key, rank); !held.ok()) return false;
        }
        return true;
    };
    if (run.cluster.sim.run_until(all_let_go, run.cluster.sim.now() + longest_deadline(run))) return;
    run.fail("scratch can not let go of a version that has ended: " + held.to_string());
}

// A node's images may have left scratch before a version was committed: there it has ended, but its coordinator goes on, as long as others hold theirs, and
// tells of it again whoever forgot it.
bool has_ended(const SeedRun& run, const Node& daemon, const VersionKey& key) {
    const Host& coordinator = run.cluster.hosts[run.cluster.coordinator(key.incarnation)];
    const bool goes_on = coordinator.daemon && coordinator.daemon->state(key).level != Level::none && !coordinator.daemon->state(key).final;
    return daemon.state(key).final && !goes_on;
}

// Of a job a daemon remembers as many versions as it was told to, and besides only those that have not ended or whose images scratch holds.
void check_forgotten(SeedRun& run) {
    const Id128 job = run.cluster.roster.incarnation;
    const auto known = [&](const Node& daemon, bool may_go) {
        std::size_t count = 0;
        for (const VersionKey& key : daemon.versions()) {
            bool holds = false;
            for (Rank rank = 0; rank < run.cluster.ranks(); ++rank) holds |= daemon.image(key, rank) != nullptr;
            count += key.incarnation == job && (may_go || holds || !has_ended(run, daemon, key));
        }
        return count;
    };
    const auto many = [&](const Host& host) { return !host.gone && known(*host.daemon, true) > run.cluster.options.settings.limits.versions; };
    if (std::none_of(run.cluster.hosts.begin(), run.cluster.hosts.end(), many)) return;
    run.cluster.sim.run_until(run.cluster.sim.now() + 800 * second);  // who flushed a version looks for a while whether anything is left of it
    std::vector<std::size_t> kept;
    for (const Host& host : run.cluster.hosts) kept.push_back(host.gone ? 0 : known(*host.daemon, false));
    run.cluster.options.asked = [](Rank, Version) { return std::nullopt; };
    run.cluster.options.once = [](Rank, Version) { return false; };  // a target that is gone for good is tried again meanwhile, and uses up what can be read once only
    for (int i = 0; i < 2; ++i) {  // what has ended goes when something new comes
        const Version version = ++run.known.next_version;
        const Status captured = run.cluster.capture_all(version);
        if (!captured.ok()) return run.fail("a capture when all was at rest failed: " + captured.to_string());
        const bool done = run.cluster.run_until_committed(version, calm_span(run));
        note_states(run);
        if (!done) return run.fail("a version after all was at rest did not commit");
    }
    for (NodeIndex node = 0; node < run.cluster.hosts.size(); ++node) {
        if (run.cluster.is_io_node(node) || run.cluster.hosts[node].gone) continue;
        const std::size_t all = known(*run.cluster.hosts[node].daemon, true), needed = kept[node] + 2;
        if (all > std::max<std::size_t>(run.cluster.options.settings.limits.versions, needed))
            return run.fail("node " + std::to_string(node) + "'s daemon remembers " + std::to_string(all) + " versions, of which " + std::to_string(needed) + " are needed");
    }
}

// An attempt may fail yet (a target that is gone for good), and has used up what can be read once only: the next version can be read again.
bool commits_last(SeedRun& run) {
    const Version version = run.known.next_version;
    const bool done = run.cluster.run_until_committed(version, calm_span(run));
    note_states(run);
    if (done || !run.known.given_up.count(run.cluster.key(version))) return done;
    run.tell("version ", version, " was used up");
    run.cluster.options.asked = [](Rank, Version) { return std::nullopt; };
    run.cluster.options.once = [](Rank, Version) { return false; };
    const Status captured = run.cluster.capture_all(++run.known.next_version);
    if (!captured.ok()) run.fail("a capture without faults failed: " + captured.to_string());
    const bool again = run.cluster.run_until_committed(run.known.next_version, calm_span(run));
    note_states(run);
    return again;
}

void check_last(SeedRun& run) {
    const Status captured = run.cluster.capture_all(run.known.next_version);
    if (!captured.ok()) return run.fail("a capture without faults failed: " + captured.to_string());
    const bool done = commits_last(run);
    const Version version = run.known.next_version;
    if (!done) return run.fail("a new version did not commit after the faults ended: " + run.cluster.state(run.cluster.coordinator(), version).failure.to_string());
    const Status status = run.cluster.check_committed(run.cluster.key(version));
    if (!status.ok()) return run.fail("the last version can not be restored: " + status.to_string());
    check_nothing_left_over(run);
    if (run.result.ok) check_all_told(run);
    if (run.result.ok) check_rest(run);
    if (run.result.ok) check_all_waiters_told(run);
    if (run.result.ok) check_forgotten(run);
    run.result.committed = static_cast<std::uint32_t>(run.known.reported.size());
}

// A daemon that has looked at its scratch knows the jobs that are there, whatever went wrong meanwhile: nobody may come any more who could tell it.
void check_jobs_known(SeedRun& run) {
    const auto look = [](World world, ScratchLayout place, JobScan* out) -> Task<void> {
        Result<JobScan> scan = co_await scan_jobs(world, place, 60 * second);
        if (scan.ok()) *out = std::move(scan).value();
    };
    for (NodeIndex node = 0; node < run.cluster.hosts.size(); ++node) {
        Host& host = run.cluster.hosts[node];
        if (run.cluster.is_io_node(node)) continue;
        if (!host.node->alive() || !host.daemon || !host.booted) continue;
        host.process->resume();  // one that stands still may be about to take it in
        JobScan scan;
        sim::Process& process = host.node->start_process("reader");
        (void)run.cluster.sim.run(look(process.world(), run.cluster.scratch(node), &scan), run.cluster.sim.now() + 60 * second);
        process.kill();
        for (const Roster& job : scan.rosters) {
            if (!run.known.epochs.count(job.incarnation) || run.known.jobs_forgotten.count({node, host.started, job.incarnation})) continue;  // it never opened, or had ended
            const auto knows = [&] { return host.daemon->knows(job.incarnation); };  // it may be writing that now
            if (!run.cluster.sim.run_until(knows, run.cluster.sim.now() + 60 * second))
                return run.fail("node " + std::to_string(node) + " does not know a job that its scratch holds: epoch " + std::to_string(job.epoch));
        }
    }
}

// A daemon that was stopped took the records of a job with nothing to finish away: the next one hears of it from its ranks.
void introduce_all(SeedRun& run) {
    for (NodeIndex node = 0; node < run.cluster.hosts.size(); ++node) {
        Host& host = run.cluster.hosts[node];
        const auto booted = [&] { return host.booted; };
        if (run.cluster.is_io_node(node) || host.gone) continue;
        if (!run.cluster.sim.run_until(booted, run.cluster.sim.now() + 600 * second)) return run.fail("a daemon does not boot with no faults");
        sim::Process& rank = host.node->start_process("rank");
        (void)run.cluster.sim.run(run.cluster.introduce(rank.world(), node), run.cluster.sim.now() + 60 * second);
        rank.kill();
    }
}

}  // namespace

Nanos calm_span(const SeedRun& run) { return longest_deadline(run) + 3 * undisturbed(run); }

void settle(SeedRun& run) {
    run.tell("quiet");
    be_quiet(run);
    run.cluster.sim.heal();
    *run.cluster.ranks_may_be_late = false;
    uncover(run);
    check_jobs_known(run);
    for (NodeIndex node = 0; node < run.cluster.hosts.size(); ++node) {
        Host& host = run.cluster.hosts[node];
        if (host.gone) continue;
        if (!host.node->alive()) run.cluster.restart_node(node);
        run.cluster.kill_formers(node);
        if (host.process) host.process->resume();
        if (host.process && host.process->reads_lost() > 0) {
            run.see(Saw::scratch_hung);
            run.cluster.kill_daemon(node);  // nothing else brings its threads back
        }
        if (host.process && host.process->transfers_lost() >= run.cluster.options.settings.buffers) {
            run.see(Saw::buffers_lost);
            run.cluster.kill_daemon(node);  // nor its buffers
        }
        start(run, node);
        if (!run.scenario.only_messages_suffer() && !run.scenario.only_limits_hold()) limit(run, node, false);
    }
    run.cluster.sim.run_until(run.cluster.sim.now() + second);
    if (run.known.job_lives && run.scenario.alone == 0) introduce_all(run);
    note_states(run);
    if (run.known.flipped.empty()) return;
    (void)check_catalog(run);
    if (run.result.ok) repair(run);
}

void check_sealed_commit(SeedRun& run) {
    const Nanos by = run.cluster.sim.now() + calm_span(run);
    for (const VersionKey& key : run.known.sealed) {
        if (key.incarnation != run.cluster.roster.incarnation || run.known.removed.count(key) || run.known.let_go.count(key)) continue;
        if (run.known.reported.count(key) && run.known.versions_forgotten.count(key)) continue;
        const bool done = run.cluster.run_until_committed(key.version, by - run.cluster.sim.now());
        note_states(run);
        if (!done) return run.fail("a sealed version did not commit after the faults ended: version " + std::to_string(key.version) + ": " +
                                   run.cluster.state(run.cluster.coordinator(), key.version).failure.to_string());
    }
}

// After the faults: what is sealed everywhere and still in scratch commits by itself, and so does a new version.
void check_liveness(SeedRun& run) {
    if (run.known.job_lives && !lost_scratch(run)) {
        check_sealed_commit(run);
    } else {
        reopen(run);
        run.cluster.sim.faults() = {};
    }
    if (run.result.ok) check_last(run);
}

}  // namespace cairn::testing
