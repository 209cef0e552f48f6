// Restore, in this order: footers of the parts that hold the rank; the rank's extents must tile its image; reads of up to a buffer in part and
// offset order, a few in flight; every block verified; then the sink.
#include "copies/restore.hpp"

#include <algorithm>
#include <limits>

#include "format/image.hpp"
#include "format/manifest.hpp"
#include "format/part.hpp"

namespace cairn {

namespace {

constexpr std::size_t buffers_lost_max = 16;  // of one restore or verification

// One read: whole blocks of one extent.
struct ReadRun {
    std::size_t footer = 0;
    const Extent* extent = nullptr;
    std::uint64_t first_block = 0;  // in the extent
    std::uint64_t offset = 0;       // in the extent, bytes
    std::uint64_t length = 0;       // bytes
};

// Cuts an extent into reads of at most a buffer, leaving out blocks that nobody wants.
void add_runs(std::vector<ReadRun>& runs, std::size_t footer, const Extent& extent, std::uint64_t block_bytes,
              const Wanted& wanted, std::uint64_t buffer_bytes) {
    const std::uint64_t run_max = std::max(block_bytes, buffer_bytes / block_bytes * block_bytes);
    for (std::uint64_t at = 0; at < extent.length;) {
        const std::uint64_t one = std::min(block_bytes, extent.length - at);
        if (!wanted.touches(extent.image_offset + at, one)) {
            at += one;
            continue;
        }
        std::uint64_t length = one;
        while (at + length < extent.length && length + block_bytes <= run_max &&
               wanted.touches(extent.image_offset + at + length, std::min(block_bytes, extent.length - at - length)))
            length += std::min(block_bytes, extent.length - at - length);
        runs.push_back({footer, &extent, at / block_bytes, at, length});
        at += length;
    }
}

std::string region_at(const ImageInfo* image, std::uint64_t offset, std::uint64_t length) {
    std::string names;
    if (image)
        for (const Region& region : image->regions)
            if (region.offset < offset + length && offset < region.offset + region.length)
                names += (names.empty() ? "" : ", ") + region.name;
    return names;
}

const ImageInfo* find_image(const Footer& footer, Rank rank) {
    for (const ImageInfo& image : footer.images)
        if (image.rank == rank) return &image;
    return nullptr;
}

// The extents of a rank tile [0, bytes) exactly.
Status check_tiling(const OpenVersion& version, Rank rank, std::uint64_t bytes) {
    std::vector<const Extent*> extents;
    for (const Footer& footer : version.footers)
        for (const Extent& extent : footer.extents)
            if (extent.rank == rank) extents.push_back(&extent);
    std::sort(extents.begin(), extents.end(), [](const Extent* a, const Extent* b) { return a->image_offset < b->image_offset; });
    std::uint64_t at = 0;
    for (const Extent* extent : extents) {
        if (extent->image_offset != at)
            return corrupt("rank " + std::to_string(rank) + ": bytes from " + std::to_string(at) + " of its image are " +
                           (extent->image_offset > at ? "in no part" : "in two places"));
        at += extent->length;
    }
    if (at != bytes) return corrupt("rank " + std::to_string(rank) + ": bytes from " + std::to_string(at) + " of its image are in no part");
    return {};
}

// What the readers of one restore share.
struct Reading {
    World& world;
    RestoreSettings settings;
    const OpenVersion& version;
    std::vector<FilePtr> files;  // by footer
    std::vector<ReadRun> runs;
    std::size_t next = 0;
    Status failure;
    std::function<Status(const ReadRun&, Slice)> deliver;                    // a verified run
    std::function<Status(const ReadRun&, std::uint64_t block, Status)> bad;  // a block that is not what it should be; ok: go on
    std::size_t buffers_lost = 0;  // to reads that did not come back
};

// ok, or what `bad` made of a damaged block (block counted in the extent) or of a failed read.
Task<Status> read_run(Reading& r, const ReadRun& run, BufferPtr buffer) {
    const std::uint64_t block_bytes = r.version.footers[run.footer].block_bytes;
    Slice into{buffer, 0, run.length};
    const Nanos deadline = r.world.clock.in(r.settings.io_wait);
    Status status = co_await read_all(r.world.storage, r.files[run.footer], run.extent->part_offset + run.offset, into, deadline);
    if (!status.ok()) co_return r.bad(run, run.first_block, std::move(status));
    std::vector<std::uint64_t> made = co_await r.world.cpu.checksums(into, block_bytes);
    bool whole = true;
    for (std::size_t i = 0; i < made.size(); ++i) {
        if (made[i] == run.extent->checksums[run.first_block + i]) continue;
        whole = false;
        Status told = r.bad(run, run.first_block + i, corrupt("checksum differs"));
        if (!told.ok()) co_return told;
    }
    if (whole) co_return r.deliver(run, into);
    co_return Status();
}

Task<void> reader(Reading& r) {
    std::uint64_t buffer_bytes = 0;
    for (const ReadRun& run : r.runs) buffer_bytes = std::max(buffer_bytes, run.length);
    Result<BufferPtr> buffer = r.world.storage.allocate(round_up(buffer_bytes, 4096));
    if (!buffer.ok()) {
        r.failure = std::move(buffer).status();
        co_return;
    }
    while (r.failure.ok() && r.next < r.runs.size()) {
        const ReadRun& run = r.runs[r.next++];
        Status status = co_await read_run(r, run, *buffer);
        if (!status.ok() && r.failure.ok()) r.failure = std::move(status);
        if (buffer->use_count() == 1) continue;
        // A read outlived its deadline and holds the buffer. Whoever collects damage goes on, with so much more memory and no more.
        if (++r.buffers_lost > buffers_lost_max) co_return;
        buffer = r.world.storage.allocate(round_up(buffer_bytes, 4096));
        if (!buffer.ok()) co_return;
    }
}

Task<Status> read_runs(Reading& r, Layout layout) {
    for (std::size_t i = 0; i < r.version.footers.size(); ++i) {
        const PartInfo& part = r.version.manifest.parts[r.version.parts[i]];
        OpenOptions options;
        options.direct = r.settings.direct;
        const std::string path = layout.version(r.version.manifest.key) + "/" + part.file;
        Result<FilePtr> file = co_await r.world.storage.open(path, options, r.world.clock.in(r.settings.io_wait));
        if (file.code() == Code::not_found) co_return corrupt(path + ": the part is missing");
        if (!file.ok()) co_return std::move(file).status();
        r.files.push_back(std::move(file).value());
    }
    std::sort(r.runs.begin(), r.runs.end(), [](const ReadRun& a, const ReadRun& b) {
        const std::uint64_t at_a = a.extent->part_offset + a.offset, at_b = b.extent->part_offset + b.offset;
        return a.footer != b.footer ? a.footer < b.footer : at_a < at_b;
    });
    Gate gate(r.world.clock);
    const std::size_t readers = std::min<std::size_t>(r.settings.readers, r.runs.size());
    for (std::size_t i = 0; i < readers; ++i) gate.spawn(reader(r));
    co_await gate.close();
    if (r.failure.ok() && r.next < r.runs.size())
        co_return deadline_passed("reads of its parts did not come back, and the rest was not looked at: try again when the file system answers");
    co_return r.failure;
}

}  // namespace

const ImageInfo* OpenVersion::image(Rank rank) const {
    for (const Footer& footer : footers)
        if (const ImageInfo* found = find_image(footer, rank)) return found;
    return nullptr;
}

// A part that several nodes wrote was larger before its footer, and a node that wrote to it may remember that size for as long as its file
// system keeps attributes, a second or two: what is too large is looked at again before it is called damaged.
static Task<Result<std::uint64_t>> part_bytes(World& world, FilePtr file, std::uint64_t expected, Nanos deadline) {
    constexpr int looks = 4;
    for (int look = 1;; ++look) {
        Result<std::uint64_t> bytes = co_await world.storage.file_bytes(file, deadline);
        if (!bytes.ok() || *bytes <= expected || look == looks) co_return bytes;
        co_await world.clock.sleep(second);
    }
}

Task<Result<Footer>> read_footer(World& world, std::string path, const PartInfo* expected, RestoreSettings settings) {
    const Nanos deadline = world.clock.in(settings.io_wait);
    OpenOptions options;
    Result<FilePtr> file = co_await world.storage.open(path, options, deadline);
    if (!file.ok()) {
        if (file.code() == Code::not_found) co_return corrupt(path + ": the part is missing");
        co_return std::move(file).status();
    }
    const std::uint64_t bytes_most = expected ? expected->bytes : std::numeric_limits<std::uint64_t>::max();
    Result<std::uint64_t> bytes = co_await part_bytes(world, *file, bytes_most, deadline);
    if (!bytes.ok()) co_return std::move(bytes).status();
    if (expected && *bytes != expected->bytes)
        co_return corrupt(path + ": " + std::to_string(*bytes) + " bytes, " + std::to_string(expected->bytes) + " in the manifest");
    if (*bytes < part_trailer_bytes) co_return corrupt(path + ": too short to be a part");
    auto trailer = std::make_shared<BytesBuffer>(Bytes(part_trailer_bytes));
    Slice trailer_slice{trailer, 0, part_trailer_bytes};
    Status got = co_await read_all(world.storage, *file, *bytes - part_trailer_bytes, trailer_slice, deadline);
    if (!got.ok()) co_return got;
    Result<FooterPlace> place = decode_trailer(trailer->bytes(), *bytes);
    if (!place.ok()) co_return std::move(place).status().within(path);
    if (expected && place->checksum != expected->footer_checksum) co_return corrupt(path + ": its footer is not the one in the manifest");
    auto body = std::make_shared<BytesBuffer>(Bytes(place->length));
    Slice body_slice{body, 0, place->length};
    got = co_await read_all(world.storage, *file, place->offset, body_slice, deadline);
    if (!got.ok()) co_return got;
    Result<Footer> footer = decode_footer(body->bytes(), *place);
    if (!footer.ok()) co_return std::move(footer).status().within(path);
    co_return footer;
}

namespace {
bool belongs(const Footer& footer, const Manifest& manifest, std::uint32_t part) {
    return footer.key == manifest.key && footer.attempt_id == manifest.attempt_id && footer.part == part && footer.parts == manifest.parts.size() &&
           footer.ranks == manifest.ranks;
}
Status of_another(const std::string& path) { return corrupt(path + ": belongs to another version, attempt or place than its manifest says"); }
}  // namespace

Task<Result<OpenVersion>> open_version(World& world, Layout layout, Manifest manifest, Rank rank, RestoreSettings settings) {
    OpenVersion version;
    if (manifest.abandoned) co_return not_found(manifest.key.name + " version " + std::to_string(manifest.key.version) + " was given up");
    for (std::uint32_t i = 0; i < manifest.parts.size(); ++i) {
        const PartInfo& part = manifest.parts[i];
        if (rank != every_rank && !std::binary_search(part.ranks.begin(), part.ranks.end(), rank)) continue;
        const std::string path = layout.version(manifest.key) + "/" + part.file;
        Result<Footer> footer = co_await read_footer(world, path, &part, settings);
        if (!footer.ok()) co_return std::move(footer).status();
        if (!belongs(*footer, manifest, i)) co_return of_another(path);
        version.footers.push_back(std::move(footer).value());
        version.parts.push_back(i);
    }
    version.manifest = std::move(manifest);
    co_return version;
}

Task<Status> restore_image(World& world, Layout layout, const OpenVersion& version, Rank rank, std::vector<ImageRange> ranges,
                           ImageSink sink, RestoreSettings settings) {
    const ImageInfo* image = version.image(rank);
    const VersionKey& key = version.manifest.key;
    const std::string what = key.name + " version " + std::to_string(key.version);
    if (!image)
        co_return not_found(what + " has no image of rank " + std::to_string(rank) + "; it was taken by " +
                            std::to_string(version.manifest.ranks) + " ranks");
    CO_TRY(check_tiling(version, rank, image->bytes).within(what));
    Reading r{world, settings, version, {}, {}, 0, {}, {}, {}};
    const Wanted wanted(std::move(ranges));
    for (std::size_t i = 0; i < version.footers.size(); ++i)
        for (const Extent& extent : version.footers[i].extents)
            if (extent.rank == rank) add_runs(r.runs, i, extent, version.footers[i].block_bytes, wanted, settings.buffer_bytes);
    r.deliver = [&](const ReadRun& run, Slice data) { return sink(run.extent->image_offset + run.offset, std::move(data)); };
    r.bad = [&](const ReadRun& run, std::uint64_t block, Status status) {
        const std::uint64_t block_bytes = version.footers[run.footer].block_bytes;
        const std::string region = region_at(image, run.extent->image_offset + block * block_bytes, block_bytes);
        return std::move(status).within(what + ": " + version.manifest.parts[version.parts[run.footer]].file + " block " +
                                        std::to_string(run.extent->part_offset / block_bytes + block) + ", rank " + std::to_string(rank) +
                                        (region.empty() ? "" : ", region " + region));
    };
    Status status = co_await read_runs(r, layout);
    co_return status;
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

}  // namespace

Task<Status> restore_local(World& world, const LocalImage& image, std::vector<ImageRange> ranges, ImageSink sink, RestoreSettings settings) {
    const std::uint64_t block_bytes = image.header.block_bytes, bytes = image.header.image.bytes;
    const std::uint64_t run_max = std::max(block_bytes, settings.buffer_bytes / block_bytes * block_bytes);
    const Wanted wanted(std::move(ranges));
    for (std::uint64_t at = 0; at < bytes;) {
        const std::uint64_t length = std::min(run_max, bytes - at);
        if (wanted.touches(at, length)) {
            Slice data = image.data.part(at, length);
            if (!image.checksums.empty()) {
                std::vector<std::uint64_t> made = co_await world.cpu.checksums(data, block_bytes);
                for (std::size_t i = 0; i < made.size(); ++i) {
                    const std::uint64_t block = at / block_bytes + i;
                    if (made[i] == image.checksums[block]) continue;
                    const std::string region = region_at(&image.header.image, block * block_bytes, block_bytes);
                    co_return corrupt(image.path + ": image in scratch: block " + std::to_string(block) + ", rank " +
                                      std::to_string(image.header.rank) + (region.empty() ? "" : ", region " + region) + ": checksum differs");
                }
            }
            Status taken = sink(at, std::move(data));
            if (!taken.ok()) co_return taken;
            if (const Status there = check_not_lost(image); !there.ok()) co_return corrupt(there.text());
        }
        at += length;
    }
    co_return check_not_taken(image);
}

namespace {

Damage damage_of(std::string part, Status status) {
    Damage damage;
    damage.part = std::move(part);
    damage.status = std::move(status);
    return damage;
}

}  // namespace

Task<Result<std::vector<Damage>>> verify_version(World& world, Layout layout, Manifest manifest, RestoreSettings settings,
                                                 std::function<void(std::uint64_t bytes)> progress) {
    std::vector<Damage> damages;
    if (manifest.abandoned) co_return damages;
    OpenVersion whole;  // what could be opened; damage in one part does not hide damage in another
    whole.manifest = manifest;
    const std::string directory = layout.version(manifest.key);
    for (std::uint32_t i = 0; i < manifest.parts.size(); ++i) {
        const std::string path = directory + "/" + manifest.parts[i].file;
        Result<Footer> footer = co_await read_footer(world, path, &manifest.parts[i], settings);
        if (footer.ok() && !belongs(*footer, manifest, i)) footer = of_another(path);
        if (!footer.ok()) {
            damages.push_back(damage_of(manifest.parts[i].file, std::move(footer).status()));
            continue;
        }
        whole.footers.push_back(std::move(footer).value());
        whole.parts.push_back(i);
    }
    if (damages.empty()) {
        for (Rank rank = 0; rank < manifest.ranks; ++rank) {
            const ImageInfo* image = whole.image(rank);
            Status tiles = image ? check_tiling(whole, rank, image->bytes) : corrupt("rank " + std::to_string(rank) + " is in no part");
            if (!tiles.ok()) damages.push_back(damage_of("", std::move(tiles)));
        }
    }
    Reading r{world, settings, whole, {}, {}, 0, {}, {}, {}};
    const Wanted everything({});
    for (std::size_t i = 0; i < whole.footers.size(); ++i)
        for (const Extent& extent : whole.footers[i].extents)
            add_runs(r.runs, i, extent, whole.footers[i].block_bytes, everything, settings.buffer_bytes);
    r.deliver = [&](const ReadRun& run, Slice) {
        if (progress) progress(run.length);
        return Status();
    };
    r.bad = [&](const ReadRun& run, std::uint64_t block, Status status) {
        const Footer& footer = whole.footers[run.footer];
        Damage damage = damage_of(manifest.parts[whole.parts[run.footer]].file, std::move(status));
        damage.block = run.extent->part_offset / footer.block_bytes + block;
        damage.rank = run.extent->rank;
        damage.region = region_at(find_image(footer, damage.rank), run.extent->image_offset + block * footer.block_bytes, footer.block_bytes);
        damages.push_back(std::move(damage));
        return Status();
    };
    Status read = co_await read_runs(r, layout);
    if (!read.ok() && (read.code() != Code::deadline || damages.empty())) co_return read;
    if (!read.ok()) damages.push_back(damage_of("", std::move(read)));
    co_return damages;
}

Task<std::vector<Damage>> verify_local(World& world, const LocalImage& image, RestoreSettings settings,
                                       std::function<void(std::uint64_t bytes)> progress) {
    std::vector<Damage> damages;
    const std::uint64_t block_bytes = image.header.block_bytes;
    const std::uint64_t run_max = std::max(block_bytes, settings.buffer_bytes / block_bytes * block_bytes);
    for (std::uint64_t at = 0; at < image.data.length; at += run_max) {
        Slice data = image.data.part(at, std::min(run_max, image.data.length - at));
        const std::vector<std::uint64_t> made = co_await world.cpu.checksums(data, block_bytes);
        for (std::size_t i = 0; i < made.size(); ++i) {
            const std::uint64_t block = at / block_bytes + i;
            if (made[i] == image.checksums[block]) continue;
            Damage damage = damage_of(image.path, corrupt("checksum differs"));
            damage.block = block;
            damage.rank = image.header.rank;
            damage.region = region_at(&image.header.image, block * block_bytes, block_bytes);
            damages.push_back(std::move(damage));
        }
        if (progress) progress(data.length);
    }
    if (const Status there = check_not_lost(image); !there.ok()) damages.push_back(damage_of(image.path, corrupt(there.text())));
    co_return damages;
}

}  // namespace cairn
