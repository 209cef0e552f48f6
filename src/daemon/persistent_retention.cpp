#include "daemon/persistent_retention.hpp"

#include <algorithm>

#include "base/config.hpp"
#include "base/log.hpp"
#include "catalog/lineage.hpp"
#include "catalog/roots.hpp"

namespace cairn {

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
    Result<std::vector<CatalogEntry>> entries =
        co_await list_versions(world_, layout_, name, world_.clock.in(io_wait_));
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
    std::vector<const CatalogEntry*> committed;
    std::vector<Version> versions;
    for (const CatalogEntry& entry : *entries)
        if (entry.committed() && lineage.contains(entry.key.incarnation, entry.key.version)) {
            committed.push_back(&entry);
            versions.push_back(entry.key.version);
        }
    Status away;  // a root that is not there keeps only what lies below it
    for (const std::size_t i : beyond_retention(versions, rule_.last, rule_.every)) {
        const CatalogEntry& entry = *committed[i];
        const VersionKey key = entry.key;
        if (!settled(key)) continue;
        Result<Fence> fence = co_await fence_of(key.incarnation, incarnation);
        if (!fence.ok()) co_return std::move(fence).status();
        const Manifest tombstone =
            tombstone_of(key, entry.manifest->epoch, entry.manifest->parent, entry.manifest->ranks, roots_with_parts(*entry.manifest));
        Status removed = co_await remove_version(world_, layout_, tombstone, *fence, io_wait_);
        if (removed.code() == Code::unavailable) {
            away = std::move(removed);
            continue;
        }
        if (!removed.ok()) co_return removed;
        log_info("version-removed", {{"name", name}, {"version", key.version}, {"incarnation", key.incarnation}});
    }
    Status lifted = co_await lift_tombstones(*entries, incarnation);
    co_return lifted.ok() ? away : std::move(lifted);
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
        const Manifest tombstone = *entry.manifest;
        Status cleared = co_await clear_version(world_, layout_, tombstone, Fence::lift, io_wait_);
        if (cleared.code() == Code::unavailable) away = std::move(cleared);
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
