// Versions to go back to: what is whole in scratch and what is committed, of the current lineage; a tombstone takes a version out of both.
#include "read/restorable.hpp"

#include <algorithm>
#include <map>

namespace cairn {

std::vector<RestorableVersion> restorable_versions(const Lineage& lineage, const std::vector<CatalogEntry>& entries,
                                                   const std::vector<SealedVersion>& sealed) {
    std::map<std::pair<Version, Id128>, RestorableVersion> found;
    for (const SealedVersion& each : sealed) {
        if (!each.is_whole || !lineage.contains(each.incarnation, each.version)) continue;
        RestorableVersion& kept = found[{each.version, each.incarnation}];
        kept.epoch = each.epoch;
        kept.sealed = true;
    }
    for (const CatalogEntry& each : entries) {
        const std::pair key(each.key.version, each.key.incarnation);
        if (each.manifest && each.manifest->abandoned)
            found.erase(key);  // given up, or lost to another: not to come back from scratch either
        if (!each.committed() && !each.damage) continue;
        if (!each.unlisted() && !lineage.contains(each.key.incarnation, each.key.version)) continue;
        RestorableVersion& kept = found[key];
        if (each.damage) kept.damage = *each.damage;
        if (!each.committed()) continue;
        kept.committed = true;
        kept.epoch = each.manifest->epoch;
        kept.ranks = each.manifest->ranks;
        kept.bytes = each.manifest->image_bytes;
    }
    std::vector<RestorableVersion> all;
    for (auto& [key, kept] : found) {
        kept.key.version = key.first;
        kept.key.incarnation = key.second;
        all.push_back(std::move(kept));
    }
    return all;
}

Version newest_of(const std::vector<RestorableVersion>& versions) {
    Version newest = 0;
    for (const RestorableVersion& each : versions)
        if (each.can_be_had()) newest = std::max(newest, each.key.version);
    return newest;
}

Task<Result<RestorableSeries>> load_restorable(World& world, Layout layout, std::string name, std::vector<SealedVersion> sealed,
                                               Id128 incarnation, Nanos deadline) {
    Result<LineageRecords> records = co_await read_lineage(world, layout, name, deadline);
    if (!records.ok()) co_return std::move(records).status();
    Result<std::vector<CatalogEntry>> entries = co_await list_versions(world, layout, name, deadline);
    if (!entries.ok()) co_return std::move(entries).status();
    Lineage lineage = current_lineage(*records, *entries, sealed, incarnation);
    RestorableSeries series;
    series.versions = restorable_versions(lineage, *entries, sealed);
    for (RestorableVersion& each : series.versions) each.key.name = name;
    CO_TRY(lineage.doubt_of(newest_of(series.versions)));
    series.passed_over = std::move(lineage.passed_over);
    series.tail = std::move(lineage.tail);
    co_return series;
}

}  // namespace cairn
