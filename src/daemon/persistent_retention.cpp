#include "daemon/persistent_retention.hpp"

#include "base/log.hpp"
#include "engine/catalog.hpp"
#include "engine/removal.hpp"

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
    Result<std::vector<LineageEntry>> opens = co_await read_lineage(world_, layout_, name, world_.clock.in(io_wait_));
    if (!opens.ok()) co_return std::move(opens).status();
    const std::vector<LineageLink> lineage = current_lineage(*opens, *entries, {});
    if (lineage.empty() || lineage.front().incarnation != incarnation) co_return Status();
    std::vector<const CatalogEntry*> committed;
    std::vector<Version> versions;
    for (const CatalogEntry& entry : *entries)
        if (entry.committed() && in_lineage(lineage, entry.key.incarnation, entry.key.version)) {
            committed.push_back(&entry);
            versions.push_back(entry.key.version);
        }
    for (const std::size_t i : beyond_retention(versions, rule_.last, rule_.every)) {
        const CatalogEntry entry = *committed[i];
        Status removed = co_await remove_version(world_, layout_, entry, io_wait_);
        if (!removed.ok()) co_return removed;
        log_info("version-removed",
                 {{"name", name}, {"version", entry.key.version}, {"incarnation", entry.key.incarnation}});
    }
    co_return Status();
}

}  // namespace cairn
