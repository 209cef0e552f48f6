#include "daemon/persistent_retention.hpp"

#include <algorithm>

#include "base/config.hpp"
#include "base/log.hpp"
#include "catalog/lineage.hpp"
#include "catalog/needed.hpp"
#include "catalog/roots.hpp"

namespace cairn {

namespace {

// A root that is not there keeps only what lies below it, and a version that came meanwhile keeps what it depends on: others go nevertheless.
bool keeps_what_it_has(const Status& removed) { return removed.code() == Code::unavailable || removed.code() == Code::permission; }

}  // namespace

void PersistentRetention::committed(const VersionKey& key) {
    if (rule_.last == 0) return;
    Version& newest = newest_[key.incarnation];
    newest = std::max(newest, key.version);
    if (applied_[key.incarnation] < newest && under_way_.insert(key.incarnation).second)
        gate_.spawn(apply(key.name, key.incarnation));
}

Task<void> PersistentRetention::apply(std::string name, Id128 incarnation) {
    while (applied_[incarnation] < newest_[incarnation]) {
        const Version newest = newest_[incarnation];
        const Status applied = co_await apply_once(name, incarnation);
        if (!applied.ok()) log_warning("retention-failed", {{"name", name}, {"why", applied}});
        applied_[incarnation] = newest;  // a failure is tried again with the next version
    }
    under_way_.erase(incarnation);
}

Task<Status> PersistentRetention::apply_once(std::string name, Id128 incarnation) {
    // Whole: one with damaged records, which no restart could take, must not count among those that let an older one go.
    Result<std::vector<CatalogEntry>> entries =
        co_await list_versions(world_, layout_, name, world_.clock.in(io_wait_), Manifests::whole);
    if (!entries.ok()) co_return std::move(entries).status();
    Result<LineageRecords> records = co_await read_lineage(world_, layout_, name, world_.clock.in(io_wait_));
    if (!records.ok()) co_return std::move(records).status();
    const Lineage lineage = current_lineage(*records, *entries, {});
    if (!lineage.head.ok()) co_return lineage.head;  // where it is in doubt what a restart would take, nothing goes
    if (lineage.links.empty() || lineage.links.front().incarnation != incarnation) co_return Status();
    // A job that opened after this one may be restoring whatever is oldest now. It applies the rule when it commits. Whoever opens after
    // this look finds what was committed before it, and takes nothing older by itself.
    for (const LineageEntry& entry : records->opens)
        if (entry.open.epoch > lineage.links.front().epoch) co_return Status();
    Status removed = co_await remove_beyond(*entries, lineage, incarnation);
    if (!removed.ok() && !keeps_what_it_has(removed)) co_return removed;
    Status lifted = co_await lift_tombstones(*entries, incarnation);
    co_return lifted.ok() ? removed : std::move(lifted);
}

// What of the current lineage the rule lets go, the newest first: it may be all that needs an older one.
Task<Status> PersistentRetention::remove_beyond(const std::vector<CatalogEntry>& entries, const Lineage& lineage, Id128 own) {
    std::vector<const CatalogEntry*> committed;
    std::vector<Version> versions;
    for (const CatalogEntry& entry : entries)
        if (entry.committed() && lineage.contains(entry.key.incarnation, entry.key.version)) {
            committed.push_back(&entry);
            versions.push_back(entry.key.version);
        }
    const std::vector<Dependent> dependents = dependents_of(entries);
    std::vector<std::size_t> beyond = beyond_retention(versions, rule_.last, rule_.every);
    std::reverse(beyond.begin(), beyond.end());
    std::vector<VersionKey> gone;
    Status stayed;
    for (const std::size_t i : beyond) {
        const VersionKey& key = committed[i]->key;
        if (!settled(key) || needed_by(dependents, key, gone) != nullptr) continue;
        Status removed = co_await remove(*committed[i], own);
        if (!removed.ok() && !keeps_what_it_has(removed)) co_return removed;
        if (removed.ok()) gone.push_back(key);
        else stayed = std::move(removed);
    }
    co_return stayed;
}

Task<Status> PersistentRetention::remove(const CatalogEntry& entry, Id128 own) {
    const VersionKey key = entry.key;
    Result<Fence> fence = co_await fence_of(key.incarnation, own);
    if (!fence.ok()) co_return std::move(fence).status();
    const Manifest tombstone = tombstone_of(key, entry.manifest->epoch, entry.manifest->parent, entry.manifest->ranks, roots_of(entry));
    Status removed = co_await remove_version(world_, layout_, tombstone, *fence, io_wait_);
    if (removed.ok()) log_info("version-removed", {{"name", key.name}, {"version", key.version}, {"incarnation", key.incarnation}});
    co_return removed;
}

// No attempt of this daemon at it is under way (one that began before it was seen that an earlier one had committed).
bool PersistentRetention::settled(const VersionKey& key) const {
    const VersionState state = node_.state(key);
    return state.final || state.level == Level::none;
}

// This daemon coordinates `own` and will not commit again what the rule lets go (Outcomes). An ancestor's
// coordinator may live somewhere, paused, and not know: its fence stays until its job is over.
Task<Result<Fence>> PersistentRetention::fence_of(Id128 incarnation, Id128 own) {
    if (incarnation == own) co_return Fence::lift;
    Result<bool> on_record = co_await job_on_record(world_, layout_, incarnation, world_.clock.in(io_wait_));
    if (!on_record.ok()) co_return std::move(on_record).status();
    co_return *on_record ? Fence::keep : Fence::lift;
}

// Of cancelled versions, and of removals that an earlier daemon began: one file each for ever, if nobody did it.
Task<Status> PersistentRetention::lift_tombstones(const std::vector<CatalogEntry>& entries, Id128 own) {
    Status away;
    for (const CatalogEntry& entry : entries) {
        if (!entry.manifest || !entry.manifest->abandoned || entry.key.incarnation != own) continue;
        if (rule_keeps(rule_, entries, entry.key) || !settled(entry.key)) continue;
        const ManifestFacts tombstone = *entry.manifest;
        Status cleared = co_await clear_version(world_, layout_, tombstone, Fence::lift, io_wait_);
        if (keeps_what_it_has(cleared)) away = std::move(cleared);
        else if (!cleared.ok()) co_return cleared;
    }
    co_return away;
}

bool rule_keeps(const RetentionRule& rule, const std::vector<CatalogEntry>& entries, const VersionKey& key) {
    const auto newer = std::count_if(entries.begin(), entries.end(), [&](const CatalogEntry& entry) {
        return entry.committed() && entry.key.incarnation == key.incarnation && entry.key.version > key.version;
    });
    return retention_keeps(rule.last, rule.every, key.version, static_cast<std::uint64_t>(newer));
}

}  // namespace cairn
