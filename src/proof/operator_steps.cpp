// Steps of who runs the cluster: daemons are started, versions removed and given up; and of the daemon itself, which gives way to the application.
#include <algorithm>
#include <utility>

#include "proof/promise.hpp"
#include "catalog/removal.hpp"
#include "catalog/roots.hpp"
#include "proof/steps.hpp"
#include "format/manifest.hpp"

namespace cairn::testing {

namespace {

void give_up(SeedRun& run, NodeIndex node) {
    const std::optional<VersionKey> chosen = undecided(run);
    const Nanos span = run.chance(30) ? static_cast<Nanos>(run.draw(10'000)) * microsecond : 30 * second;
    if (!chosen || !begin_give_up(run, node, *chosen)) return;
    end_errands(run, span);
    const bool done = run.known.given_up.count(*chosen) > 0;
    if (done && run.chance(run.cluster.is_io_node(node) ? 60 : 15)) crash(run, node);  // it said so, so it lasts; an I/O node takes no image with it
}

void end(SeedRun& run, const Errand& errand) {
    const Status status = errand.answer->value_or(Status(Code::deadline, "killed"));
    run.tell(errand.is_cancel ? "cancel version " : "give up version ", errand.key.version, ": ", status.to_string());
    const bool stays = status.code() == Code::already_exists && !errand.tried_before;
    run.see(status.ok() ? errand.is_cancel ? Saw::cancelled_in_time : Saw::gc_in_time : Saw::not_given_up);
    if (stays) run.known.removed.erase(errand.key);  // committed, or by another: nothing was done
    if (!status.ok()) return;
    run.known.removed[errand.key] = true;
    run.known.given_up.insert(errand.key);
}

}  // namespace

// `cairn gc` takes a job for dead that is about to commit: one of the two wins, and the version is whole or given up.
Errand* begin_give_up(SeedRun& run, NodeIndex node, const VersionKey& key) {
    const sim::SimNode& where = *run.cluster.hosts[node].node;
    if (!where.alive() || where.covered()) return nullptr;
    run.see(Saw::given_up);
    const auto task = [](World w, Layout l, VersionKey k, std::uint64_t epoch, std::shared_ptr<std::optional<Status>> out) -> Task<void> {
        const Manifest tombstone = tombstone_of(k, epoch, {}, 1);
        Status given_up = co_await give_up_version(w, l, tombstone, 4 * second);
        *out = given_up;
        if (!given_up.ok()) co_return;
        Status cleared = co_await clear_version(w, l, tombstone, Fence::keep, 4 * second);
        (void)cleared;
    };
    Errand& errand = run.errands.emplace_back(key, false);
    errand.tried_before = !run.known.removed.emplace(key, false).second;
    errand.process = &run.cluster.hosts[node].node->start_process("gc");
    World world = errand.process->world();
    errand.gate = std::make_unique<Gate>(world.clock);
    errand.gate->spawn(task(world, run.cluster.layout, key, run.known.epochs.at(key.incarnation), errand.answer));
    return &errand;
}

void end_errands(SeedRun& run, Nanos span) {
    const auto over = [&] {
        return std::all_of(run.errands.begin(), run.errands.end(), [](const Errand& errand) { return errand.answer->has_value() && (!errand.gate || errand.gate->active() == 0); });
    };
    (void)run.cluster.sim.run_until(over, run.cluster.sim.now() + span);
    for (const Errand& errand : run.errands) end(run, errand);
    run.errands.clear();
}

void start(SeedRun& run, NodeIndex node) {
    Host& host = run.cluster.hosts[node];
    if (host.process || !host.node->alive()) return;
    run.tell("start daemon ", node);
    run.cluster.start_daemon(node);
}

// The application comes and goes. `hard`: hardly anything may move, which delays and must not fail anything.
void limit(SeedRun& run, NodeIndex node, bool hard) {
    Host& host = run.cluster.hosts[node];
    if (!host.daemon) return;
    const auto bytes_s = [&] { return run.chance(40) ? 0.0 : hard ? 1.0 + static_cast<double>(run.draw(1000)) : 1e6 + static_cast<double>(run.draw(5'000'000)); };
    PaceLimits limits;
    limits.in_bytes_s = bytes_s();
    limits.out_bytes_s = bytes_s();
    limits.memory_bytes_s = bytes_s() * 3;
    limits.cores = run.chance(30) ? 0.5 : 0;
    limits.under_way_bytes = run.chance(40) ? run.cluster.options.block_bytes * run.draw(20) : 0;
    limits.closed = hard && run.chance(30);
    host.daemon->pace().set_limits(limits);
    host.daemon->pace().spent_cpu(static_cast<Nanos>(run.draw(2'000)) * millisecond);
    run.tell("limits of node ", node, ": in ", limits.in_bytes_s, ", out ", limits.out_bytes_s, ", memory ", limits.memory_bytes_s, ", under way ",
         limits.under_way_bytes, limits.closed ? ", closed" : "");
}

// By hand from any node, which keeps the fence; or by the coordinator's retention, which lifts it. It may be killed at any moment.
void remove(SeedRun& run, NodeIndex node) {
    if (run.chance(40)) return give_up(run, node);
    remove(run, node, removable(run));
}

void remove(SeedRun& run, NodeIndex node, const std::optional<VersionKey>& key) {
    if (!key) return;
    const NodeIndex coordinator = run.cluster.coordinator(key->incarnation);
    const Host& its = run.cluster.hosts[coordinator];
    const bool lift = run.chance(50) && its.node->alive() && its.daemon && its.daemon->state(*key).final;
    sim::SimNode& where = *run.cluster.hosts[lift ? coordinator : node].node;
    if (!where.alive() || where.covered()) return;  // an operator would see that nothing is there
    run.see(Saw::removed);
    sim::Process& process = where.start_process("rm");
    Status status(Code::deadline, "killed");
    const auto task = [](World w, Layout l, VersionKey k, std::uint64_t epoch, Fence fence, Status* out) -> Task<void> {
        const Result<Manifest> standing = co_await read_manifest(w, l, k, w.clock.in(4 * second));
        const Manifest tombstone = tombstone_of(k, epoch, {}, 1, standing.ok() ? roots_with_parts(*standing) : std::vector<std::string>());
        Status removed = co_await remove_version(w, l, tombstone, fence, 4 * second);
        *out = std::move(removed);
    };
    const Nanos span = run.chance(50) ? static_cast<Nanos>(run.draw(4'000)) * microsecond : 30 * second;
    // Where disks are full now and then, they are while somebody makes room.
    const bool full = run.cluster.sim.faults().out_of_space > 0 && run.chance(60);
    const std::uint64_t bytes_max = std::exchange(run.cluster.sim.model().persistent_bytes_max, full ? 1 : run.cluster.sim.model().persistent_bytes_max);
    (void)run.cluster.sim.run(task(process.world(), run.cluster.layout, *key, run.known.epochs.at(key->incarnation), lift ? Fence::lift : Fence::keep, &status),
                           run.cluster.sim.now() + span);
    run.cluster.sim.model().persistent_bytes_max = bytes_max;
    process.kill();
    run.tell(full ? "full; " : "", "remove version ", key->version, lift ? ", lifting the fence: " : ": ", status.to_string());
    if (status.code() == Code::permission) run.see(Saw::base_stayed);
    if (status.code() == Code::unavailable && run.background.below_is == sim::Faults::Below::away) run.see(Saw::removed_away);
    run.known.removed[*key] = status.ok() && !lift;
    if (run.known.removed[*key]) run.known.fenced[*key] = run.cluster.sim.now();
}

}  // namespace cairn::testing
