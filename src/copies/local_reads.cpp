// From a sealed image in scratch: whole units, each compared with its checksum where there are checksums, before anybody is told of it.
#include <algorithm>
#include <atomic>

#include "copies/landing.hpp"
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

// What is expected of so many units from there on.
std::span<const std::uint64_t> checksums_from(const LocalImage& image, std::uint64_t offset, std::size_t count) {
    return {image.checksums.data() + unit_count(image.header.block_bytes, 0, image.header.cuts, offset), count};
}

// Those among the units of a run that are not what their checksums are of.
Task<std::vector<ImageRange>> bad_units(World& world, const LocalImage& image, ImageRange run) {
    Slice data = image.data.part(run.offset, run.length);
    const std::uint64_t block_bytes = image.header.block_bytes;
    const Units units(block_bytes, run.offset, cuts_within(image.header.cuts, run.offset, run.length));
    const std::vector<std::uint64_t> made = co_await world.cpu.checksums(std::move(data), units);
    co_return differing_units(made, checksums_from(image, run.offset, made.size()), unit_ends(units, run.length), run.offset);
}

Status damaged(const LocalImage& image, ImageRange unit) {
    const std::string region = region_at(&image.header.image, unit.offset, unit.length);
    return corrupt(image.path + ": image in scratch: block " + std::to_string(unit.offset / image.header.block_bytes) + ", rank " + std::to_string(image.header.rank) +
                   (region.empty() ? "" : ", region " + region) + ": checksum differs");
}

// Out of the mapping.
Task<Status> read_mapped(World& world, const LocalImage& image, ImageRange run, const Receiving& to) {
    Slice data = image.data.part(run.offset, run.length);
    if (!image.checksums.empty()) {
        const std::vector<ImageRange> bad = co_await bad_units(world, image, run);
        if (!bad.empty()) co_return damaged(image, bad.front());
    }
    CO_TRY(to.take(image.header.rank, run.offset, std::move(data)));
    const Status there = check_not_lost(image);
    if (!there.ok()) co_return corrupt(there.text());
    co_return Status();
}

// Out of the file, straight to where the bytes go: of a mapping that is new to this process each page costs a fault. Nothing: not all of it has memory of its own, or this storage can not.
Task<std::optional<Status>> read_straight(World& world, const LocalImage& image, FilePtr file, ImageRange run, const Receiving& to, Nanos io_wait) {
    const Units units(image.header.block_bytes, run.offset, cuts_within(image.header.cuts, run.offset, run.length));
    const std::vector<std::uint64_t> ends = unit_ends(units, run.length);
    std::optional<std::vector<Destination>> into = destinations_of(to, image.header.rank, run.offset, ends);
    if (!into) co_return std::nullopt;
    const Nanos deadline = world.clock.in(io_wait);
    const Result<std::vector<std::uint64_t>> made = co_await world.storage.read_checksummed(std::move(file), image.data.offset + run.offset, run.length, units, std::move(*into), deadline);
    if (made.code() == Code::unsupported) co_return std::nullopt;
    if (!made.ok()) co_return made.status();
    const std::vector<ImageRange> bad = differing_units(*made, checksums_from(image, run.offset, made->size()), ends, run.offset);
    if (!bad.empty()) co_return damaged(image, bad.front());
    to.landed(image.header.rank, run.offset, run.length);
    co_return Status();
}

// To read it from. Nothing: it is read out of the mapping.
Task<FilePtr> file_of(World& world, const LocalImage& image, const Receiving& to, Nanos io_wait) {
    if (!to.memory || image.checksums.empty()) co_return nullptr;
    const Nanos deadline = world.clock.in(io_wait);
    OpenOptions options;
    Result<FilePtr> file = co_await world.storage.open(image.path, options, deadline);
    if (!file.ok()) co_return nullptr;
    co_return std::move(file).value();
}

}  // namespace

std::vector<ImageRange> plan_local_reads(const LocalImage& image, std::vector<ImageRange> ranges, std::uint64_t buffer_bytes) {
    const std::uint64_t block_bytes = image.header.block_bytes, bytes = image.header.image.bytes;
    const std::uint64_t run_max = std::max(block_bytes, buffer_bytes / block_bytes * block_bytes);
    const Wanted wanted(std::move(ranges));
    return wanted.units_in({block_bytes, 0, image.header.cuts}, bytes, run_max);
}

Task<Status> read_local(World& world, const LocalImage& image, std::vector<ImageRange> reads, Receiving to, Nanos io_wait) {
    const FilePtr file = co_await file_of(world, image, to, io_wait);
    for (const ImageRange& read : reads) {
        std::optional<Status> done;
        if (file) done = co_await read_straight(world, image, file, read, to, io_wait);
        if (!done) done = co_await read_mapped(world, image, read, to);
        if (!done->ok()) co_return std::move(*done);
    }
    co_return check_not_taken(image);
}

Task<Status> restore_local(World& world, const LocalImage& image, std::vector<ImageRange> ranges, ImageSink sink, RestoreSettings settings) {
    std::vector<ImageRange> reads = plan_local_reads(image, std::move(ranges), settings.buffer_bytes);
    const RankSink of_rank = [&sink](Rank, std::uint64_t offset, Slice data) { return sink(offset, std::move(data)); };
    Status status = co_await read_local(world, image, std::move(reads), of_rank, settings.io_wait);
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
