// From the topmost page down, each page one read.
#include "read/regions.hpp"

#include <algorithm>

#include "copies/regions.hpp"
#include "format/region_index.hpp"

namespace cairn {

namespace {

Task<Result<Bytes>> read_image_range(World& world, Layout layout, const VersionCopies& copies, Rank rank, ImageRange range, RestoreSettings settings) {
    const auto slot = copies.slots.find(rank);
    if (slot != copies.slots.end()) {
        Result<Bytes> of_slot = co_await read_range(world, slot->second, range, settings);
        co_return of_slot;
    }
    Result<Bytes> of_parts = co_await read_range(world, std::move(layout), *copies.parts, rank, range, settings);
    co_return of_parts;
}

FoundRegion among(const std::vector<Region>& regions, const std::string& name) {
    FoundRegion found;
    const auto region = std::find_if(regions.begin(), regions.end(), [&](const Region& each) { return each.name == name; });
    if (region != regions.end()) found.region = *region;
    return found;
}

}  // namespace

Task<Status> load_regions(World& world, Layout layout, VersionCopies& copies, std::vector<Rank> ranks, RestoreSettings settings, EncodedRuns* encoded) {
    const bool all = ranks.empty();
    for (auto& [rank, image] : copies.slots) {
        if (!all && std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) continue;
        Status status = co_await load_regions(world, image, settings);
        if (!status.ok()) co_return status;
    }
    if (!copies.parts) co_return Status();
    if (all) ranks = copies.parts->ranks();
    Status status = co_await load_regions(world, std::move(layout), *copies.parts, std::move(ranks), settings, encoded);
    co_return status;
}

Task<Result<FoundRegion>> find_region(World& world, Layout layout, const VersionCopies& copies, Rank rank, std::string name, RestoreSettings settings) {
    const std::string whose = image_text(copies.key, rank);
    Result<const ImageInfo*> open = copies.image(rank);
    if (!open.ok()) co_return std::move(open).status();
    const ImageInfo& image = **open;
    if (image.index_bytes == 0) co_return among(image.regions, name);
    FoundRegion found;
    const ImageRange index = index_range(image);
    const std::uint64_t tail = std::min(index.length, region_index_first_read_bytes);
    Result<Bytes> bytes = co_await read_image_range(world, layout, copies, rank, {image.bytes - tail, tail}, settings);
    if (!bytes.ok()) co_return std::move(bytes).status();
    found.index_reads = 1;
    Result<IndexRoot> root = decode_region_index_end(ByteView(*bytes).last(region_index_end_bytes), index.length);
    if (!root.ok()) co_return std::move(root).status().within(whose);
    IndexPage at = root->page;
    Bytes page(bytes->end() - static_cast<std::ptrdiff_t>(region_index_end_bytes + at.length), bytes->end() - region_index_end_bytes);
    for (int level = 0; level < region_index_levels_max; ++level) {
        Result<InPage> in_page = find_in_page(page, at, name, index.offset);
        if (!in_page.ok()) co_return std::move(in_page).status().within(whose);
        found.region = std::move(in_page->region);
        if (!in_page->below) co_return found;
        at = *in_page->below;
        bytes = co_await read_image_range(world, layout, copies, rank, {index.offset + at.offset, at.length}, settings);
        if (!bytes.ok()) co_return std::move(bytes).status();
        ++found.index_reads;
        page = std::move(*bytes);
    }
    co_return corrupt(whose + ": region index: more levels of pages than there can be");
}

}  // namespace cairn
