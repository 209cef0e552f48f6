// What a restarting job sees under persistent, while the run goes on and after daemons were started again.
#include <algorithm>

#include "proof/promise.hpp"
#include "proof/steps.hpp"

namespace cairn::testing {

namespace {

// Committed by a job of which nobody could know, something may be newer than the test's own knowledge: then its lineage counts.
Id128 seen_head(const SeedRun& run, const RestorableSeries& found) {
    const auto epoch_of = [&](Id128 incarnation) {
        const auto epoch = run.known.epochs.find(incarnation);
        return epoch == run.known.epochs.end() ? 0 : epoch->second;
    };
    Id128 newest = head(run);
    for (const RestorableVersion& each : found.versions)
        if (each.can_be_had() && epoch_of(each.key.incarnation) > epoch_of(newest)) newest = each.key.incarnation;
    return newest;
}

void check_visible(SeedRun& run, const RestorableSeries& found, const std::map<VersionKey, bool>& told) {
    std::set<VersionKey> visible;
    for (const RestorableVersion& each : found.versions)
        if (each.committed) visible.insert(each.key);
    const Id128 head = seen_head(run, found);
    for (const auto& [key, reported] : told)
        if (in_chain(run, head, key) && !run.known.removed.count(key) && !visible.count(key))
            return run.fail("version " + std::to_string(key.version) + " was called committed, and a restarting job does not see it");
}

// As long as it lives: images in scratch tell the parent of their incarnation, also where a repair forgot its record.
class ToldByImages {
  public:
    ToldByImages(SeedRun& run, const std::vector<SealedVersion>& sealed) : run_(run), forgotten_(run.known.forgotten) {
        for (const SealedVersion& each : sealed)
            if (each.version != 0) run.known.forgotten.erase(each.incarnation);
    }
    ToldByImages(const ToldByImages&) = delete;
    ~ToldByImages() { run_.known.forgotten = std::move(forgotten_); }

  private:
    SeedRun& run_;
    std::set<Id128> forgotten_;
};

// Of what this daemon holds: a version that was called committed, and not by it.
std::optional<VersionKey> unaware_of(const SeedRun& run, const Host& host) {
    for (const VersionKey& key : host.daemon->versions())
        if (run.known.reported.count(key) && !run.known.removed.count(key) && host.daemon->state(key).level != Level::committed) return key;
    return std::nullopt;
}

}  // namespace

std::optional<VersionKey> check_catalog(SeedRun& run) {
    const std::map<VersionKey, bool> told_before = run.known.reported;
    const Result<RestorableSeries> found = look_for_restart(run);
    std::optional<VersionKey> newest;
    if (!run.result.ok) return newest;
    if (!found.ok()) {
        run.fail("a restarting job can not read the catalog: " + found.status().to_string());
        return newest;
    }
    for (const RestorableVersion& each : found->versions)
        if (each.committed) newest = each.key;
    if (newest) check_newest(run, *newest, told_before);
    if (found->tail.ok()) check_visible(run, *found, run.known.reported);  // else older ones can not be told, and the operator knows
    return newest;
}

void check_restorable(SeedRun& run, const RestorableSeries& found, const std::vector<SealedVersion>& sealed, const std::map<VersionKey, bool>& told_before) {
    const auto text = [](const VersionKey& key) { return "version " + std::to_string(key.version); };
    const ToldByImages told(run, sealed);
    const Id128 head = seen_head(run, found);
    std::set<VersionKey> had, whole;
    for (const SealedVersion& each : sealed)
        if (each.is_whole) whole.insert({run.cluster.roster.name, each.version, each.incarnation});
    for (const RestorableVersion& each : found.versions) {
        if (!each.can_be_had()) continue;
        had.insert(each.key);
        if (found.tail.ok() && !in_chain(run, head, each.key)) return run.fail(text(each.key) + ", which a restart may take, is of another lineage");
        if (each.committed) continue;
        const auto ranks = run.cluster.sealing.find(each.key);
        if (ranks == run.cluster.sealing.end() || ranks->second.size() != run.cluster.ranks()) return run.fail(text(each.key) + ", which a restart may take, was not sealed by all ranks");
        if (!whole.count(each.key)) return run.fail(text(each.key) + ", which a restart may take, is in the scratch of some ranks alone");
        if (run.known.given_up.count(each.key)) return run.fail(text(each.key) + ", which a restart may take, was given up");
    }
    if (!found.tail.ok()) return;
    check_visible(run, found, told_before);
    for (const SealedVersion& each : sealed) {
        const VersionKey key{run.cluster.roster.name, each.version, each.incarnation};
        const bool decided = run.cluster.sim.persistent().find(run.cluster.layout.manifest(key)).ok();
        if (each.is_whole && !decided && in_chain(run, head, key) && !had.count(key)) return run.fail(text(key) + " is in the scratch of all ranks, and no restart may take it");
    }
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
    const std::optional<VersionKey> newest = check_catalog(run);
    if (!run.result.ok) return;
    if (!newest || *newest != run.cluster.key(run.known.next_version)) return run.fail("the last version is not the newest after daemons were started again");
    const Status status = run.cluster.check_committed(*newest);
    if (!status.ok()) run.fail("the last version can not be restored after daemons were started again: " + status.to_string());
}

}  // namespace cairn::testing
