// From a sealed image in scratch: whole units, each compared with its checksum where there are checksums, before anybody sees it.
#include <algorithm>
#include <atomic>

#include "copies/restore.hpp"
#include "format/image.hpp"
#include "model/checksum_units.hpp"

namespace cairn {

std::string region_at(const ImageInfo* image, std::uint64_t offset, std::uint64_t length) {
    if (!image) return {};
    constexpr std::size_t named_max = 32;  // of thousands in a block nobody reads more
    std::string names;
    std::size_t count = 0;
    const auto add = [&](const std::string& name) {
        if (++count <= named_max) names += (names.empty() ? "" : ", ") + name;
    };
    for (const Region& region : image->regions)
        if (region.offset < offset + length && offset < region.offset + region.length) add(region.name);
    if (image->index_bytes != 0 && offset + length > image->bytes - image->index_bytes) add(region_index_name);
    if (count > named_max) names += " and " + std::to_string(count - named_max) + " more";
    return names;
}

namespace {

// Whoever takes a slot for another image invalidates it before anything else changes (FORMAT.md, order of writes), so what was copied out
// of the mapping before this holds was the image. Pins keep a slot from being taken, but die with their daemon.
Status check_not_taken(const LocalImage& image) {
    const std::byte* base = image.data.buffer->data();
    if (base == nullptr) return {};  // described content
    std::atomic_thread_fence(std::memory_order_acquire);
    bool same = image_is_sealed(base);
    if (same) {
        const auto header = decode_image_header({base + image_header_offset, image.data.buffer->size() - image_header_offset});
        same = header.ok() && header->key == image.header.key && header->rank == image.header.rank;
    }
    return same ? Status() : corrupt(image.path + ": was taken for another image while it was read");
}

// Those among the units of a run that are not what their checksums are of.
Task<std::vector<ImageRange>> bad_units(World& world, const LocalImage& image, ImageRange run) {
    Slice data = image.data.part(run.offset, run.length);
    const std::uint64_t block_bytes = image.header.block_bytes;
    const Units units(block_bytes, run.offset, cuts_within(image.header.cuts, run.offset, run.length));
    const std::vector<std::uint64_t> made = co_await world.cpu.checksums(std::move(data), units), ends = unit_ends(units, run.length);
    const std::uint64_t first = unit_count(block_bytes, 0, image.header.cuts, run.offset);
    std::vector<ImageRange> bad;
    for (std::size_t i = 0; i < made.size(); ++i) {
        const std::uint64_t begin = i == 0 ? 0 : ends[i - 1];
        if (made[i] != image.checksums[first + i]) bad.push_back({run.offset + begin, ends[i] - begin});
    }
    co_return bad;
}

}  // namespace

std::vector<ImageRange> plan_local_reads(const LocalImage& image, std::vector<ImageRange> ranges, std::uint64_t buffer_bytes) {
    const std::uint64_t block_bytes = image.header.block_bytes, bytes = image.header.image.bytes;
    const std::uint64_t run_max = std::max(block_bytes, buffer_bytes / block_bytes * block_bytes);
    const Wanted wanted(std::move(ranges));
    return wanted.units_in({block_bytes, 0, image.header.cuts}, bytes, run_max);
}

Task<Status> read_local(World& world, const LocalImage& image, std::vector<ImageRange> reads, ImageSink sink) {
    for (const ImageRange& read : reads) {
        Slice data = image.data.part(read.offset, read.length);
        if (!image.checksums.empty()) {
            const std::vector<ImageRange> bad = co_await bad_units(world, image, read);
            if (!bad.empty()) {
                const std::string region = region_at(&image.header.image, bad.front().offset, bad.front().length);
                co_return corrupt(image.path + ": image in scratch: block " + std::to_string(bad.front().offset / image.header.block_bytes) + ", rank " +
                                  std::to_string(image.header.rank) + (region.empty() ? "" : ", region " + region) + ": checksum differs");
            }
        }
        Status taken = sink(read.offset, std::move(data));
        if (!taken.ok()) co_return taken;
        if (const Status there = check_not_lost(image); !there.ok()) co_return corrupt(there.text());
    }
    co_return check_not_taken(image);
}

Task<Status> restore_local(World& world, const LocalImage& image, std::vector<ImageRange> ranges, ImageSink sink, RestoreSettings settings) {
    std::vector<ImageRange> reads = plan_local_reads(image, std::move(ranges), settings.buffer_bytes);
    Status status = co_await read_local(world, image, std::move(reads), std::move(sink));
    co_return status;
}

Task<std::vector<Damage>> verify_local(World& world, const LocalImage& image, RestoreSettings settings,
                                       std::function<void(std::uint64_t bytes)> progress) {
    std::vector<Damage> damages;
    const std::uint64_t block_bytes = image.header.block_bytes;
    const std::uint64_t run_max = std::max(block_bytes, settings.buffer_bytes / block_bytes * block_bytes);
    for (std::uint64_t at = 0; at < image.data.length; at += run_max) {
        const ImageRange run{at, std::min(run_max, image.data.length - at)};
        const std::vector<ImageRange> bad = co_await bad_units(world, image, run);
        for (const ImageRange& unit : bad) {
            std::string region = region_at(&image.header.image, unit.offset, unit.length);
            damages.push_back({image.path, unit.offset / block_bytes, image.header.rank, std::move(region), corrupt("checksum differs")});
        }
        if (progress) progress(run.length);
    }
    if (const Status there = check_not_lost(image); !there.ok()) damages.push_back({image.path, std::nullopt, image.header.rank, {}, corrupt(there.text())});
    co_return damages;
}

}  // namespace cairn
