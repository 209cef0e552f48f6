#include "cli/extract_trees.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string_view>

#include "base/text_table.hpp"
#include "format/check.hpp"
#include "format/frame.hpp"

namespace cairn::cli {

namespace {

using RegionsByName = std::map<std::string_view, const Region*>;

Result<Bytes> read_region(Place& place, const VersionCopies& copies, Rank rank, const Region& region) {
    if (region.length > record_bytes_max + frame_header_bytes) return corrupt("region " + region.name + ": far larger than any tree index");
    Bytes bytes(region.length);
    HandOut out;
    out.add(rank, {region.offset, region.length}, "region " + region.name, [&](std::uint64_t at, const Slice& data) {
        std::memcpy(bytes.data() + at, data.data(), data.length);
        return Status();
    });
    if (bytes.empty()) return bytes;
    TRY_ASSIGN(ReadPlan plan, plan_reads(copies, out.wanted(), place.restore().buffer_bytes));
    TRY(read_by_plan(place, copies, std::move(plan), out));
    return bytes;
}

// Each file's bytes are those of one region that is as long.
Result<FoundTree> with_regions(Rank rank, Tree tree, RegionsByName& unclaimed) {
    FoundTree found{rank, std::move(tree), {}};
    found.regions.resize(found.tree.entries.size());
    for (std::size_t i = 0; i < found.regions.size(); ++i) {
        const TreeEntry& entry = found.tree.entries[i];
        if (entry.kind != TreeEntryKind::file || entry.bytes == 0) continue;
        const std::string name = tree_region_name(found.tree, entry);
        const auto region = unclaimed.find(name);
        if (region == unclaimed.end() || region->second->kind != RegionKind::file || region->second->length != entry.bytes)
            return check::refuse("tree ", found.tree.name, ": the image has no routed file ", for_terminal(name), " of ", entry.bytes, " bytes that is no other file's");
        found.regions[i] = region->second;
        unclaimed.erase(region);
    }
    return found;
}

}  // namespace

Status read_by_plan(Place& place, const VersionCopies& copies, ReadPlan plan, HandOut& out, EncodedRuns* encoded) {
    std::set<Rank> of_scratch;
    for (const SlotRead& each : plan.slots) of_scratch.insert(each.rank);
    const Status status = place.run(read_planned(place.world(), place.layout(), copies, std::move(plan), out, place.restore(), encoded));
    for (const Rank rank : of_scratch) TRY(place.run(check_settled(place.world(), copies, rank, place.deadline())));
    return copies.parts ? status : status.within(version_text(copies.key));
}

Result<std::vector<FoundTree>> trees_of(Place& place, const VersionCopies& copies, Rank rank) {
    std::vector<FoundTree> found;
    TRY_ASSIGN(const ImageInfo* const image, copies.image(rank));
    RegionsByName regions;
    for (const Region& region : image->regions) regions.emplace(region.name, &region);
    const auto index = regions.find(tree_index_region);
    if (index == regions.end() || index->second->kind != RegionKind::callback) return found;
    const std::string what = version_text(copies.key) + ", rank " + std::to_string(rank);
    const auto bytes = read_region(place, copies, rank, *index->second);
    if (!bytes.ok()) return bytes.status();
    auto trees = decode_tree_index(*bytes);
    if (!trees.ok()) return trees.status().within(what);
    for (Tree& tree : *trees) {
        auto one = with_regions(rank, std::move(tree), regions);
        if (!one.ok()) return one.status().within(what);
        found.push_back(std::move(*one));
    }
    // What is left below a tree's name would be written into it.
    for (const FoundTree& one : found) {
        const std::string above = one.tree.name + "/";
        const auto left = regions.lower_bound(above);
        if (regions.contains(one.tree.name) || (left != regions.end() && left->first.starts_with(above)))
            return check::refuse("tree ", one.tree.name, ": the image has a region in its place that it does not know").within(what);
    }
    return found;
}

}  // namespace cairn::cli
