// The application's steps: a job opens, captures, cancels, dies, and another one opens from the newest version that it finds, or from an older one.
#include <algorithm>

#include "engine/promise_sim.hpp"
#include "engine/steps_sim.hpp"

namespace cairn::testing {

namespace {

// Killed after `limit`.
Status record(SeedRun& run, NodeIndex node, Parent parent, Nanos limit) {
    sim::Process& process = run.cluster.hosts[node].node->start_process("rank0");
    Status status(Code::deadline, "killed");
    const auto task = [](World w, Layout l, std::string name, std::uint64_t epoch, FromRecord r, Status* out) -> Task<void> {
        Status recorded = co_await record_parent(w, l, name, epoch, r, w.clock.in(60 * second));
        *out = std::move(recorded);
    };
    const FromRecord from{run.cluster.roster.incarnation, parent};
    (void)run.cluster.sim.run(task(process.world(), run.cluster.layout, run.cluster.roster.name, run.cluster.roster.epoch, from, &status), run.cluster.sim.now() + limit);
    process.kill();
    run.known.chains[run.cluster.roster.incarnation] = parent;
    if (status.ok()) run.known.recorded[run.cluster.roster.incarnation] = run.cluster.sim.now();
    return status;
}

void go_on_from(SeedRun& run, VersionKey from) {
    const Parent parent{from.incarnation, from.version};
    if (const Status named = record(run, 0, parent, 120 * second); !named.ok())
        return run.fail("a job can not name its parent with no faults: " + named.to_string());
    if (run.chance(30)) {  // a daemon that comes later must find out by itself what has been left behind
        const NodeIndex coordinator = run.cluster.coordinator();
        run.cluster.kill_daemon(coordinator);
        run.cluster.start_daemon(coordinator);
        const auto booted = [&] { return run.cluster.hosts[coordinator].booted; };
        if (!run.cluster.sim.run_until(booted, run.cluster.sim.now() + 60 * second)) return run.fail("a daemon does not boot with no faults");
    }
    if (const Status named = run.cluster.name_parent(parent); !named.ok()) return run.fail("a job can not say where it goes on from, with no faults: " + named.to_string());
    run.known.next_version = from.version + 1;
    run.tell("goes on from version ", from.version);
}

}  // namespace

// A job opens, with nothing that goes wrong meanwhile.
bool open(SeedRun& run) {
    be_quiet(run);
    const std::uint64_t before = run.cluster.roster.epoch;
    Status status;
    for (int i = 0; i < 5; ++i) {
        status = run.cluster.open_job(120 * second);
        if (status.ok()) break;
    }
    run.tell("open: ", status.to_string(), ", epoch ", run.cluster.roster.epoch);
    if (status.ok() && run.cluster.roster.epoch <= before) run.fail("an open did not raise the epoch: " + std::to_string(run.cluster.roster.epoch));
    run.known.job_lives = status.ok();
    run.known.next_version = 1;
    if (run.known.job_lives) {
        run.known.chains[run.cluster.roster.incarnation] = {};
        run.known.epochs[run.cluster.roster.incarnation] = run.cluster.roster.epoch;
    }
    run.cluster.sim.faults() = run.background;
    return run.known.job_lives;
}

// The next job's node 0 is another one: what the lost one coordinated nobody coordinates any more, and daemons that followed it lead the new one.
void change_places(SeedRun& run) {
    std::vector<NodeIndex> order = run.cluster.seats();
    const auto io_nodes = std::stable_partition(order.begin(), order.end(), [&](NodeIndex node) { return !run.cluster.is_io_node(node); });
    const auto computing = static_cast<std::size_t>(io_nodes - order.begin());
    for (std::size_t i = computing; i > 1; --i) std::swap(order[i - 1], order[run.draw(i)]);
    if (order.front() != run.cluster.coordinator()) run.see(Saw::other_coordinator);
    run.cluster.seat(std::move(order));
}

// The job is dead; another one opens, from the newest version it finds, or from an older one.
void reopen(SeedRun& run) {
    be_quiet(run);
    for (NodeIndex node = 0; node < run.cluster.hosts.size(); ++node) {
        if (!run.cluster.hosts[node].node->alive()) run.cluster.restart_node(node);
        for (const Daemon& former : run.cluster.hosts[node].formers) former.process->resume();
        if (run.cluster.hosts[node].process) run.cluster.hosts[node].process->resume();
        else run.cluster.start_daemon(node);
    }
    run.cluster.sim.heal();
    const auto newest = run.cluster.newest_committed();
    if (!newest.ok()) return run.fail("a restarting job can not read the catalog: " + newest.status().to_string());
    std::optional<Manifest> from = *newest;
    note_states(run);
    if (from) {
        check_newest(run, *from);
        if (Status whole = run.cluster.check_committed(from->key); !whole.ok())
            return run.fail("the newest version that a restarting job finds can not be restored: version " + std::to_string(from->key.version) + ": " + whole.to_string());
    }
    if (run.chance(30)) change_places(run);
    if (!open(run)) return run.fail("reopen failed with no faults");
    run.see(Saw::several_jobs);
    run.cluster.sim.faults() = {};
    if (from && run.chance(35)) {  // go back to an older one that is still in the lineage
        std::vector<VersionKey> older;
        for (const auto& [key, reported] : run.known.reported)
            if (key.incarnation == from->key.incarnation && key.version < from->key.version && !run.known.removed.count(key)) older.push_back(key);
        if (!older.empty()) {
            from->key = older[run.draw(older.size())];
            run.see(Saw::went_back);
        }
    }
    if (from) go_on_from(run, from->key);
    run.cluster.sim.faults() = run.background;
}

void capture(SeedRun& run) {
    if (!run.known.job_lives) return;
    const bool whole = run.scenario.only_messages_suffer() || !run.chance(20);
    const Status status = run.cluster.capture_all(run.known.next_version, whole ? 60 * second : static_cast<Nanos>(run.draw(2'000'000)));
    run.tell("capture version ", run.known.next_version, ": ", status.to_string());
    if (status.ok()) run.known.sealed.insert(run.cluster.key(run.known.next_version));
    ++run.known.next_version;
}

// A job opens and dies before it has gone on from anything: killed while it makes itself known, or while it names its parent. Whatever is left of it, the
// next one finds what it would have found.
void open_and_die(SeedRun& run, NodeIndex node) {
    run.known.job_lives = false;
    if (!run.cluster.hosts[node].node->alive()) return;
    const Nanos soon = static_cast<Nanos>(run.draw(40)) * millisecond;
    const Status opened = run.cluster.open_job(run.chance(30) ? soon : 60 * second);
    run.tell("open, to die at once: ", opened.to_string());
    if (!opened.ok()) return;
    run.see(Saw::died_at_open);
    run.known.chains[run.cluster.roster.incarnation] = {};
    run.known.epochs[run.cluster.roster.incarnation] = run.cluster.roster.epoch;
    std::vector<VersionKey> parents;
    for (const auto& [key, reported] : run.known.reported)
        if (in_chain(run, key) && !run.known.removed.count(key)) parents.push_back(key);
    if (parents.empty() || run.chance(40)) return;
    const VersionKey parent = parents[run.draw(parents.size())];
    const Status named = record(run, node, {parent.incarnation, parent.version}, static_cast<Nanos>(run.draw(15'000)) * microsecond);
    run.tell("dies naming version ", parent.version, " as its parent: ", named.to_string());
    if (!named.ok()) run.see(Saw::parent_undurable);
}

// A version that may be about to commit.
std::optional<VersionKey> undecided(SeedRun& run) {
    capture(run);
    run.cluster.sim.run_until(run.cluster.sim.now() + static_cast<Nanos>(run.draw(run.chance(50) ? 20 : 400)) * millisecond);
    note_states(run);
    std::vector<VersionKey> open;
    for (const VersionKey& key : run.known.sealed)
        if (!run.known.reported.count(key) && !run.known.removed.count(key)) open.push_back(key);
    if (open.empty()) return std::nullopt;
    return open[run.draw(open.size())];
}

// The application takes a version back: what its daemon answers is how it ends, on all nodes and for good.
Errand* begin_cancel(SeedRun& run, NodeIndex node, const VersionKey& key, Nanos span) {
    Host& host = run.cluster.hosts[node];
    if (!host.daemon || !host.booted || !host.daemon->knows(key.incarnation) || run.known.let_go.count(key)) return nullptr;
    run.see(Saw::cancelled);
    const auto task = [](Node* daemon, VersionKey version, Nanos deadline, std::shared_ptr<std::optional<Status>> out) -> Task<void> {
        Status status = co_await daemon->cancel(version, deadline);
        *out = std::move(status);
    };
    Errand& errand = run.errands.emplace_back(key, true);
    errand.tried_before = !run.known.removed.emplace(key, false).second;
    host.gate->spawn(task(host.daemon.get(), key, host.process->world().clock.in(span), errand.answer));  // goes with the daemon, if that is killed meanwhile
    return &errand;
}

void cancel(SeedRun& run, NodeIndex node) {
    const std::optional<VersionKey> chosen = undecided(run);
    const Nanos span = run.chance(30) ? static_cast<Nanos>(run.draw(400)) * millisecond : 20 * second;
    if (chosen && begin_cancel(run, node, *chosen, span)) end_errands(run, span + second);
}

}  // namespace cairn::testing
