// The application's steps while its job lives: it captures, and takes versions back.
#include "engine/promise_sim.hpp"
#include "engine/steps_sim.hpp"

namespace cairn::testing {

void capture(SeedRun& run) {
    if (!run.known.job_lives) return;
    const bool whole = run.scenario.only_messages_suffer() || !run.chance(20);
    const Status status = run.cluster.capture_all(run.known.next_version, whole ? 60 * second : static_cast<Nanos>(run.draw(2'000'000)));
    run.tell("capture version ", run.known.next_version, ": ", status.to_string());
    if (status.ok()) run.known.sealed.insert(run.cluster.key(run.known.next_version));
    ++run.known.next_version;
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
