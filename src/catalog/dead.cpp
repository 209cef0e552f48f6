#include "catalog/dead.hpp"

#include <algorithm>

#include "catalog/removal.hpp"
#include "catalog/roots.hpp"
#include "format/names.hpp"

namespace cairn {

namespace {

const LineageEntry* record_of(const LineageRecords& records, Id128 incarnation) {
    const auto found = std::find_if(records.opens.begin(), records.opens.end(), [&](const LineageEntry& each) { return each.open.incarnation == incarnation; });
    return found == records.opens.end() ? nullptr : &*found;
}

// What can not be read may be a manifest of a newer head than the one that is seen, and what can not be listed anything. Whose open is on record counts in
// the lineage as it is: a newer one is the head.
bool may_be_newer(const LineageRecords& records, const CatalogEntry& entry) {
    return entry.damage && (entry.unlisted() || !record_of(records, entry.key.incarnation));
}

// By the epoch, which is the record's name: where the .open is damaged, too, nothing else tells whose it is.
bool has_damaged_from(const LineageRecords& records, const LineageLink& link) {
    return std::any_of(records.opens.begin(), records.opens.end(), [&](const LineageEntry& each) { return each.from_damage && each.open.epoch == link.epoch; });
}

}  // namespace

std::optional<std::string> why_dead(const LineageRecords& records, const std::vector<CatalogEntry>& entries, const VersionKey& key, std::uint64_t epoch) {
    const Lineage lineage = current_lineage(records, entries, {});
    if (!lineage.is_certain()) return std::nullopt;
    if (lineage.links.empty() || lineage.links.back().epoch == 0) return std::nullopt;  // it does not reach the beginning
    const LineageLink& head = lineage.links.front();
    if (has_damaged_from(records, head)) return std::nullopt;
    if (epoch >= head.epoch || lineage.contains(key.incarnation, key.version)) return std::nullopt;
    bool head_committed = false;
    for (const CatalogEntry& entry : entries) {
        if (may_be_newer(records, entry)) return std::nullopt;
        if (entry.key == key && (entry.committed() || entry.damage)) return std::nullopt;
        head_committed |= entry.committed() && entry.key.incarnation == head.incarnation;
    }
    const LineageEntry* record = record_of(records, head.incarnation);
    const FromRecord* from = record && record->from ? &*record->from : nullptr;
    const bool looked = from && from->looked;
    const bool whole = looked && std::count(from->whole.begin(), from->whole.end(), Parent{key.incarnation, key.version}) > 0;
    const std::string head_text = "a newer job (epoch " + std::to_string(head.epoch) + ")";
    const std::string went_on = from ? head_text + " went on from version " + std::to_string(from->parent.version) : head_text + " began anew";
    if (head_committed) return went_on + ", and has committed";
    if (looked && !whole) return went_on + ", and did not find every rank's image";
    return std::nullopt;
}

static bool any_of_incarnation(const std::vector<DirectoryEntry>& files, Id128 incarnation) {
    return std::any_of(files.begin(), files.end(), [&](const DirectoryEntry& file) {
        const std::optional<Id128> attempt_id = parse_attempt_of(file.name);
        return attempt_id && attempt_id->high == incarnation.high;
    });
}

Task<Status> clear_dead(World& world, Layout layout, Undecided dead, Nanos io_wait) {
    const VersionKey key = dead.key;
    Result<std::vector<DirectoryEntry>> files = co_await world.storage.list(layout.version(key), world.clock.in(io_wait));
    if (files.code() == Code::not_found) co_return Status();
    if (!files.ok()) co_return std::move(files).status();
    std::vector<std::string> roots;
    for (const std::string& root : layout.roots) {
        const Result<std::vector<DirectoryEntry>> below = co_await list_below(world, root, key, world.clock.in(io_wait));
        // One that hangs or fails may hold some, and nothing would tell of them later.
        if (below.ok() ? any_of_incarnation(*below, key.incarnation) : below.code() != Code::unavailable) roots.push_back(root);
    }
    if (roots.empty() && !any_of_incarnation(*files, key.incarnation)) co_return Status();
    const Manifest tombstone = tombstone_of(key, dead.epoch, dead.parent, dead.ranks, std::move(roots));
    ManifestFacts stands = tombstone;
    Status given_up = co_await give_up_version(world, layout, tombstone, io_wait);
    if (given_up.code() == Code::already_exists) {
        Result<ManifestFacts> standing = co_await read_manifest_facts(world, layout, key, world.clock.in(io_wait));
        if (!standing.ok()) co_return std::move(standing).status();
        if (!standing->abandoned) co_return Status();  // committed before: its parts are its own
        stands = std::move(standing).value();
    } else if (!given_up.ok()) {
        co_return given_up;
    }
    Status cleared = co_await clear_version(world, layout, std::move(stands), Fence::keep, io_wait);
    if (cleared.code() == Code::permission) co_return Status();  // what it once committed is another's now, and nobody's image is wanted for that
    co_return cleared;
}

}  // namespace cairn
