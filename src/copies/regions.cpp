// All indexes that are asked for are read in one pass over the parts, and unpacked when all their bytes are there.
#include "copies/regions.hpp"

#include <algorithm>
#include <cstring>

#include "copies/room_for.hpp"
#include "format/region_index.hpp"

namespace cairn {

namespace {

bool is_to_be_loaded(const ImageInfo* image) { return image && image->index_bytes != 0 && image->regions.empty(); }

// Bytes of a range that come in any order.
struct Gathered {
    std::uint64_t offset = 0;  // of the range, in the image
    Bytes bytes;
    void take(std::uint64_t image_offset, const Slice& data) {
        const std::uint64_t begin = std::max(offset, image_offset), end = std::min(offset + bytes.size(), image_offset + data.length);
        if (begin < end) std::memcpy(bytes.data() + (begin - offset), data.data() + (begin - image_offset), end - begin);
    }
};

Result<Gathered> gathered(ImageRange range) {
    TRY_ASSIGN(Bytes room, room_for<Bytes>(range.length));
    return Gathered{range.offset, std::move(room)};
}

// Used no longer than `into` lives.
ImageSink sink_of(Gathered& into) {
    return [&into](std::uint64_t offset, const Slice& data) {
        into.take(offset, data);
        return Status();
    };
}

Result<std::vector<Region>> unpacked(const ImageInfo& image, ByteView index) {
    Result<std::vector<Region>> regions = decode_region_index(index, image.bytes - image.index_bytes);
    if (!regions.ok()) return Status(regions.status()).within("rank " + std::to_string(image.rank));
    return regions;
}

}  // namespace

Task<Result<Bytes>> read_range(World& world, Layout layout, const OpenVersion& version, Rank rank, ImageRange range, RestoreSettings settings) {
    Result<Gathered> into = gathered(range);
    if (!into.ok()) co_return std::move(into).status();
    std::vector<ImageRange> ranges(1, range);
    Status status = co_await restore_image(world, std::move(layout), version, rank, std::move(ranges), sink_of(*into), settings);
    if (!status.ok()) co_return status;
    co_return std::move(into->bytes);
}

Task<Result<Bytes>> read_range(World& world, const LocalImage& image, ImageRange range, RestoreSettings settings) {
    Result<Gathered> into = gathered(range);
    if (!into.ok()) co_return std::move(into).status();
    std::vector<ImageRange> ranges(1, range);
    Status status = co_await restore_local(world, image, std::move(ranges), sink_of(*into), settings);
    if (!status.ok()) co_return status;
    co_return std::move(into->bytes);
}

namespace {

using Indexes = std::map<Rank, Gathered>;

// Planned before there is memory for it: a footer may say that an index is of any size, and what is planned is there.
Task<Status> read_indexes(World& world, Layout layout, const OpenVersion& version, const std::vector<Rank>& ranks, RestoreSettings settings, Indexes& indexes, OnBad bad, EncodedRuns* encoded = nullptr) {
    std::vector<WantedImage> wanted;
    for (const Rank rank : ranks) {
        wanted.emplace_back().rank = rank;
        wanted.back().ranges.push_back(index_range(*version.image(rank)));
    }
    Result<std::vector<PartRead>> reads = plan_part_reads(version, wanted, settings.buffer_bytes);
    if (!reads.ok()) co_return std::move(reads).status();
    for (PartRead& read : *reads) read.is_wanted_again = encoded != nullptr;
    for (const Rank rank : ranks) {
        Result<Gathered> into = gathered(index_range(*version.image(rank)));
        if (!into.ok()) co_return std::move(into).status();
        indexes.emplace(rank, std::move(into).value());
    }
    const RankSink sink = [&indexes](Rank rank, std::uint64_t offset, const Slice& data) {
        indexes.at(rank).take(offset, data);
        return Status();
    };
    Status status = co_await read_parts(world, std::move(layout), version, std::move(reads).value(), sink, settings, encoded, std::move(bad));
    co_return status;
}

std::vector<Rank> to_be_loaded(const OpenVersion& version, std::vector<Rank> ranks) {
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    std::erase_if(ranks, [&](Rank rank) { return !is_to_be_loaded(version.image(rank)); });
    return ranks;
}

}  // namespace

Task<Status> load_regions(World& world, Layout layout, OpenVersion& version, std::vector<Rank> ranks, RestoreSettings settings, EncodedRuns* encoded) {
    ranks = to_be_loaded(version, std::move(ranks));
    if (ranks.empty()) co_return Status();
    Indexes indexes;
    Status status = co_await read_indexes(world, std::move(layout), version, ranks, settings, indexes, {}, encoded);
    if (!status.ok()) co_return status;
    for (const auto& [rank, index] : indexes) {
        Result<std::vector<Region>> regions = unpacked(*version.image(rank), index.bytes);
        if (!regions.ok()) co_return std::move(regions).status().within(version_text(version.manifest.key));
        version.set_regions(rank, std::move(regions).value());
    }
    co_return Status();
}

Task<std::map<Rank, Status>> load_what_can_be(World& world, Layout layout, OpenVersion& version, RestoreSettings settings) {
    std::map<Rank, Status> unknown;
    std::vector<Rank> ranks = to_be_loaded(version, version.ranks());
    for (const Rank rank : ranks)
        if (Status tiles = check_tiling(version, rank); !tiles.ok()) unknown.emplace(rank, std::move(tiles));
    std::erase_if(ranks, [&](Rank rank) { return unknown.count(rank) != 0; });
    Indexes indexes;
    const OnBad bad = [&unknown](Rank rank, Status why) {
        unknown.emplace(rank, std::move(why));
        return Status();
    };
    const Status status = co_await read_indexes(world, std::move(layout), version, ranks, settings, indexes, bad);
    for (const Rank rank : ranks) {
        if (!status.ok()) unknown.emplace(rank, Status(status));
        if (unknown.count(rank) != 0) continue;
        Result<std::vector<Region>> regions = unpacked(*version.image(rank), indexes.at(rank).bytes);
        if (regions.ok()) version.set_regions(rank, std::move(regions).value());
        else unknown.emplace(rank, std::move(regions).status());
    }
    co_return unknown;
}

Task<Status> load_regions(World& world, LocalImage& image, RestoreSettings settings) {
    ImageInfo& info = image.header.image;
    if (!is_to_be_loaded(&info)) co_return Status();
    Result<Bytes> index = co_await read_range(world, image, index_range(info), settings);
    if (!index.ok()) co_return std::move(index).status();
    Result<std::vector<Region>> regions = unpacked(info, *index);
    if (!regions.ok()) co_return std::move(regions).status().within(image.path);
    info.regions = std::move(regions).value();
    co_return Status();
}

}  // namespace cairn
