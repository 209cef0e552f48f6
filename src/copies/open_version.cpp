// A committed version opened: the footers of the parts that hold what is asked for, each checked against the manifest, then what they say by rank.
#include <algorithm>
#include <limits>
#include <optional>

#include "catalog/roots.hpp"
#include "copies/bases.hpp"
#include "copies/restore.hpp"
#include "copies/room_for.hpp"
#include "format/manifest.hpp"
#include "format/part.hpp"
#include "world/gate.hpp"

namespace cairn {

void OpenVersion::index() {
    images_.clear();
    pieces_.clear();
    for (std::size_t footer = 0; footer < footers.size(); ++footer) {
        for (std::size_t i = 0; i < footers[footer].images.size(); ++i)
            if (holds(footer, footers[footer].images[i].rank)) images_.emplace(footers[footer].images[i].rank, std::pair(footer, i));
        const std::vector<StoredRun>& runs = footers[footer].runs;
        for (std::size_t run = 0; run < runs.size(); ++run)
            for (std::size_t piece = 0; piece < runs[run].pieces.size(); ++piece)
                if (const Rank rank = runs[run].pieces[piece].rank; holds(footer, rank)) pieces_[rank].push_back({footer, run, static_cast<std::uint32_t>(piece)});
    }
    for (auto& [rank, places] : pieces_)
        std::sort(places.begin(), places.end(), [this](const PiecePlace& a, const PiecePlace& b) { return piece(a).image_offset < piece(b).image_offset; });
}

bool OpenVersion::holds(std::size_t footer, Rank rank) const {
    const PartInfo& part = manifest.parts[parts[footer]];
    return part.origin == 0 || std::binary_search(part.ranks.begin(), part.ranks.end(), rank);
}

const ImageInfo* OpenVersion::image(Rank rank) const {
    const auto found = images_.find(rank);
    return found == images_.end() ? nullptr : &footers[found->second.first].images[found->second.second];
}

std::vector<Rank> OpenVersion::ranks() const {
    std::vector<Rank> ranks;
    for (const auto& [rank, place] : images_) ranks.push_back(rank);
    std::sort(ranks.begin(), ranks.end());
    return ranks;
}

void OpenVersion::set_regions(Rank rank, std::vector<Region> regions) {
    const auto& [footer, image] = images_.at(rank);
    footers[footer].images[image].regions = std::move(regions);
}

const std::vector<PiecePlace>& OpenVersion::pieces(Rank rank) const {
    static const std::vector<PiecePlace> none;
    const auto found = pieces_.find(rank);
    return found == pieces_.end() ? none : found->second;
}

Status check_tiling(const OpenVersion& version, Rank rank) {
    const ImageInfo* image = version.image(rank);
    if (!image) return corrupt("rank " + std::to_string(rank) + " is in no part");
    std::uint64_t at = 0;
    for (const PiecePlace& place : version.pieces(rank)) {
        const StoredPiece& piece = version.piece(place);
        if (piece.image_offset != at)
            return corrupt("rank " + std::to_string(rank) + ": bytes from " + std::to_string(at) + " of its image are " + (piece.image_offset > at ? "in no part" : "in two places"));
        at += piece.length;
    }
    if (at != image->bytes) return corrupt("rank " + std::to_string(rank) + ": bytes from " + std::to_string(at) + " of its image are in no part");
    return {};
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

// A sparse part can say that it has a footer of 2 GiB: what the manifest says first, and then a failure for want of memory is no more than that.
static Result<Footer> unpacked(ByteView footer, const FooterPlace& place) {
    try {
        return decode_footer(footer, place);
    } catch (const std::exception&) {  // bad_alloc: it unpacks to several times its bytes
        return Status(Code::out_of_space, "no memory for what its footer of " + std::to_string(place.length) + " bytes holds");
    }
}

// A file of a part, and its size: that of the manifest, where there is one.
struct PartFile {
    FilePtr file;
    std::uint64_t bytes = 0;
};
static Task<Result<PartFile>> open_part_file(World& world, std::string path, std::optional<std::uint64_t> expected, Nanos deadline) {
    OpenOptions options;
    Result<FilePtr> file = co_await world.storage.open(path, options, deadline);
    if (!file.ok()) co_return std::move(file).status();
    Result<std::uint64_t> bytes = co_await part_bytes(world, *file, expected.value_or(std::numeric_limits<std::uint64_t>::max()), deadline);
    if (!bytes.ok()) co_return std::move(bytes).status();
    if (expected && *bytes != *expected) co_return corrupt(path + ": " + std::to_string(*bytes) + " bytes, " + std::to_string(*expected) + " in the manifest");
    co_return PartFile{std::move(file).value(), *bytes};
}

// Footer and trailer are the last of the file.
static Task<Result<Footer>> read_tail(World& world, PartFile file, const PartInfo* expected, Nanos deadline) {
    if (file.bytes < part_trailer_bytes) co_return corrupt("too short to be a part");
    auto trailer = std::make_shared<BytesBuffer>(Bytes(part_trailer_bytes));
    Slice trailer_slice{trailer, 0, part_trailer_bytes};
    CO_TRY(co_await read_all(world.storage, file.file, file.bytes - part_trailer_bytes, trailer_slice, deadline));
    Result<FooterPlace> place = decode_trailer(trailer->bytes(), file.bytes);
    if (!place.ok()) co_return std::move(place).status();
    if (expected) CO_TRY(check_footer_place(*place, *expected));
    Result<Bytes> room = room_for<Bytes>(place->length);
    if (!room.ok()) co_return std::move(room).status().within("its footer");
    auto body = std::make_shared<BytesBuffer>(std::move(room).value());
    Slice body_slice{body, 0, place->length};
    CO_TRY(co_await read_all(world.storage, file.file, place->offset, body_slice, deadline));
    co_return unpacked(body->bytes(), *place);
}

Task<Result<Footer>> read_footer(World& world, std::string path, const PartInfo* expected, RestoreSettings settings) {
    const Nanos deadline = world.clock.in(settings.io_wait);
    const bool is_beside = expected && expected->index_bytes != 0;
    std::optional<std::uint64_t> bytes;
    if (expected) bytes = expected->bytes;
    Result<PartFile> file = co_await open_part_file(world, path, bytes, deadline);
    if (!file.ok()) co_return std::move(file).status();
    if (is_beside) {
        path = part_index_file_name(path);
        file = co_await open_part_file(world, path, expected->index_bytes, deadline);
        if (file.code() == Code::not_found) co_return corrupt(path + ": is missing, and the part beside it can not be read without it");
        if (!file.ok()) co_return std::move(file).status();
    }
    Result<Footer> footer = co_await read_tail(world, std::move(file).value(), expected, deadline);
    if (!footer.ok()) co_return std::move(footer).status().within(path);
    co_return footer;
}

Task<Status> check_prefix(World& world, std::string path, const Footer& footer, RestoreSettings settings) {
    if (footer.prefix_bytes == 0) co_return Status();
    Result<Bytes> room = room_for<Bytes>(footer.prefix_bytes);
    if (!room.ok()) co_return std::move(room).status().within(path + ": its prefix");
    Slice prefix = Slice::of(std::move(room).value());
    const Nanos deadline = world.clock.in(settings.io_wait);
    OpenOptions options;
    Result<FilePtr> file = co_await world.storage.open(path, options, deadline);
    if (!file.ok()) co_return std::move(file).status();
    CO_TRY(co_await read_all(world.storage, *file, 0, prefix, deadline));
    const std::vector<std::uint64_t> made = co_await world.cpu.checksums(prefix, prefix.length);
    if (made.front() != footer.prefix_checksum) co_return corrupt(path + ": what stands before its data is damaged");
    co_return Status();
}

namespace {

// Several at a time: each takes a few round trips, and a part that a node remembers to be longer some seconds.
struct Opening {
    World& world;
    const Layout& layout;
    const OpenVersion& version;
    const RestoreSettings& settings;
    std::vector<std::uint32_t> parts = {};
    std::vector<Result<Footer>> footers = {};  // of each of these
    std::size_t next = 0;
    bool has_failed = false;
};

Task<Result<Footer>> open_part(const Opening& of, std::uint32_t part) {
    const Manifest& manifest = of.version.manifest;
    const std::string path = of.layout.part(manifest, part);
    Result<Footer> footer = co_await read_footer(of.world, path, &manifest.parts[part], of.settings);
    if (footer.code() == Code::not_found) {
        Status missing = co_await missing_part(of.world, of.layout, manifest, part, of.world.clock.in(of.settings.io_wait));
        co_return missing;
    }
    if (!footer.ok()) co_return footer;
    CO_TRY(check_part_of(manifest, part, *footer).within(path));
    co_return footer;
}

Task<void> open_next(Opening& of) {
    while (!of.has_failed && of.next < of.parts.size()) {
        const std::size_t at = of.next++;
        Result<Footer> footer = co_await open_part(of, of.parts[at]);
        of.has_failed |= !footer.ok();
        of.footers[at] = std::move(footer);
    }
}

}  // namespace

Task<Status> open_parts(World& world, Layout layout, OpenVersion& version, const std::set<Rank>* ranks, RestoreSettings settings) {
    Opening opening{world, layout, version, settings};
    for (std::uint32_t i = 0; i < version.manifest.parts.size(); ++i) {
        const std::vector<Rank>& there = version.manifest.parts[i].ranks;
        if (!ranks || std::any_of(there.begin(), there.end(), [&](Rank rank) { return ranks->count(rank) != 0; })) opening.parts.push_back(i);
    }
    opening.footers.assign(opening.parts.size(), Status(Code::cancelled, "another part could not be opened"));
    Gate gate(world.clock);
    for (std::size_t i = 0; i < std::min<std::size_t>(settings.readers, opening.parts.size()); ++i) gate.spawn(open_next(opening));
    co_await gate.close();
    for (std::size_t i = 0; i < opening.parts.size(); ++i) {  // of those that failed the first one
        if (!opening.footers[i].ok() && opening.footers[i].code() == Code::cancelled && opening.has_failed) continue;
        if (!opening.footers[i].ok()) co_return std::move(opening.footers[i]).status();
        version.footers.push_back(std::move(opening.footers[i]).value());
        version.parts.push_back(opening.parts[i]);
    }
    version.index();
    co_return Status();
}

Task<Result<OpenVersion>> open_version(World& world, Layout layout, Manifest manifest, Rank rank, RestoreSettings settings) {
    if (manifest.abandoned) co_return not_found(version_text(manifest.key) + " was given up");
    OpenVersion version;
    version.manifest = std::move(manifest);
    std::set<Rank> only;
    only.insert(rank);
    const std::set<Rank>* const ranks = rank == every_rank ? nullptr : &only;
    Status opened = co_await open_parts(world, layout, version, ranks, settings);
    if (!opened.ok()) co_return opened;
    co_await open_bases(world, std::move(layout), version, ranks, settings);
    co_return version;
}

}  // namespace cairn
