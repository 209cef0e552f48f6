// The job and its steps. The job is no test of the cluster: what fails in it because of a fault may fail. The checks at the end are, and what every
// step and each restore must hold.
#include "proof/stepped_run.hpp"

#include <algorithm>

#include "proof/promise.hpp"
#include "proof/steps.hpp"

namespace cairn::testing {

namespace {

constexpr Nanos patience = 20 * second;  // of the application, with whatever it waits for

Scenario small_job(const JobCase& which) {
    Scenario scenario;
    scenario.ranks_per_node = {1, 1};
    scenario.files = which.files;
    scenario.leaders = which.leaders;
    scenario.buffers = 2;
    scenario.storage_bytes_s = 500'000'000;  // less than it can be: attempts may fail (Scenario::only_messages_suffer)
    return scenario;
}

// Two blocks and five: fewer, and one node would write them all (model/plan.cpp). What one has more than the other travels, this way and that.
ClusterOptions cluster_of_small(const Scenario& scenario) {
    ClusterOptions options = cluster_of(scenario);
    options.image_bytes = [](Rank rank, Version version) -> std::uint64_t { return (rank + version) % 2 == 0 ? 7'000 : 20'000; };
    options.model.named_processes = true;
    options.model.wall_time_s = 0;
    return options;
}

}  // namespace

SteppedRun::SteppedRun(JobCase which, Chooser& chooser, bool trace)
    : chooser_(chooser), scenario_(small_job(which)), run_(scenario_, cluster_of_small(scenario_), trace), states_(run_.cluster) {
    sim::Simulation& sim = run_.cluster.sim;
    sim.set_before([this](sim::Process&, const char* what, const std::string& detail) { before(what, detail); });
    sim.set_observer([this](sim::Process& process, const char* what, const std::string& detail) { observe(process, what, detail); });
    sim.set_after_event([this] { look(); });
}

SeedResult SteppedRun::run() {
    asking_ = true;
    do_job();
    asking_ = false;
    chooser_.job_over();
    if (run_.result.ok) run_.check_ending();
    return run_.finish("");
}

// ---- the job ----

void SteppedRun::do_job() {
    open_job();
    for (Version version = 1; version <= 2 && run_.known.job_lives; ++version) capture(version);
    commit();
    if (run_.known.job_lives) restore();
    run_.known.job_lives = false;  // in order, or it died
    for (int tries = 0; tries < 3 && !run_.known.job_lives; ++tries) come_back();
}

bool SteppedRun::all_back() {
    const auto& hosts = run_.cluster.hosts;
    const auto back = [&] { return std::all_of(hosts.begin(), hosts.end(), [](const Host& host) { return host.node->alive(); }); };
    return run_.cluster.sim.run_until(back, run_.cluster.sim.now() + patience);
}

void SteppedRun::open_job() {
    Status status = unavailable("a node is away");
    for (int tries = 0; tries < 3; ++tries) {
        if (!all_back()) continue;
        run_.known.job_lives = true;  // its processes do
        status = run_.cluster.open_job(patience);
        if (status.ok() || !run_.known.job_lives) break;
    }
    run_.tell("open: ", status.to_string());
    run_.known.job_lives = run_.known.job_lives && status.ok();
    run_.known.next_version = 1;
    if (!status.ok()) return;
    run_.known.chains[run_.cluster.roster.incarnation] = {};
    run_.known.epochs[run_.cluster.roster.incarnation] = run_.cluster.roster.epoch;
}

bool SteppedRun::capture(Version version) {
    Cluster& cluster = run_.cluster;
    if (!run_.known.job_lives) return false;
    std::vector<Status> statuses(cluster.ranks(), Status(Code::deadline, "not captured"));
    std::vector<sim::Process*> clients;
    {
        std::vector<Task<void>> tasks;
        const auto one = [](Cluster* c, sim::Process* p, Rank r, Version v, Status* out) -> Task<void> {
            Status status = co_await c->capture(*p, r, v);
            *out = std::move(status);
        };
        for (Rank rank = 0; rank < cluster.ranks(); ++rank) {
            sim::Process& client = cluster.hosts[cluster.node_of(rank)].node->start_process("rank" + std::to_string(rank));
            clients.push_back(&client);
            tasks.push_back(one(&cluster, &client, rank, version, &statuses[rank]));
            tasks.back().start();
        }
        const auto over = [&] { return !run_.known.job_lives || std::all_of(tasks.begin(), tasks.end(), [](const Task<void>& task) { return task.done(); }); };
        cluster.sim.run_until(over, cluster.sim.now() + patience);
        for (sim::Process* client : clients) client->kill();
    }
    run_.known.next_version = version + 1;
    const auto failed = std::find_if(statuses.begin(), statuses.end(), [](const Status& status) { return !status.ok(); });
    run_.tell("capture version ", version, ": ", failed == statuses.end() ? "ok" : failed->to_string());
    if (failed != statuses.end()) return false;
    run_.known.sealed.insert(cluster.key(version));
    return true;
}

// Whatever was sealed, or the job's end.
void SteppedRun::commit() {
    const auto over = [&] {
        if (!run_.known.job_lives) return true;
        for (const VersionKey& key : run_.known.sealed)
            for (const Host& host : run_.cluster.hosts)
                if (!host.daemon || host.daemon->state(key).level != Level::committed) return false;
        return true;
    };
    run_.cluster.sim.run_until(over, run_.cluster.sim.now() + patience);
}

// As a restart finds it. It may pass over a version that can not be read, since it says so.
std::optional<VersionKey> SteppedRun::find_newest(NodeIndex reader, bool* looked) {
    const std::map<VersionKey, bool> told_before = run_.known.reported;
    sim::Process& process = run_.cluster.hosts[reader].node->start_process("reader");
    Result<RestorableSeries> found(deadline_passed("listing"));
    const auto find = [](const Cluster* cluster, World world, Result<RestorableSeries>* out) -> Task<void> {
        Result<RestorableSeries> all = co_await cluster->look(world, {});
        *out = std::move(all);
    };
    (void)run_.cluster.sim.run(find(&run_.cluster, process.world(), &found), run_.cluster.sim.now() + patience);
    process.kill();
    if (looked) *looked = found.ok();
    bool damage = false;
    std::optional<VersionKey> newest;
    for (const RestorableVersion& each : found.ok() ? found->versions : std::vector<RestorableVersion>()) {
        if (each.committed) newest = each.key;
        damage |= !each.damage.ok();
    }
    run_.tell("finds ", !found.ok() ? found.status().to_string() : newest ? "version " + std::to_string(newest->version) : "no version");
    if (!newest) return std::nullopt;
    if (!damage) check_newest(run_, *newest, told_before);
    return newest;
}

void SteppedRun::restore() {
    const std::optional<VersionKey> newest = find_newest(1);
    if (!newest || !run_.known.job_lives) return;
    const Status status = run_.cluster.check_committed(*newest, 1, patience);
    run_.tell("restored: ", status.to_string());
    if (status.code() == Code::internal) run_.fail("a restore gave wrong bytes: " + status.to_string());
}

// The job is started again, on nodes that came back where they were lost, and goes on from the newest version.
void SteppedRun::come_back() {
    if (!all_back()) return;
    run_.known.job_lives = true;
    bool looked = false;
    const std::optional<VersionKey> newest = find_newest(0, &looked);
    if (!looked || !run_.known.job_lives) return void(run_.known.job_lives = false);
    open_job();
    if (!run_.known.job_lives) return;
    if (newest && !go_on_from(*newest)) return void(run_.known.job_lives = false);
    capture(run_.known.next_version);
    commit();
    if (run_.known.job_lives) restore();
}

bool SteppedRun::go_on_from(const VersionKey& from) {
    Cluster& cluster = run_.cluster;
    const Parent parent{from.incarnation, from.version};
    run_.known.chains[cluster.roster.incarnation] = parent;
    if (!cluster.hosts[0].node->alive()) return false;
    sim::Process& process = cluster.hosts[0].node->start_process("rank0");
    Status status(Code::deadline, "");
    const auto task = [](World w, Layout l, std::string name, std::uint64_t epoch, FromRecord r, Status* out) -> Task<void> {
        Status recorded = co_await record_parent(w, l, name, epoch, r, w.clock.in(patience));
        *out = std::move(recorded);
    };
    const FromRecord record{cluster.roster.incarnation, parent};
    (void)cluster.sim.run(task(process.world(), cluster.layout, cluster.roster.name, cluster.roster.epoch, record, &status), cluster.sim.now() + patience);
    process.kill();
    run_.tell("goes on from version ", from.version, ": ", status.to_string());
    if (!status.ok()) return false;
    run_.known.recorded[cluster.roster.incarnation] = cluster.sim.now();
    if (const Status told = cluster.name_parent(parent, patience); !told.ok()) return false;
    run_.known.next_version = from.version + 1;
    return true;
}

// ---- steps, operations, faults ----

void SteppedRun::look() {
    end_damage();
    if (chooser_.indifferent()) {
        if (run_.cluster.sim.now() < looked_ + 10 * millisecond) return;
        looked_ = run_.cluster.sim.now();
        return note_states(run_);
    }
    const std::uint64_t state = states_.now(), whole = sim::mix(state) ^ states_.under_way();
    if (whole == whole_) return;
    whole_ = whole;
    ++step_;
    note_states(run_);
    chooser_.stepped(state);
    for (const StepFault& kind : step_faults())
        for (NodeIndex node = 0; node < (kind.of_node ? 2u : 1u); ++node) {
            if (!asking_ || !kind.possible(run_, node)) continue;
            const Fault fault{false, step_, kind.name, node};
            if (!chooser_.strikes(fault)) continue;
            run_.tell("strikes: ", to_text({fault}));
            striking_ = true;
            kind.strike(run_, node);
            striking_ = false;
            return;
        }
}

void SteppedRun::before(const std::string& operation, const std::string& detail) {
    if (asking_ && !striking_) ask_operation(operation, detail, true);
}

void SteppedRun::observe(sim::Process& process, const std::string& operation, const std::string& detail) {
    testing::observe(run_, process, operation, detail);
    if (!asking_ || striking_) return;
    ++operation_;
    if (faults_last_ != 0 && operation_ > faults_last_ && !damaged_) {
        run_.cluster.sim.faults() = {};
        faults_last_ = 0;
    }
    ask_operation(operation, detail, false);
}

void SteppedRun::ask_operation(const std::string& operation, const std::string& detail, bool before) {
    for (const OperationFault& kind : operation_faults()) {
        if (!testing::strikes(kind, operation, detail, before)) continue;
        const Fault fault{true, operation_ + before, kind.name, 0};
        if (!chooser_.strikes(fault)) continue;
        run_.tell("strikes: ", to_text({fault}), ", ", operation, " ", detail);
        kind.set(run_.cluster.sim.faults());
        faults_last_ = fault.at;
        if (run_.cluster.sim.faults().payload_damage > 0) damaged_ = 0;
        return;
    }
}

// Damage is drawn when a payload arrives: it is the one that left last, and those that overtake it.
void SteppedRun::end_damage() {
    if (!damaged_) return;
    const auto& under_way = run_.cluster.sim.under_way();
    if (*damaged_ == 0)
        for (const auto& [number, sent] : under_way)
            if (!sent.message) damaged_ = number;
    if (under_way.count(*damaged_)) return;
    damaged_.reset();
    run_.cluster.sim.faults() = {};
}

}  // namespace cairn::testing
