// Daemons that end in order or have a successor while they stand still, and ranks that wait for them.
#include "proof/promise.hpp"
#include "proof/steps.hpp"

namespace cairn::testing {

namespace {

// Mostly in the middle of a flush.
void begin_flush(SeedRun& run) {
    if (!run.chance(70)) return;
    capture(run);
    run.cluster.sim.run_until(run.cluster.sim.now() + static_cast<Nanos>(run.draw(run.chance(50) ? 20 : 400)) * millisecond);
    note_states(run);
}

bool is_well(const Host& host) { return host.process && host.booted && !host.process->is_paused(); }

}  // namespace

// SIGTERM: what it can not finish in time is left to the next one, which a rank's next call starts, or its keeper.
void stop(SeedRun& run, NodeIndex node) {
    begin_flush(run);
    Host& host = run.cluster.hosts[node];
    if (!is_well(host)) return;
    sim::Process* const process = host.process;
    const Nanos wait = run.chance(30) ? 0 : static_cast<Nanos>(run.draw(8'000)) * millisecond;
    const auto ended = std::make_shared<Cluster::Ended>();
    run.cluster.stop_daemon(node, wait, ended);
    if (run.chance(40)) capture(run);  // sealed while it ends
    run.cluster.sim.run_until([&] { return host.process != process; }, run.cluster.sim.now() + wait + 60 * second);
    note_states(run);
    run.tell("daemon ", node, ended->done ? " ends, and leaves " : " does not end: ", ended->unfinished.size(), " versions");
    if (ended->done) run.see(ended->unfinished.empty() ? Saw::stopped : Saw::stopped_in_flush);
    if (host.process == process) run.cluster.kill_daemon(node);
    if (run.chance(70)) start(run, node);
}

// It stands still for so long that a second one takes over, from scratch; then it goes on where it was.
void succeed(SeedRun& run, NodeIndex node) {
    begin_flush(run);
    Host& host = run.cluster.hosts[node];
    if (!is_well(host)) return;
    run.tell("daemon ", node, " stands still, and a second one is started");
    run.see(Saw::succeeded);
    run.cluster.succeed_daemon(node);
    pass(run);
    if (run.chance(20) || host.formers.empty()) return;  // it may wake up later, at any step that resumes
    run.tell("the first daemon ", node, " goes on");
    run.see(Saw::former_woke);
    for (const Daemon& former : host.formers) former.process->resume();
    if (run.chance(50)) capture(run);
    pass(run);
    if (run.chance(60)) run.cluster.kill_formers(node);
}

// A rank waits for a version: it is told by its deadline, unless its daemon ends before.
void wait(SeedRun& run, NodeIndex node) {
    begin_flush(run);
    Host& host = run.cluster.hosts[node];
    if (!is_well(host) || run.known.next_version == 1) return;
    const VersionKey key = run.cluster.key(run.known.next_version - 1 - run.draw(std::min<Version>(2, run.known.next_version - 1)));
    const Level level = run.chance(50) ? Level::sealed : Level::committed;
    const Nanos span = run.chance(30) ? static_cast<Nanos>(run.draw(300)) * millisecond : static_cast<Nanos>(run.draw(40'000)) * millisecond;
    const auto answer = std::make_shared<std::optional<Status>>();
    const auto task = [](Node* daemon, VersionKey version, Level wanted, Nanos deadline, std::shared_ptr<std::optional<Status>> out) -> Task<void> {
        Status status = co_await daemon->wait(std::move(version), wanted, deadline);
        *out = std::move(status);
    };
    sim::Process* const process = host.process;
    host.gate->spawn(task(host.daemon.get(), key, level, process->world().clock.in(span), answer));
    run.cluster.sim.run_until([&] { return answer->has_value(); }, run.cluster.sim.now() + span + 100 * millisecond);
    note_states(run);
    const std::string what = "version " + std::to_string(key.version) + (level == Level::sealed ? " to be sealed" : " to be committed");
    if (host.process == process && !answer->has_value()) return run.fail("a rank that waits is not told in time: " + what);
    if (!answer->has_value()) return;
    const Status status = **answer;
    run.tell("a rank on node ", node, " waits for ", what, ": ", status.to_string());
    if (status.ok()) run.see(level == Level::sealed ? Saw::waited_sealed : Saw::waited_committed);
    else run.see(status.code() == Code::deadline ? Saw::wait_timed_out : Saw::wait_failed);
    const bool committed = run.known.reported.count(key) > 0;
    if (status.ok() && level == Level::committed && !committed) run.fail("a rank was told that a version is committed, and its daemon does not say so: " + what);
}

}  // namespace cairn::testing
