// The run of a scenario: step after step, then quiet: everything heals, limits are bearable, and what was promised must be there.
#include "proof/seeds.hpp"

#include <algorithm>

#include "proof/promise.hpp"
#include "proof/steps.hpp"

namespace cairn::testing {

SeedRun::SeedRun(const Scenario& drawn, bool trace) : SeedRun(drawn, cluster_of(drawn), trace) {}

SeedRun::SeedRun(const Scenario& drawn, ClusterOptions options, bool trace)
    : scenario(drawn), prng(sim::mix(drawn.seed)), background(faults_of(drawn)), cluster(std::move(options)) {
    cluster.sim.set_trace(trace);
    cluster.sim.set_observer([this](sim::Process& process, const char* what, const std::string& detail) { observe(*this, process, what, detail); });
    if (scenario.only_messages_suffer()) see(Saw::only_messages);
    if (scenario.only_limits_hold()) see(Saw::only_limits);
    if (scenario.gone > 0) see(Saw::target_gone);
    if (scenario.small_io != 0) see(Saw::small_io);
    if (scenario.apart_s > 0) see(Saw::clocks_apart);
    if (scenario.placed && !scenario.target_bytes_s.empty()) see(Saw::on_targets);
    const auto& targets = scenario.target_bytes_s;
    if (std::adjacent_find(targets.begin(), targets.end(), std::not_equal_to<>()) != targets.end()) see(Saw::targets_differ);
}

SeedResult SeedRun::run() {
    if (!open(*this)) return finish("the first open failed");
    if (!scenario.only_messages_suffer())
        for (NodeIndex node = 0; node < cluster.hosts.size(); ++node)
            if (chance(20)) limit(*this, node, false);
    for (const Step& step : scenario.steps) {
        take(step);
        if (!result.ok) break;
    }
    if (result.ok) check_ending();
    return finish("");
}

void SeedRun::check_ending() {
    prng = sim::Prng(sim::mix(~scenario.seed));
    for (const auto check : {settle, check_promise, check_scratch, check_dead, check_alone, check_liveness, check_dead, check_started_again, check_flipped_bit})
        if (result.ok) check(*this);
}

void SeedRun::fail(std::string text) {
    if (!result.ok) return;
    result.ok = false;
    result.failure = std::move(text);
}

namespace {

struct FaultSeen {
    double sim::Faults::*rate;
    Saw saw;
};
constexpr std::array faults_seen = {
    FaultSeen{&sim::Faults::read_error, Saw::read_failed},
    FaultSeen{&sim::Faults::write_error, Saw::write_failed},
    FaultSeen{&sim::Faults::metadata_error, Saw::names_failed},
    FaultSeen{&sim::Faults::out_of_space, Saw::storage_full},
    FaultSeen{&sim::Faults::fsync_error, Saw::fsync_failed},
    FaultSeen{&sim::Faults::hang_io, Saw::io_hung},
    FaultSeen{&sim::Faults::stale_read, Saw::stale_read},
    FaultSeen{&sim::Faults::other_read, Saw::other_read},
    FaultSeen{&sim::Faults::payload_damage, Saw::payload_damaged},
    FaultSeen{&sim::Faults::payload_loss, Saw::payload_lost},
    FaultSeen{&sim::Faults::twin_open, Saw::twin_opened},
    FaultSeen{&sim::Faults::resize_lost, Saw::resize_lost},
    FaultSeen{&sim::Faults::grow_lost, Saw::growth_lost},
    FaultSeen{&sim::Faults::publish_renames, Saw::published_by_rename},
    FaultSeen{&sim::Faults::wall_set, Saw::wall_set},
    FaultSeen{&sim::Faults::room_untrue, Saw::room_untrue},
};

}  // namespace

SeedResult SeedRun::finish(std::string failure) {
    if (!failure.empty()) fail(std::move(failure));
    for (const FaultSeen& each : faults_seen)
        if (cluster.sim.struck().*each.rate > 0) see(each.saw);
    result.fingerprint = cluster.sim.fingerprint();
    return std::move(result);
}

namespace {

void end_job(SeedRun& run, NodeIndex) {
    run.tell("the job dies and comes back");
    run.known.job_lives = false;
}

struct StepKind {
    Happening what;
    bool fault;  // something goes wrong
    void (*take)(SeedRun& run, NodeIndex node);
};

constexpr std::array steps = {
    StepKind{Happening::capture, false, [](SeedRun& run, NodeIndex) { capture(run); }},
    StepKind{Happening::capture_again, false, capture_again},
    StepKind{Happening::cancel, false, cancel},
    StepKind{Happening::open, true, open_and_die},
    StepKind{Happening::restore, false, restore},
    StepKind{Happening::stop, true, stop},
    StepKind{Happening::succeed, true, succeed},
    StepKind{Happening::wait, false, wait},
    StepKind{Happening::forget, false, forget},
    StepKind{Happening::end_job, true, end_job},
    StepKind{Happening::start, true, start},
    StepKind{Happening::limit, false, [](SeedRun& run, NodeIndex node) { limit(run, node, run.chance(20)); }},
    StepKind{Happening::remove, false, remove},
    StepKind{Happening::let_go, false, let_go},
    StepKind{Happening::kill, true, kill},
    StepKind{Happening::pause, true, pause},
    StepKind{Happening::crash, true, crash},
    StepKind{Happening::flip, true, flip},
    StepKind{Happening::power, true, [](SeedRun& run, NodeIndex) { power_loss(run); }},
    StepKind{Happening::partition, true, [](SeedRun& run, NodeIndex) { partition(run); }},
    StepKind{Happening::strike, true, strike},
    StepKind{Happening::mount, true, cover},
    StepKind{Happening::lose, true, lose},
    StepKind{Happening::root, true, spoil_root},
    StepKind{Happening::depend, false, depend},
};
static_assert(steps.size() == happening_names.size());

}  // namespace

void SeedRun::take(const Step& step) {
    prng = sim::Prng(step.seed);
    note_states(*this);
    const NodeIndex node = static_cast<NodeIndex>(draw(cluster.hosts.size()));
    const auto kind = std::find_if(steps.begin(), steps.end(), [&](const StepKind& each) { return each.what == step.what; });
    result.faults += kind->fault;
    kind->take(*this, node);
    pass(*this);
    if (!known.job_lives && result.ok) reopen(*this);
}

void pass(SeedRun& run) {
    const Nanos span = run.chance(50) ? static_cast<Nanos>(run.draw(200)) * millisecond : static_cast<Nanos>(run.draw(8000)) * millisecond;
    const Nanos until = run.cluster.sim.now() + span;
    // stop now and then to see what daemons say, for a promise once made must hold
    while (run.cluster.sim.now() < until) {
        run.cluster.sim.run_until(std::min(until, run.cluster.sim.now() + 50 * millisecond));
        note_states(run);
    }
}

SeedResult run_scenario(const Scenario& scenario, bool trace) {
    SeedRun run(scenario, trace);
    return run.run();
}

}  // namespace cairn::testing
