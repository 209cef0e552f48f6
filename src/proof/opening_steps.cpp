// Jobs that open: from the newest version that they find, committed or in scratch alone, or from an older one; in other places, two at the same time, or to
// die at once.
#include <algorithm>
#include <utility>

#include "proof/promise.hpp"
#include "proof/steps.hpp"

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
    // What all nodes hold, if all that are left can tell.
    const bool looked = std::all_of(run.cluster.hosts.begin(), run.cluster.hosts.end(), [](const Host& host) { return host.gone || (host.booted && host.daemon); });
    FromRecord from{run.cluster.roster.incarnation, parent, looked, {}};
    if (looked) run.known.whole[from.incarnation] = whole_in_scratch(run);
    for (const VersionKey& key : run.known.whole[from.incarnation]) from.whole.push_back({key.incarnation, key.version});
    (void)run.cluster.sim.run(task(process.world(), run.cluster.layout, run.cluster.roster.name, run.cluster.roster.epoch, from, &status), run.cluster.sim.now() + limit);
    process.kill();
    run.known.chains[run.cluster.roster.incarnation] = parent;
    if (status.ok()) run.known.recorded[run.cluster.roster.incarnation] = run.cluster.sim.now();
    return status;
}

void go_on_from(SeedRun& run, VersionKey from) {
    const Parent parent{from.incarnation, from.version};
    if (const Status named = record(run, run.cluster.reader(), parent, 120 * second); !named.ok())
        return run.fail("a job can not name its parent with no faults: " + named.to_string());
    if (run.chance(30)) {  // a daemon that comes later must find out by itself what has been left behind
        const NodeIndex coordinator = run.cluster.coordinator();
        run.cluster.kill_daemon(coordinator);
        run.cluster.start_daemon(coordinator);
        const auto booted = [&] { return run.cluster.hosts[coordinator].booted; };
        if (!run.cluster.sim.run_until(booted, run.cluster.sim.now() + 600 * second)) return run.fail("a daemon does not boot with no faults");
    }
    if (const Status named = run.cluster.name_parent(parent); !named.ok()) return run.fail("a job can not say where it goes on from, with no faults: " + named.to_string());
    run.known.next_version = from.version + 1;
    run.tell("goes on from version ", from.version);
}

// What the test knows of a job that has its roster.
void remember_job(SeedRun& run) {
    run.known.next_version = 1;
    run.known.chains[run.cluster.roster.incarnation] = {};
    run.known.epochs[run.cluster.roster.incarnation] = run.cluster.roster.epoch;
}

// The next job's node 0 is another one: what the lost one coordinated nobody coordinates any more, and daemons that followed it lead the new one.
void change_places(SeedRun& run) {
    std::vector<Seat> seats = run.cluster.seats();
    const auto io_nodes = std::stable_partition(seats.begin(), seats.end(), [](const Seat& seat) { return seat.ranks > 0; });
    const auto computing = static_cast<std::size_t>(io_nodes - seats.begin());
    for (std::size_t i = computing; i > 1; --i) std::swap(seats[i - 1], seats[run.draw(i)]);
    if (seats.front().host != run.cluster.coordinator()) run.see(Saw::other_coordinator);
    run.cluster.seat(std::move(seats));
}

// The ranks of a node that does not come back run on a new one from now on, or on another of the job's. A gone I/O node stays in the roster: its record under
// persistent does.
void replace_gone(SeedRun& run) {
    std::vector<Seat> seats = run.cluster.seats();
    for (Seat& seat : seats) {
        if (!run.cluster.hosts[seat.host].gone || seat.ranks == 0) continue;
        std::vector<Seat*> others;
        for (Seat& other : seats)
            if (other.ranks > 0 && !run.cluster.hosts[other.host].gone) others.push_back(&other);
        if (!others.empty() && run.chance(25)) {
            Seat& other = *others[run.draw(others.size())];
            other.ranks += std::exchange(seat.ranks, 0);
            run.see(Saw::ranks_together);
            run.tell("the ranks of node ", seat.host, " go to node ", other.host);
        } else {
            const NodeIndex gone = std::exchange(seat.host, run.cluster.add_node());
            run.see(Saw::spare_node);
            run.tell("the ranks of node ", gone, " go to a new one, ", seat.host);
        }
    }
    std::erase_if(seats, [&](const Seat& seat) { return seat.ranks == 0 && !run.cluster.is_io_node(seat.host); });
    run.cluster.seat(std::move(seats));
}

// Two jobs of the series open at the same time, and each takes itself for the only one. The older is superseded, and is told so at its second checkpoint;
// what it captured and even committed is of its own lineage.
Status open_rivals(SeedRun& run, const std::optional<VersionKey>& from) {
    TRY_ASSIGN(std::vector<Roster> jobs, run.cluster.claim_jobs(2, 120 * second));
    if (jobs[0].epoch == jobs[1].epoch) run.fail("two jobs have one epoch: " + std::to_string(jobs[0].epoch));
    run.tell("two jobs open, epochs ", jobs[0].epoch, " and ", jobs[1].epoch);
    run.see(Saw::rivals);
    const bool newer_first = run.chance(50);
    Roster newer;
    for (const bool is_newer : {newer_first, !newer_first}) {
        TRY(run.cluster.begin_job(std::move(jobs[is_newer ? 1 : 0]), 120 * second));
        remember_job(run);
        if (is_newer && newer_first) {
            newer = run.cluster.roster;
            continue;  // it names its parent when the other has done so
        }
        if (from) go_on_from(run, *from);
        if (!is_newer) capture(run);
        if (is_newer) newer = run.cluster.roster;
    }
    run.cluster.roster = std::move(newer);
    run.known.next_version = from && !newer_first ? from->version + 1 : 1;
    if (from && newer_first) go_on_from(run, *from);
    return {};
}

// What the next job's ranks find in the scratch of their nodes, as they will be placed; also what some of them lack.
std::vector<SealedVersion> sealed_in_scratch(const SeedRun& run) {
    std::map<VersionKey, Rank> ranks;
    std::map<VersionKey, SealedVersion> versions;
    for (Rank rank = 0; rank < run.cluster.ranks(); ++rank) {
        const Host& host = run.cluster.hosts[run.cluster.node_of(rank, {})];
        for (const VersionKey& key : host.daemon->versions()) {
            const LocalImage* image = host.daemon->image(key, rank);
            if (!image || image->readable != Readable::again) continue;  // lost with its job
            ++ranks[key];
            versions[key] = {key.incarnation, image->header.epoch, key.version, image->header.parent};
        }
    }
    std::vector<SealedVersion> found;
    for (auto& [key, version] : versions) {
        version.is_whole = ranks[key] == run.cluster.ranks();
        found.push_back(version);
    }
    return found;
}

// Each rank on its node, as it restores: from scratch where its image is there, else from the parts. Nothing: it left scratch meanwhile, as
// what was committed or given up does, and when it was looked for it was nowhere else.
std::optional<Status> restore_everywhere(SeedRun& run, const RestorableVersion& version) {
    for (Rank rank = 0; rank < run.cluster.ranks(); ++rank) {
        const NodeIndex node = run.cluster.node_of(rank, {});
        const Host& host = run.cluster.hosts[node];
        const auto slot = [&] {
            const LocalImage* image = host.daemon->image(version.key, rank);
            return image && image->readable == Readable::again ? image->path : "";
        };
        const ImagePlaces places{version.key, rank, slot(), version.committed};
        if (places.slot_path.empty() && !version.committed) return std::nullopt;
        const Fetched fetched = run.cluster.fetch_now(node, places, content_of(run, version.key));
        const bool is_held = !places.slot_path.empty() && slot() == places.slot_path;
        if (fetched.passed_over && is_held) return fetched.passed_over->within("in scratch");
        if (!fetched.status.ok() && !version.committed && !is_held) return std::nullopt;
        if (!fetched.status.ok()) return fetched.status;
    }
    return Status();
}

// What a restart takes, of persistent and scratch together: a version without a manifest is as good, as long as all of it is in scratch.
std::optional<RestorableVersion> restart_with_scratch(SeedRun& run) {
    const auto booted = [&] { return std::all_of(run.cluster.hosts.begin(), run.cluster.hosts.end(), [](const Host& host) { return host.gone || host.booted; }); };
    if (!run.cluster.sim.run_until(booted, run.cluster.sim.now() + 600 * second)) {
        run.fail("a daemon does not boot with no faults");
        return std::nullopt;
    }
    note_states(run);
    const std::map<VersionKey, bool> told_before = run.known.reported;
    const std::vector<SealedVersion> sealed = sealed_in_scratch(run);
    Result<RestorableSeries> found(deadline_passed("listing"));
    const auto look = [](const Cluster* cluster, World world, std::vector<SealedVersion> all, Result<RestorableSeries>* out) -> Task<void> {
        Result<RestorableSeries> looked = co_await cluster->look(world, std::move(all));
        *out = std::move(looked);
    };
    sim::Process& reader = run.cluster.hosts[run.cluster.reader()].node->start_process("reader");
    (void)run.cluster.sim.run(look(&run.cluster, reader.world(), sealed, &found), run.cluster.sim.now() + 60 * second);
    reader.kill();
    if (!found.ok() && run.known.flipped.empty()) run.fail("a restarting job can not look for what it goes on from: " + found.status().to_string());
    if (!found.ok()) return std::nullopt;
    check_restorable(run, *found, sealed, told_before);
    std::optional<RestorableVersion> newest;
    for (const RestorableVersion& each : found->versions)
        if (each.can_be_had()) newest = each;
    if (!newest || !run.result.ok) return std::nullopt;
    const std::optional<Status> status = restore_everywhere(run, *newest);
    if (status && !status->ok())
        run.fail("a version that scratch and persistent hold can not be restored from there: version " + std::to_string(newest->key.version) + ": " + status->to_string());
    return status ? newest : std::nullopt;
}

// An older one that is still in the lineage.
void go_back(SeedRun& run, VersionKey& from) {
    std::vector<VersionKey> older;
    for (const auto& [key, reported] : run.known.reported)
        if (key.incarnation == from.incarnation && key.version < from.version && !run.known.removed.count(key)) older.push_back(key);
    if (older.empty()) return;
    from = older[run.draw(older.size())];
    run.see(Saw::went_back);
}

// What it goes on from; nothing: there is nothing.
std::optional<VersionKey> find_restart(SeedRun& run) {
    const std::optional<VersionKey> newest = check_catalog(run);
    note_states(run);
    std::optional<VersionKey> from;
    if (newest) {
        from = newest;
        if (Status whole = run.cluster.check_committed(*from); !whole.ok())
            run.fail("the newest version that a restarting job finds can not be restored: version " + std::to_string(from->version) + ": " + whole.to_string());
        check_together(run, *from);
    }
    if (!run.result.ok) return std::nullopt;
    const std::optional<RestorableVersion> sealed = restart_with_scratch(run);
    if (!run.result.ok) return std::nullopt;
    if (sealed && !sealed->committed && run.chance(70)) {
        run.see(Saw::from_scratch);
        run.known.only_sealed = from = sealed->key;
        run.tell("only scratch holds version ", sealed->key.version);
    } else if (from && run.chance(35)) {
        go_back(run, *from);
    }
    return from;
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
    if (run.known.job_lives) remember_job(run);
    run.cluster.sim.faults() = run.background;
    return run.known.job_lives;
}

// The job is dead; another one opens, from the newest version it finds, or from an older one.
void reopen(SeedRun& run) {
    be_quiet(run);
    uncover(run);
    for (NodeIndex node = 0; node < run.cluster.hosts.size(); ++node) {
        if (run.cluster.hosts[node].gone) continue;
        if (!run.cluster.hosts[node].node->alive()) run.cluster.restart_node(node);
        for (const Daemon& former : run.cluster.hosts[node].formers) former.process->resume();
        if (run.cluster.hosts[node].process) run.cluster.hosts[node].process->resume();
        else run.cluster.start_daemon(node);
    }
    run.cluster.sim.heal();
    replace_gone(run);
    if (run.chance(30)) change_places(run);
    const std::optional<VersionKey> from = find_restart(run);
    if (!run.result.ok) return;
    run.see(Saw::several_jobs);
    if (run.chance(12)) {
        run.known.job_lives = true;
        const Status opened = open_rivals(run, from);
        if (!opened.ok()) run.fail("two jobs can not open with no faults: " + opened.to_string());
    } else {
        if (!open(run)) return run.fail("reopen failed with no faults");
        run.cluster.sim.faults() = {};
        if (from) go_on_from(run, *from);
    }
    run.cluster.sim.faults() = run.background;
}

// A job opens and dies before it has gone on from anything: killed while it makes itself known, or while it names its parent. Whatever is left of it, the
// next one finds what it would have found.
void open_and_die(SeedRun& run, NodeIndex node) {
    run.known.job_lives = false;
    uncover(run);
    if (!run.cluster.hosts[node].node->alive()) return;
    const Nanos soon = static_cast<Nanos>(run.draw(40)) * millisecond;
    const Status opened = run.cluster.open_job(run.chance(30) ? soon : 60 * second);
    run.tell("open, to die at once: ", opened.to_string());
    if (!opened.ok()) return;
    run.see(Saw::died_at_open);
    remember_job(run);
    std::vector<VersionKey> parents;
    for (const auto& [key, reported] : run.known.reported)
        if (in_chain(run, key) && !run.known.removed.count(key)) parents.push_back(key);
    if (parents.empty() || run.chance(40)) return;
    const VersionKey parent = parents[run.draw(parents.size())];
    const Status named = record(run, node, {parent.incarnation, parent.version}, static_cast<Nanos>(run.draw(15'000)) * microsecond);
    run.tell("dies naming version ", parent.version, " as its parent: ", named.to_string());
    if (!named.ok()) run.see(Saw::parent_undurable);
}

}  // namespace cairn::testing
