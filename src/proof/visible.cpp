// What a restarting job sees under persistent, while the run goes on and after daemons were started again.
#include <algorithm>

#include "proof/promise.hpp"
#include "proof/steps.hpp"

namespace cairn::testing {

namespace {

// Committed by a job of which nobody could know, something may be newer than the test's own knowledge: then its lineage counts.
Id128 seen_head(const SeedRun& run, const Cluster::Found& found) {
    const Id128 known = head(run), seen = found.lineage.links.empty() ? Id128() : found.lineage.links.front().incarnation;
    const auto epoch_of = [&](Id128 incarnation) {
        const auto epoch = run.known.epochs.find(incarnation);
        return epoch == run.known.epochs.end() ? 0 : epoch->second;
    };
    return epoch_of(seen) > epoch_of(known) ? seen : known;
}

void check_visible(SeedRun& run, const Cluster::Found& found) {
    std::set<VersionKey> visible;
    for (const CatalogEntry& entry : found.in_lineage())
        if (entry.committed()) visible.insert(entry.key);
    const Id128 head = seen_head(run, found);
    for (const auto& [key, reported] : run.known.reported)
        if (in_chain(run, head, key) && !run.known.removed.count(key) && !visible.count(key))
            return run.fail("version " + std::to_string(key.version) + " was called committed, and a restarting job does not see it");
}

// Of what this daemon holds: a version that was called committed, and not by it.
std::optional<VersionKey> unaware_of(const SeedRun& run, const Host& host) {
    for (const VersionKey& key : host.daemon->versions())
        if (run.known.reported.count(key) && !run.known.removed.count(key) && host.daemon->state(key).level != Level::committed) return key;
    return std::nullopt;
}

}  // namespace

std::optional<Manifest> check_catalog(SeedRun& run) {
    const std::map<VersionKey, bool> told_before = run.known.reported;
    const Result<Cluster::Found> found = look_for_restart(run);
    std::optional<Manifest> newest;
    if (!run.result.ok) return newest;
    if (!found.ok()) {
        run.fail("a restarting job can not read the catalog: " + found.status().to_string());
        return newest;
    }
    for (const CatalogEntry& entry : found->in_lineage())
        if (entry.committed()) newest = entry.whole;
    if (newest) check_newest(run, *newest, told_before);
    if (found->lineage.tail.ok()) check_visible(run, *found);  // else older ones can not be told, and the operator knows
    return newest;
}

void check_started_again(SeedRun& run) {
    std::vector<NodeIndex> again;
    for (NodeIndex node = 0; node < run.cluster.hosts.size(); ++node) {
        if (run.cluster.is_io_node(node) || run.cluster.hosts[node].gone || !run.chance(50)) continue;
        run.cluster.kill_daemon(node);
        start(run, node);
        again.push_back(node);
    }
    if (again.empty()) return;
    const auto aware = [&] {
        return std::all_of(again.begin(), again.end(), [&](NodeIndex node) { return run.cluster.hosts[node].booted && !unaware_of(run, run.cluster.hosts[node]); });
    };
    if (!run.cluster.sim.run_until(aware, run.cluster.sim.now() + calm_span(run))) {
        for (const NodeIndex node : again)
            if (const auto key = unaware_of(run, run.cluster.hosts[node]))
                return run.fail("a daemon that was started again does not find out that a version is committed: node " + std::to_string(node) + ", version " +
                                std::to_string(key->version) + ": " + run.cluster.hosts[node].daemon->state(*key).failure.to_string());
        return run.fail("a daemon does not boot with no faults");
    }
    note_states(run);
    const std::optional<Manifest> newest = check_catalog(run);
    if (!run.result.ok) return;
    if (!newest || newest->key != run.cluster.key(run.known.next_version)) return run.fail("the last version is not the newest after daemons were started again");
    const Status status = run.cluster.check_committed(newest->key);
    if (!status.ok()) run.fail("the last version can not be restored after daemons were started again: " + status.to_string());
}

}  // namespace cairn::testing
