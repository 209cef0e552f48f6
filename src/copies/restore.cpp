// Restore, in this order: footers of the parts that hold the rank; the rank's extents must tile its image; reads of up to a buffer in part and
// offset order, a few in flight; every block verified; then the sink.
#include "copies/restore.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "format/image.hpp"
#include "format/manifest.hpp"
#include "format/part.hpp"

namespace cairn {

namespace {

constexpr std::size_t buffers_lost_max = 16;  // of one restore or verification

const Extent& extent_of(const OpenVersion& version, const PartRead& read) { return version.footers[read.footer].extents[read.extent]; }

// Cuts an extent into reads of at most a buffer, leaving out blocks that nobody wants.
void add_reads(std::vector<PartRead>& reads, const OpenVersion& version, std::size_t footer, std::size_t index, const Wanted& wanted,
               std::uint64_t buffer_bytes) {
    const std::uint64_t block_bytes = version.footers[footer].block_bytes;
    const Extent& extent = version.footers[footer].extents[index];
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
        reads.push_back({footer, index, at, length});
        at += length;
    }
}

void sort_front_to_back(std::vector<PartRead>& reads, const OpenVersion& version) {
    const auto place = [&](const PartRead& read) { return std::pair(read.footer, extent_of(version, read).part_offset + read.offset); };
    std::sort(reads.begin(), reads.end(), [&](const PartRead& a, const PartRead& b) { return place(a) < place(b); });
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

// Where the extents of one rank are, as (footer, extent).
using Places = std::vector<std::pair<std::size_t, std::size_t>>;

// Of all ranks of which `is_wanted`, in one pass, however many they are.
std::map<Rank, Places> extents_by_rank(const OpenVersion& version, const std::function<bool(Rank)>& is_wanted) {
    std::map<Rank, Places> found;
    for (std::size_t i = 0; i < version.footers.size(); ++i)
        for (std::size_t j = 0; j < version.footers[i].extents.size(); ++j)
            if (const Rank rank = version.footers[i].extents[j].rank; is_wanted(rank)) found[rank].push_back({i, j});
    return found;
}

// The extents of a rank tile [0, bytes) exactly.
Status check_tiling(const OpenVersion& version, Rank rank, const Places& places, std::uint64_t bytes) {
    std::vector<const Extent*> extents;
    for (const auto& [footer, extent] : places) extents.push_back(&version.footers[footer].extents[extent]);
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

// Of every rank; the first footer that has one counts.
std::map<Rank, const ImageInfo*> images_by_rank(const OpenVersion& version) {
    std::map<Rank, const ImageInfo*> images;
    for (const Footer& footer : version.footers)
        for (const ImageInfo& image : footer.images) images.emplace(image.rank, &image);
    return images;
}

// What the readers of one restore share.
struct Reading {
    World& world;
    RestoreSettings settings;
    const OpenVersion& version;
    std::vector<FilePtr> files;  // by footer
    std::vector<PartRead> reads;
    std::size_t next = 0;
    Status failure;
    std::function<Status(const PartRead&, Slice)> deliver;                    // a verified run
    std::function<Status(const PartRead&, std::uint64_t block, Status)> bad;  // a block that is not what it should be; ok: go on
    std::size_t buffers_lost = 0;  // to reads that did not come back
};

// ok, or what `bad` made of a damaged block (block counted in the extent) or of a failed read.
Task<Status> read_run(Reading& r, const PartRead& run, BufferPtr buffer) {
    const std::uint64_t block_bytes = r.version.footers[run.footer].block_bytes, first_block = run.offset / block_bytes;
    const Extent& extent = extent_of(r.version, run);
    Slice into{buffer, 0, run.length};
    const Nanos deadline = r.world.clock.in(r.settings.io_wait);
    Status status = co_await read_all(r.world.storage, r.files[run.footer], extent.part_offset + run.offset, into, deadline);
    if (!status.ok()) co_return r.bad(run, first_block, std::move(status));
    std::vector<std::uint64_t> made = co_await r.world.cpu.checksums(into, block_bytes);
    bool whole = true;
    for (std::size_t i = 0; i < made.size(); ++i) {
        if (made[i] == extent.checksums[first_block + i]) continue;
        whole = false;
        Status told = r.bad(run, first_block + i, corrupt("checksum differs"));
        if (!told.ok()) co_return told;
    }
    if (whole) co_return r.deliver(run, into);
    co_return Status();
}

Task<void> reader(Reading& r) {
    std::uint64_t buffer_bytes = 0;
    for (const PartRead& run : r.reads) buffer_bytes = std::max(buffer_bytes, run.length);
    Result<BufferPtr> buffer = r.world.storage.allocate(round_up(buffer_bytes, 4096));
    if (!buffer.ok()) {
        r.failure = std::move(buffer).status();
        co_return;
    }
    while (r.failure.ok() && r.next < r.reads.size()) {
        const PartRead& run = r.reads[r.next++];
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
    Gate gate(r.world.clock);
    const std::size_t readers = std::min<std::size_t>(r.settings.readers, r.reads.size());
    for (std::size_t i = 0; i < readers; ++i) gate.spawn(reader(r));
    co_await gate.close();
    if (r.failure.ok() && r.next < r.reads.size())
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
    if (manifest.abandoned) co_return not_found(version_text(manifest.key) + " was given up");
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

Result<std::vector<PartRead>> plan_part_reads(const OpenVersion& version, const std::vector<WantedImage>& wanted, std::uint64_t buffer_bytes) {
    const std::string what = version_text(version.manifest.key);
    std::set<Rank> ranks;
    for (const WantedImage& each : wanted) ranks.insert(each.rank);
    const std::map<Rank, const ImageInfo*> images = images_by_rank(version);
    std::map<Rank, Places> places = extents_by_rank(version, [&](Rank rank) { return ranks.count(rank) != 0; });
    std::vector<PartRead> reads;
    for (const WantedImage& each : wanted) {
        const auto image = images.find(each.rank);
        if (image == images.end())
            return not_found(what + " has no image of rank " + std::to_string(each.rank) + "; it was taken by " +
                             std::to_string(version.manifest.ranks) + " ranks");
        TRY(check_tiling(version, each.rank, places[each.rank], image->second->bytes).within(what));
        const Wanted of_rank(each.ranges);
        for (const auto& [footer, extent] : places[each.rank]) add_reads(reads, version, footer, extent, of_rank, buffer_bytes);
    }
    sort_front_to_back(reads, version);
    return reads;
}

Task<Status> read_parts(World& world, Layout layout, const OpenVersion& version, std::vector<PartRead> reads, RankSink sink,
                        RestoreSettings settings) {
    Reading r{world, settings, version, {}, std::move(reads), 0, {}, {}, {}};
    r.deliver = [&](const PartRead& run, Slice data) {
        const Extent& extent = extent_of(version, run);
        return sink(extent.rank, extent.image_offset + run.offset, std::move(data));
    };
    r.bad = [&](const PartRead& run, std::uint64_t block, Status status) {
        const std::uint64_t block_bytes = version.footers[run.footer].block_bytes;
        const Extent& extent = extent_of(version, run);
        const std::string region = region_at(version.image(extent.rank), extent.image_offset + block * block_bytes, block_bytes);
        return std::move(status).within(version_text(version.manifest.key) + ": " + version.manifest.parts[version.parts[run.footer]].file + " block " +
                                        std::to_string(extent.part_offset / block_bytes + block) + ", rank " + std::to_string(extent.rank) +
                                        (region.empty() ? "" : ", region " + region));
    };
    Status status = co_await read_runs(r, layout);
    co_return status;
}

Task<Status> restore_image(World& world, Layout layout, const OpenVersion& version, Rank rank, std::vector<ImageRange> ranges,
                           ImageSink sink, RestoreSettings settings) {
    std::vector<WantedImage> wanted;
    wanted.push_back({rank, std::move(ranges)});
    Result<std::vector<PartRead>> reads = plan_part_reads(version, wanted, settings.buffer_bytes);
    if (!reads.ok()) co_return std::move(reads).status();
    const RankSink of_rank = [&sink](Rank, std::uint64_t offset, Slice data) { return sink(offset, std::move(data)); };
    Status status = co_await read_parts(world, layout, version, std::move(reads).value(), of_rank, settings);
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

std::vector<ImageRange> plan_local_reads(const LocalImage& image, std::vector<ImageRange> ranges, std::uint64_t buffer_bytes) {
    const std::uint64_t block_bytes = image.header.block_bytes, bytes = image.header.image.bytes;
    const std::uint64_t run_max = std::max(block_bytes, buffer_bytes / block_bytes * block_bytes);
    const Wanted wanted(std::move(ranges));
    std::vector<ImageRange> reads;
    for (std::uint64_t at = 0; at < bytes;) {
        const std::uint64_t length = std::min(run_max, bytes - at);
        if (wanted.touches(at, length)) reads.push_back({at, length});
        at += length;
    }
    return reads;
}

Task<Status> read_local(World& world, const LocalImage& image, std::vector<ImageRange> reads, ImageSink sink) {
    const std::uint64_t block_bytes = image.header.block_bytes;
    for (const ImageRange& read : reads) {
        Slice data = image.data.part(read.offset, read.length);
        if (!image.checksums.empty()) {
            std::vector<std::uint64_t> made = co_await world.cpu.checksums(data, block_bytes);
            for (std::size_t i = 0; i < made.size(); ++i) {
                const std::uint64_t block = read.offset / block_bytes + i;
                if (made[i] == image.checksums[block]) continue;
                const std::string region = region_at(&image.header.image, block * block_bytes, block_bytes);
                co_return corrupt(image.path + ": image in scratch: block " + std::to_string(block) + ", rank " +
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
    const std::map<Rank, const ImageInfo*> images = images_by_rank(whole);
    if (damages.empty()) {
        std::map<Rank, Places> places = extents_by_rank(whole, [](Rank) { return true; });
        for (Rank rank = 0; rank < manifest.ranks; ++rank) {
            const auto image = images.find(rank);
            Status tiles = image != images.end() ? check_tiling(whole, rank, places[rank], image->second->bytes)
                                                 : corrupt("rank " + std::to_string(rank) + " is in no part");
            if (!tiles.ok()) damages.push_back(damage_of("", std::move(tiles)));
        }
    }
    Reading r{world, settings, whole, {}, {}, 0, {}, {}, {}};
    const Wanted everything({});
    for (std::size_t i = 0; i < whole.footers.size(); ++i)
        for (std::size_t j = 0; j < whole.footers[i].extents.size(); ++j) add_reads(r.reads, whole, i, j, everything, settings.buffer_bytes);
    sort_front_to_back(r.reads, whole);
    r.deliver = [&](const PartRead& run, Slice) {
        if (progress) progress(run.length);
        return Status();
    };
    r.bad = [&](const PartRead& run, std::uint64_t block, Status status) {
        const Footer& footer = whole.footers[run.footer];
        const Extent& extent = extent_of(whole, run);
        Damage damage = damage_of(manifest.parts[whole.parts[run.footer]].file, std::move(status));
        damage.block = extent.part_offset / footer.block_bytes + block;
        damage.rank = extent.rank;
        damage.region = region_at(find_image(footer, damage.rank), extent.image_offset + block * footer.block_bytes, footer.block_bytes);
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
