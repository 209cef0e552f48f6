// The application's steps while its job lives: it captures, and takes versions back.
#include "proof/promise.hpp"
#include "proof/steps.hpp"

namespace cairn::testing {

void capture(SeedRun& run) {
    if (!run.known.job_lives) return;
    const bool whole = run.scenario.only_messages_suffer() || run.scenario.only_limits_hold() || !run.chance(20);
    const Status status = run.cluster.capture_all(run.known.next_version, whole ? 60 * second : static_cast<Nanos>(run.draw(2'000'000)));
    run.tell("capture version ", run.known.next_version, ": ", status.to_string());
    if (status.ok() && !run.cluster.has_unslotted(run.known.next_version)) run.known.sealed.insert(run.cluster.key(run.known.next_version));
    if (++run.known.captured[run.cluster.roster.incarnation] > Scenario().versions) run.see(Saw::many_versions);
    begin_waiters(run, run.cluster.key(run.known.next_version));
    ++run.known.next_version;
}

// A rank takes a version again, with other bytes: what its node holds may be on its way already, so the second image is refused.
void capture_again(SeedRun& run, NodeIndex node) {
    Host& host = run.cluster.hosts[node];
    const std::vector<Rank> ranks = run.cluster.ranks_on(node);
    if (!run.known.job_lives || !host.daemon || !host.booted || ranks.empty()) return;
    const Rank rank = ranks[run.draw(ranks.size())];
    const VersionKey key = run.cluster.key(run.known.next_version - 1);
    const Node* daemon = host.daemon.get();
    const auto held = [&]() -> const LocalImage* { return host.daemon.get() == daemon ? host.daemon->image(key, rank) : nullptr; };
    if (!held() || host.process->is_paused()) return;
    const std::string path = held()->path;
    sim::Process& client = host.node->start_process("rank" + std::to_string(rank));
    const auto take = [](Cluster* cluster, sim::Process* process, Rank of, Version version, std::optional<Status>* out) -> Task<void> {
        Status status = co_await cluster->capture(*process, of, version, 1);
        *out = std::move(status);
    };
    std::optional<Status> again;
    (void)run.cluster.sim.run(take(&run.cluster, &client, rank, key.version, &again), run.cluster.sim.now() + 60 * second);
    client.kill();
    if (!again) return;
    run.see(Saw::taken_again);
    run.tell("rank ", rank, " takes version ", key.version, " again: ", again->to_string());
    if (held() && held()->path == path && again->ok()) run.fail("a second image of a version is taken for the first: rank " + std::to_string(rank));
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
