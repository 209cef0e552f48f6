// A version that has parts of an older one is published while the older one may be removed, by who does not know of it; and goes itself.
#include <utility>

#include "catalog/removal.hpp"
#include "proof/dependents.hpp"
#include "proof/promise.hpp"
#include "proof/steps.hpp"

namespace cairn::testing {

namespace {

constexpr Nanos operator_wait = 4 * second;

// Called committed, and nobody tried to remove it.
std::optional<VersionKey> some_base(SeedRun& run) {
    std::vector<VersionKey> found;
    for (const auto& [key, reported] : run.known.reported)
        if (!run.known.removed.count(key)) found.push_back(key);
    if (found.empty()) return std::nullopt;
    return found[run.draw(found.size())];
}

// Of an incarnation of its own: no restart comes to it.
VersionKey newer_than(SeedRun& run, const VersionKey& base) {
    const std::uint64_t id = sim::mix(run.draw(UINT64_MAX));
    return {base.name, base.version + 1 + run.draw(3), {id | 1, sim::mix(id)}};
}

void remove_dependent(SeedRun& run, sim::SimNode& where) {
    auto chosen = run.known.dependents.begin();
    std::advance(chosen, static_cast<std::ptrdiff_t>(run.draw(run.known.dependents.size())));
    chosen->second.is_removal_tried = true;
    Status status = deadline_passed("killed");
    const auto task = [](World w, Layout l, VersionKey k, Status* out) -> Task<void> {
        const Manifest tombstone = tombstone_of(k, 1, {}, 1);
        Status removed = co_await remove_version(w, l, tombstone, Fence::keep, operator_wait);
        *out = std::move(removed);
    };
    sim::Process& process = where.start_process("rm");
    const Nanos span = run.chance(50) ? static_cast<Nanos>(run.draw(4'000)) * microsecond : 30 * second;
    (void)run.cluster.sim.run(task(process.world(), run.cluster.layout, chosen->first, &status), run.cluster.sim.now() + span);
    process.kill();
    run.tell("remove version ", chosen->first.version, ", which depends on version ", chosen->second.base.version, ": ", status.to_string());
    if (status.ok()) run.see(Saw::dependent_removed);
}

}  // namespace

const VersionKey& content_of(const SeedRun& run, const VersionKey& key) {
    const auto dependent = run.known.dependents.find(key);
    return dependent == run.known.dependents.end() ? key : dependent->second.base;
}

void depend(SeedRun& run, NodeIndex node) {
    sim::SimNode& where = *run.cluster.hosts[node].node;
    if (!where.alive() || where.covered()) return;
    if (!run.known.dependents.empty() && run.chance(30)) return remove_dependent(run, where);
    const bool is_removed_too = run.chance(60);  // at the same time
    const std::optional<VersionKey> base = is_removed_too ? removable(run) : some_base(run);
    if (!base) return;
    const VersionKey key = newer_than(run, *base);
    run.known.dependents[key] = {*base};
    sim::Process& process = where.start_process("publisher");
    World world = process.world();
    Gate gate(world.clock);
    auto answer = std::make_shared<std::optional<Status>>();
    const auto task = [](World w, Layout l, VersionKey b, VersionKey k, std::shared_ptr<std::optional<Status>> out) -> Task<void> {
        Status published = co_await publish_dependent(w, l, std::move(b), std::move(k), operator_wait);
        *out = std::move(published);
    };
    gate.spawn(task(world, run.cluster.layout, *base, key, answer));
    const Nanos until = run.cluster.sim.now() + (run.chance(30) ? static_cast<Nanos>(run.draw(4'000)) * microsecond : 30 * second);
    if (is_removed_too) {
        run.cluster.sim.run_until(run.cluster.sim.now() + static_cast<Nanos>(run.draw(4'000)) * microsecond);
        remove(run, static_cast<NodeIndex>(run.draw(run.cluster.hosts.size())), base);
    }
    (void)run.cluster.sim.run_until([&] { return answer->has_value(); }, until);
    process.kill();
    const Status status = answer->value_or(deadline_passed("killed"));
    run.tell("publish version ", key.version, ", which depends on version ", base->version, ": ", status.to_string());
    run.known.dependents[key].is_published = status.ok();
    if (status.ok()) run.see(Saw::dependent_published);
    if (status.code() == Code::superseded) run.see(Saw::base_gone);
}

// Whatever became of the older one: who was told that it is published can restore it, and what has a manifest is whole.
void check_dependents(SeedRun& run) {
    for (const auto& [key, dependent] : run.known.dependents) {
        const Status status = run.cluster.check_committed(key, dependent.base, std::nullopt);
        const bool may_be_none = !dependent.is_published || dependent.is_removal_tried;
        if (status.ok() || (may_be_none && status.code() == Code::not_found)) continue;
        return run.fail("version " + std::to_string(key.version) + ", which depends on version " + std::to_string(dependent.base.version) + ", can not be restored: " + status.to_string());
    }
}

}  // namespace cairn::testing
