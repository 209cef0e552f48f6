// Ranks that wait while the run goes on: whatever goes wrong meanwhile, each is told by its deadline, as long as the daemon lives that it asked; and who
// has no deadline is told, too, how the version ended or why it has not, once faults stopped.
#include <algorithm>

#include "proof/promise.hpp"
#include "proof/steps.hpp"

namespace cairn::testing {

namespace {

// A daemon here looks at its clock the moment that something is due: what is late by more has been forgotten.
constexpr Nanos late_max = millisecond;

Task<void> wait_for(Cluster* cluster, Node* daemon, VersionKey key, Level level, Nanos deadline, std::shared_ptr<Waiter::Answer> out) {
    Status status = co_await daemon->wait(std::move(key), level, deadline);
    out->status = std::move(status);
    out->at = cluster->sim.now();
}

std::string text_of(const Waiter& waiter) {
    return "node " + std::to_string(waiter.node) + ", version " + std::to_string(waiter.key.version) + (waiter.level == Level::sealed ? " to be sealed" : " to be committed");
}

// It never came by its deadline, or since its daemon went on.
bool is_late(const Waiter& waiter, Nanos now) { return waiter.due != never && now > std::max(waiter.due, waiter.process->resumed_at()) + late_max; }

// What it was told is so.
void check_answer(SeedRun& run, const Waiter& waiter) {
    run.see(waiter.due == never ? Saw::waited_without_end : Saw::waited_meanwhile);
    if (is_late(waiter, waiter.answer->at)) run.fail("a rank that waits is told late: " + text_of(waiter));
    if (!waiter.answer->status->ok()) return;
    if (waiter.level == Level::sealed && run.cluster.sealing[waiter.key].size() < run.cluster.ranks())
        run.fail("a rank was told that every rank has sealed, and not every one has: " + text_of(waiter));
    if (waiter.level == Level::committed) run.known.reported.emplace(waiter.key, true);  // whether or not another one says so, too
}

}  // namespace

bool holds_any(const SeedRun& run, const Host& host, const VersionKey& key) {
    for (Rank rank = 0; rank < run.cluster.ranks(); ++rank)
        if (host.daemon->image(key, rank)) return true;
    return false;
}

// Of a version that was captured now, on some nodes that hold something of it. Their choice hangs on the step's seed and draws nothing, so no other detail of the
// step changes.
void begin_waiters(SeedRun& run, const VersionKey& key) {
    for (NodeIndex node = 0; node < run.cluster.hosts.size(); ++node) {
        const Host& host = run.cluster.hosts[node];
        std::uint64_t random = sim::mix(run.scenario.seed * 31 + key.version * 1009 + key.incarnation.low + node);
        const auto draw = [&](std::uint64_t below) { return (random = sim::mix(random + 1)) % below; };
        if (!host.daemon || !host.booted || host.process->is_paused() || draw(100) >= 30 || !holds_any(run, host, key)) continue;
        Waiter waiter;
        waiter.key = key;
        waiter.level = draw(2) == 0 ? Level::sealed : Level::committed;
        waiter.node = node;
        waiter.process = host.process;
        const std::uint64_t kind = draw(3);
        const Nanos span = kind == 0 ? static_cast<Nanos>(draw(300)) * millisecond : static_cast<Nanos>(draw(40'000)) * millisecond;
        if (kind != 2) waiter.due = run.cluster.sim.now() + span;
        host.gate->spawn(wait_for(&run.cluster, host.daemon.get(), key, waiter.level, kind == 2 ? never : host.process->world().clock.in(span), waiter.answer));
        run.waiters.push_back(std::move(waiter));
    }
}

void check_waiters(SeedRun& run) {
    run.waiters.remove_if([&](const Waiter& waiter) {
        const bool told = waiter.answer->status.has_value();
        if (told) check_answer(run, waiter);
        else if (waiter.process->alive() && !waiter.process->is_paused() && is_late(waiter, run.cluster.sim.now()))
            run.fail("a rank that waits is not told in time: " + text_of(waiter));
        return told || !waiter.process->alive();
    });
}

// All is at rest.
void check_all_waiters_told(SeedRun& run) {
    run.cluster.sim.run_until(run.cluster.sim.now() + late_max);  // what they wait for may just have happened
    check_waiters(run);
    for (const Waiter& waiter : run.waiters)
        if (waiter.due == never && run.result.ok) run.fail("a rank waits for ever, though all is at rest: " + text_of(waiter));
}

}  // namespace cairn::testing
