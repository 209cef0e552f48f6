// What happens in the run of a scenario: step after step (capture, kill, pause, crash, partition, loss of power, the job's end, going back, removal,
// limits on what may move, a fault in the middle of a chosen operation), then quiet: everything heals, limits are bearable, and what was promised
// must be there (promise_sim.cpp).
#include "engine/seeds_sim.hpp"

#include <algorithm>

#include "engine/removal.hpp"
#include "engine/seed_run_sim.hpp"
#include "format/manifest.hpp"

namespace cairn::testing {

SeedRun::SeedRun(const Scenario& scenario, bool trace)
    : scenario_(scenario), draw_(sim::mix(scenario.seed)), background_(faults_of(scenario)), cluster_(cluster_of(scenario)) {
    cluster_.sim.set_trace(trace);
    cluster_.sim.set_observer([this](sim::Process& process, const char* what, const std::string& detail) { observe(process, what, detail); });
    if (scenario.only_messages_suffer()) see(Saw::only_messages);
    if (scenario.gone > 0) see(Saw::target_gone);
    if (scenario.placed && !scenario.target_bytes_s.empty()) see(Saw::on_targets);
    const auto& targets = scenario.target_bytes_s;
    if (std::adjacent_find(targets.begin(), targets.end(), std::not_equal_to<>()) != targets.end()) see(Saw::targets_differ);
}

SeedResult SeedRun::run() {
    if (!open()) return finish("the first open failed");
    if (!scenario_.only_messages_suffer())
        for (NodeIndex node = 0; node < cluster_.hosts.size(); ++node)
            if (chance(20)) limit(node, false);
    for (const Step& step : scenario_.steps) {
        take(step);
        if (!result_.ok) break;
    }
    draw_ = sim::Prng(sim::mix(~scenario_.seed));
    if (result_.ok) settle();
    if (result_.ok) check_promise();
    if (result_.ok) check_scratch();
    if (result_.ok) check_liveness();
    if (result_.ok) check_flipped_bit();
    return finish("");
}

void SeedRun::fail(std::string text) {
    if (!result_.ok) return;
    result_.ok = false;
    result_.failure = std::move(text);
}

SeedResult SeedRun::finish(std::string failure) {
    if (!failure.empty()) fail(std::move(failure));
    result_.fingerprint = cluster_.sim.fingerprint();
    return std::move(result_);
}

// ---- the job ----

// A job opens, with nothing that goes wrong meanwhile.
bool SeedRun::open() {
    be_quiet();
    Status status;
    for (int i = 0; i < 5; ++i) {
        status = cluster_.open_job(120 * second);
        if (status.ok()) break;
    }
    tell("open: ", status.to_string(), ", epoch ", cluster_.roster.epoch);
    job_lives_ = status.ok();
    next_version_ = 1;
    has_parent_ = false;
    if (job_lives_) chains_[cluster_.roster.incarnation] = {};
    cluster_.sim.faults() = background_;
    return job_lives_;
}

// The job is dead; another one opens, from the newest version it finds, or from an older one.
void SeedRun::reopen() {
    be_quiet();
    for (NodeIndex node = 0; node < cluster_.hosts.size(); ++node) {
        if (!cluster_.hosts[node].node->alive()) cluster_.restart_node(node);
        if (cluster_.hosts[node].process) cluster_.hosts[node].process->resume();
        else cluster_.start_daemon(node);
    }
    cluster_.sim.heal();
    const auto newest = cluster_.newest_committed();
    if (!newest.ok()) return fail("a restarting job can not read the catalog: " + newest.status().to_string());
    std::optional<Manifest> from = *newest;
    note_states();
    if (from) {
        check_newest(*from);
        if (Status whole = cluster_.check_committed(from->key); !whole.ok())
            return fail("the newest version that a restarting job finds can not be restored: version " + std::to_string(from->key.version) + ": " + whole.to_string());
    }
    if (!open()) return fail("reopen failed with no faults");
    see(Saw::several_jobs);
    cluster_.sim.faults() = {};
    if (from && chance(35)) {  // go back to an older one that is still in the lineage
        std::vector<VersionKey> older;
        for (const auto& [key, reported] : reported_)
            if (key.incarnation == from->key.incarnation && key.version < from->key.version && !removed_.count(key)) older.push_back(key);
        if (!older.empty()) {
            from->key = older[draw(older.size())];
            see(Saw::went_back);
        }
    }
    if (from) go_on_from(from->key);
    cluster_.sim.faults() = background_;
}

void SeedRun::go_on_from(VersionKey from) {
    cluster_.roster.parent = {from.incarnation, from.version};
    chains_[cluster_.roster.incarnation] = cluster_.roster.parent;
    has_parent_ = record(cluster_.roster.parent);
    if (has_parent_) recorded_[cluster_.roster.incarnation] = cluster_.sim.now();
    if (chance(30)) {  // a daemon that comes later must find out by itself what has been left behind
        cluster_.kill_daemon(0);
        cluster_.start_daemon(0);
        const auto booted = [&] { return cluster_.hosts[0].booted; };
        if (!cluster_.sim.run_until(booted, cluster_.sim.now() + 60 * second)) return fail("a daemon does not boot with no faults");
    }
    for (NodeIndex node = 0; node < cluster_.hosts.size(); ++node)
        if (!cluster_.is_io_node(node)) (void)cluster_.hosts[node].daemon->join(std::make_shared<const Roster>(cluster_.roster), node).ok();
    next_version_ = from.version + 1;
    tell("goes on from version ", from.version);
}

bool SeedRun::record(Parent parent) {
    sim::Process& process = cluster_.hosts[0].node->start_process("rank0");
    Status status(Code::deadline, "");
    const auto task = [](World w, Layout l, std::string name, std::uint64_t epoch, FromRecord r, Status* out) -> Task<void> {
        Status recorded = co_await record_parent(w, l, name, epoch, r, w.clock.in(60 * second));
        *out = std::move(recorded);
    };
    const FromRecord from{cluster_.roster.incarnation, parent};
    (void)cluster_.sim.run(task(process.world(), cluster_.layout, cluster_.roster.name, cluster_.roster.epoch, from, &status), cluster_.sim.now() + 120 * second);
    process.kill();
    return status.ok();
}

void SeedRun::capture() {
    if (!job_lives_) return;
    const bool whole = scenario_.only_messages_suffer() || !chance(20);
    const Status status = cluster_.capture_all(next_version_, whole ? 60 * second : static_cast<Nanos>(draw(2'000'000)));
    tell("capture version ", next_version_, ": ", status.to_string());
    if (status.ok()) sealed_.insert(cluster_.key(next_version_));
    ++next_version_;
}

// ---- steps ----

void SeedRun::take(const Step& step) {
    draw_ = sim::Prng(step.seed);
    note_states();
    const NodeIndex node = static_cast<NodeIndex>(draw(cluster_.hosts.size()));
    const bool fault = step.what != Happening::capture && step.what != Happening::remove && step.what != Happening::limit && step.what != Happening::let_go &&
                       step.what != Happening::cancel;
    result_.faults += fault;
    switch (step.what) {
        case Happening::capture: capture(); break;
        case Happening::kill: kill(node); break;
        case Happening::pause: pause(node); break;
        case Happening::crash: crash(node); break;
        case Happening::power: power_loss(); break;
        case Happening::partition: partition(); break;
        case Happening::end_job:
            tell("the job dies and comes back");
            job_lives_ = false;
            break;
        case Happening::remove: remove(node); break;
        case Happening::limit: limit(node, chance(20)); break;
        case Happening::start: start(node); break;
        case Happening::strike: strike(node); break;
        case Happening::let_go: let_go(node); break;
        case Happening::cancel: cancel(node); break;
    }
    pass();
    if (!job_lives_ && result_.ok) reopen();
}

void SeedRun::kill(NodeIndex node) {
    if (!cluster_.hosts[node].process) return;
    tell("kill -9 daemon ", node);
    see(Saw::daemon_killed);
    if (node == 0) see(Saw::coordinator_killed);
    cluster_.kill_daemon(node);
    if (!chance(70)) return;
    pass();
    start(node);
}

void SeedRun::pause(NodeIndex node) {
    Host& host = cluster_.hosts[node];
    if (!host.process) return;
    tell("pause daemon ", node);
    see(Saw::paused);
    host.process->pause();
    pass();
    if (!chance(70) || !host.process) return;
    host.process->resume();
    tell("resume daemon ", node);
}

void SeedRun::crash(NodeIndex node) {
    if (!cluster_.hosts[node].node->alive()) return;
    tell("crash node ", node);
    see(Saw::node_crashed);
    cluster_.crash_node(node);
    if (!cluster_.is_io_node(node)) job_lives_ = false;
}

// Nothing is left but what the shared file system was made to keep.
void SeedRun::power_loss() {
    tell("all nodes lose power");
    see(Saw::power_lost);
    for (NodeIndex node = 0; node < cluster_.hosts.size(); ++node)
        if (cluster_.hosts[node].node->alive()) cluster_.crash_node(node);
    job_lives_ = false;
}

void SeedRun::partition() {
    std::set<sim::NodeId> island;
    for (NodeIndex i = 0; i < cluster_.hosts.size(); ++i)
        if (chance(30)) island.insert(cluster_.hosts[i].node->id());
    tell("partition off ", island.size(), " nodes");
    see(Saw::partitioned);
    cluster_.sim.partition(island);
    pass();
    if (chance(70)) cluster_.sim.heal();
}

void SeedRun::start(NodeIndex node) {
    Host& host = cluster_.hosts[node];
    if (host.process || !host.node->alive()) return;
    tell("start daemon ", node);
    cluster_.start_daemon(node);
}

// The application comes and goes. `hard`: hardly anything may move, which delays and must not fail anything.
void SeedRun::limit(NodeIndex node, bool hard) {
    Host& host = cluster_.hosts[node];
    if (!host.daemon) return;
    const auto bytes_s = [&] { return chance(40) ? 0.0 : hard ? 1.0 + static_cast<double>(draw(1000)) : 1e6 + static_cast<double>(draw(5'000'000)); };
    PaceLimits limits;
    limits.in_bytes_s = bytes_s();
    limits.out_bytes_s = bytes_s();
    limits.memory_bytes_s = bytes_s() * 3;
    limits.cores = chance(30) ? 0.5 : 0;
    limits.under_way_bytes = chance(40) ? cluster_.options.block_bytes * draw(20) : 0;
    limits.closed = hard && chance(30);
    host.daemon->pace().set_limits(limits);
    host.daemon->pace().spent_cpu(static_cast<Nanos>(draw(2'000)) * millisecond);
    tell("limits of node ", node, ": in ", limits.in_bytes_s, ", out ", limits.out_bytes_s, ", memory ", limits.memory_bytes_s, ", under way ",
         limits.under_way_bytes, limits.closed ? ", closed" : "");
}

// By hand from any node, which keeps the fence; or by the coordinator's retention, which lifts it. It may be killed at any moment.
void SeedRun::remove(NodeIndex node) {
    if (chance(40)) return give_up(node);
    const std::optional<VersionKey> key = removable();
    if (!key) return;
    const VersionState state = cluster_.hosts[0].daemon ? cluster_.hosts[0].daemon->state(*key) : VersionState{};
    const bool lift = chance(50) && cluster_.hosts[0].node->alive() && state.final;
    sim::SimNode& where = *cluster_.hosts[lift ? 0 : node].node;
    if (!where.alive()) return;
    see(Saw::removed);
    sim::Process& process = where.start_process("rm");
    Status status(Code::deadline, "killed");
    const auto task = [](World w, Layout l, VersionKey k, std::uint64_t epoch, Fence fence, Status* out) -> Task<void> {
        const Manifest tombstone = tombstone_of(k, epoch, {}, 1);
        Status removed = co_await remove_version(w, l, tombstone, fence, 4 * second);
        *out = std::move(removed);
    };
    const Nanos span = chance(50) ? static_cast<Nanos>(draw(4'000)) * microsecond : 30 * second;
    (void)cluster_.sim.run(task(process.world(), cluster_.layout, *key, cluster_.roster.epoch, lift ? Fence::lift : Fence::keep, &status),
                           cluster_.sim.now() + span);
    process.kill();
    tell("remove version ", key->version, lift ? ", lifting the fence: " : ": ", status.to_string());
    removed_[*key] = status.ok() && !lift;
    if (removed_[*key]) fenced_[*key] = cluster_.sim.now();
}

// A version that may be about to commit.
std::optional<VersionKey> SeedRun::undecided() {
    capture();
    cluster_.sim.run_until(cluster_.sim.now() + static_cast<Nanos>(draw(chance(50) ? 20 : 400)) * millisecond);
    note_states();
    std::vector<VersionKey> open;
    for (const VersionKey& key : sealed_)
        if (!reported_.count(key) && !removed_.count(key)) open.push_back(key);
    if (open.empty()) return std::nullopt;
    return open[draw(open.size())];
}

// `cairn gc` takes a job for dead that is about to commit: one of the two wins, and the version is whole or given up.
void SeedRun::give_up(NodeIndex node) {
    const std::optional<VersionKey> chosen = undecided();
    if (!chosen || !cluster_.hosts[node].node->alive()) return;
    see(Saw::given_up);
    const VersionKey key = *chosen;
    sim::Process& process = cluster_.hosts[node].node->start_process("gc");
    Status status(Code::deadline, "killed");
    const auto task = [](World w, Layout l, VersionKey k, std::uint64_t epoch, Status* out) -> Task<void> {
        const Manifest tombstone = tombstone_of(k, epoch, {}, 1);
        Status given_up = co_await give_up_version(w, l, tombstone, 4 * second);
        *out = given_up;
        if (!given_up.ok()) co_return;
        Status cleared = co_await clear_version(w, l, k, Fence::keep, 4 * second);
        (void)cleared;
    };
    removed_[key] = false;
    const Nanos span = chance(30) ? static_cast<Nanos>(draw(10'000)) * microsecond : 30 * second;
    (void)cluster_.sim.run(task(process.world(), cluster_.layout, key, cluster_.roster.epoch, &status), cluster_.sim.now() + span);
    process.kill();
    tell("give up version ", key.version, ": ", status.to_string());
    removed_[key] = status.ok();
    if (status.ok()) given_up_.insert(key);
    if (status.ok() && chance(cluster_.is_io_node(node) ? 60 : 15)) crash(node);  // it said so, so it lasts; an I/O node takes no image with it
}

// The application takes a version back: what its daemon answers is how it ends, on all nodes and for good.
void SeedRun::cancel(NodeIndex node) {
    const std::optional<VersionKey> chosen = undecided();
    Host& host = cluster_.hosts[node];
    if (!chosen || !host.daemon || !host.booted || !host.daemon->knows(chosen->incarnation) || let_go_.count(*chosen)) return;
    see(Saw::cancelled);
    const auto answer = std::make_shared<std::optional<Status>>();
    const auto task = [](Node* daemon, VersionKey key, Nanos deadline, std::shared_ptr<std::optional<Status>> out) -> Task<void> {
        Status status = co_await daemon->cancel(key, deadline);
        *out = std::move(status);
    };
    const Nanos span = chance(30) ? static_cast<Nanos>(draw(400)) * millisecond : 20 * second;
    host.gate->spawn(task(host.daemon.get(), *chosen, cluster_.sim.now() + span, answer));  // goes with the daemon, if that is killed meanwhile
    cluster_.sim.run_until([&] { return answer->has_value(); }, cluster_.sim.now() + span + second);
    const Status status = answer->value_or(Status(Code::deadline, "killed"));
    tell("cancel version ", chosen->version, " on node ", node, ": ", status.to_string());
    if (status.code() == Code::already_exists) return;  // committed: it stays
    removed_[*chosen] = status.ok();
    if (status.ok()) given_up_.insert(*chosen);
}

// Scratch needs the room: on one node, or on all, whatever the daemon lets go of older versions goes.
void SeedRun::let_go(NodeIndex node) {
    const bool all = chance(50);
    std::uint32_t images = 0;
    for (NodeIndex each = 0; each < cluster_.hosts.size(); ++each) {
        Host& host = cluster_.hosts[each];
        if (!host.daemon || (!all && each != node)) continue;
        for (const VersionKey& key : host.daemon->versions()) {
            if (key == cluster_.key(next_version_ - 1)) continue;
            for (Rank rank = 0; rank < cluster_.ranks(); ++rank) {
                const LocalImage* image = host.daemon->image(key, rank);
                const std::string path = image ? image->path : "";
                const VersionState before = host.daemon->state(key);
                if (!image || !host.daemon->drop_image(key, rank).ok()) continue;
                if (!before.final && before.failure.ok()) fail("an image left scratch while its version was being flushed: version " + std::to_string(key.version));
                (void)host.node->scratch().remove(path, host.node->id()).ok();
                let_go_.insert(key);
                ++images;
            }
        }
    }
    if (images > 0) see(Saw::let_go);
    tell(images, " images leave scratch of ", all ? "all nodes" : "node " + std::to_string(node));
}

void SeedRun::pass() {
    const Nanos span = chance(50) ? static_cast<Nanos>(draw(200)) * millisecond : static_cast<Nanos>(draw(8000)) * millisecond;
    const Nanos until = cluster_.sim.now() + span;
    // stop now and then to see what daemons say, for a promise once made must hold
    while (cluster_.sim.now() < until) {
        cluster_.sim.run_until(std::min(until, cluster_.sim.now() + 50 * millisecond));
        note_states();
    }
}

// No faults from here on, not even those that wait for their moment.
void SeedRun::be_quiet() {
    armed_.reset();
    ++strikes_;
    after_this_.reset();
    cluster_.sim.faults() = {};
}

// ---- a fault in the middle of something ----

// A flush, mostly, in which something happens at a chosen operation of a daemon.
void SeedRun::strike(NodeIndex node) {
    static const std::array operations = {"publish", "publish", "publish", "publish", "publish", "fsync", "fsync",   "fsync_directory", "fsync_directory", "create",
                                          "resize",  "remove",  "write",   "open",    "stat",    "list",  "mkdir",   "send",            "payload",         "checksums"};
    using Kind = Strike::Kind;
    static const std::array kinds = {Kind::kill, Kind::pause, Kind::crash, Kind::power, Kind::power, Kind::fail, Kind::hang, Kind::trouble, Kind::trouble};
    Strike next;
    next.operation = operations[draw(operations.size())];
    next.kind = kinds[draw(kinds.size())];
    if (next.kind == Kind::trouble) next.operation = "publish";
    next.before = next.operation == "publish" ? draw(2) : chance(60) ? draw(3) : draw(30);
    next.delay = chance(40) ? 0 : static_cast<Nanos>(draw(5'000)) * microsecond;
    be_quiet();  // an earlier one is over
    cluster_.sim.faults() = background_;
    armed_ = next;
    if (chance(70)) capture();
    pass();
    armed_.reset();
    if (chance(10)) return power_loss();  // what others made of it meanwhile must last
    if (!chance(70)) return;
    if (cluster_.hosts[node].process) cluster_.hosts[node].process->resume();
    start(node);
}

void SeedRun::observe(sim::Process& process, const std::string& what, const std::string& detail) {
    if (after_this_) {
        cluster_.sim.faults() = *after_this_;
        after_this_.reset();
    }
    if (process.name() != "cairnd") return;
    const NodeIndex node = process.node().id();
    const bool of_part = detail.find("/part-") != std::string::npos;
    if (what == "create" && of_part && cluster_.is_io_node(node)) see(Saw::io_node_led);
    if (what == "resize" && of_part) see(Saw::several_leaders);
    if (what == "publish" && detail.find("/manifest.") != std::string::npos) check_superseded(process, detail);
    if (!armed_ || what != armed_->operation || armed_->before-- > 0) return;
    const Strike strike = *armed_;
    armed_.reset();
    see(Saw::struck);
    tell("strikes node ", node, " at ", what, " ", detail, ", kind ", static_cast<int>(strike.kind));
    sim::Faults& faults = cluster_.sim.faults();
    if (strike.kind == Strike::Kind::trouble) return begin_trouble();
    if (strike.kind == Strike::Kind::fail || strike.kind == Strike::Kind::hang) {
        after_this_ = faults;
        if (strike.kind == Strike::Kind::hang) faults.hang_io = 1;
        else faults.read_error = faults.write_error = faults.metadata_error = faults.fsync_error = 1;
        return;
    }
    cluster_.sim.at(cluster_.sim.now() + strike.delay, [this, node, kind = strike.kind, mine = strikes_] {
        Host& host = cluster_.hosts[node];
        if (mine != strikes_ || !host.process) return;
        note_states();
        if (kind == Strike::Kind::kill) cluster_.kill_daemon(node);
        else if (kind == Strike::Kind::pause) host.process->pause();
        else if (kind == Strike::Kind::crash) crash(node);
        else power_loss();
    });
}

// The operation comes back when nobody waits for it any more, if ever, and what else is asked of names until then fails often.
void SeedRun::begin_trouble() {
    sim::Faults& faults = cluster_.sim.faults();
    after_this_ = faults;
    after_this_->metadata_error = std::max(faults.metadata_error, 0.6);
    faults.hang_io = 1;
    faults.hang_io_max = 12 * second;
    cluster_.sim.at(cluster_.sim.now() + 5 * second, [this, mine = strikes_] {
        if (mine == strikes_) cluster_.sim.faults() = background_;
    });
}

SeedResult run_scenario(const Scenario& scenario, bool trace) {
    SeedRun run(scenario, trace);
    return run.run();
}

}  // namespace cairn::testing
