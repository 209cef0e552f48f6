// A committed version opened: the footers of the parts that hold what is asked for, each checked against the manifest, then what they say by rank.
#include <algorithm>
#include <limits>

#include "catalog/roots.hpp"
#include "copies/restore.hpp"
#include "copies/room_for.hpp"
#include "format/manifest.hpp"
#include "format/part.hpp"

namespace cairn {

void OpenVersion::index() {
    images_.clear();
    pieces_.clear();
    for (std::size_t footer = 0; footer < footers.size(); ++footer) {
        for (std::size_t i = 0; i < footers[footer].images.size(); ++i) images_.emplace(footers[footer].images[i].rank, std::pair(footer, i));
        const std::vector<StoredRun>& runs = footers[footer].runs;
        for (std::size_t run = 0; run < runs.size(); ++run)
            for (std::size_t piece = 0; piece < runs[run].pieces.size(); ++piece)
                pieces_[runs[run].pieces[piece].rank].push_back({footer, run, static_cast<std::uint32_t>(piece)});
    }
    for (auto& [rank, places] : pieces_)
        std::sort(places.begin(), places.end(), [this](const PiecePlace& a, const PiecePlace& b) { return piece(a).image_offset < piece(b).image_offset; });
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
static Status check_footer_place(const FooterPlace& place, const PartInfo& expected) {
    if (place.checksum == expected.footer_checksum && place.offset == expected.footer_offset) return {};
    return corrupt("its footer is not the one in the manifest");
}
static Result<Footer> unpacked(ByteView footer, const FooterPlace& place) {
    try {
        return decode_footer(footer, place);
    } catch (const std::exception&) {  // bad_alloc: it unpacks to several times its bytes
        return Status(Code::out_of_space, "no memory for what its footer of " + std::to_string(place.length) + " bytes holds");
    }
}

Task<Result<Footer>> read_footer(World& world, std::string path, const PartInfo* expected, RestoreSettings settings) {
    const Nanos deadline = world.clock.in(settings.io_wait);
    OpenOptions options;
    Result<FilePtr> file = co_await world.storage.open(path, options, deadline);
    if (!file.ok()) co_return std::move(file).status();
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
    if (expected) CO_TRY(check_footer_place(*place, *expected).within(path));
    Result<Bytes> room = room_for<Bytes>(place->length);
    if (!room.ok()) co_return std::move(room).status().within(path + ": its footer");
    auto body = std::make_shared<BytesBuffer>(std::move(room).value());
    Slice body_slice{body, 0, place->length};
    got = co_await read_all(world.storage, *file, place->offset, body_slice, deadline);
    if (!got.ok()) co_return got;
    Result<Footer> footer = unpacked(body->bytes(), *place);
    if (!footer.ok()) co_return std::move(footer).status().within(path);
    co_return footer;
}

static std::vector<Rank> ranks_of(const Footer& footer) {
    std::vector<Rank> ranks;
    for (const ImageInfo& image : footer.images) ranks.push_back(image.rank);
    std::sort(ranks.begin(), ranks.end());
    return ranks;
}

Status check_belongs(const Footer& footer, const Manifest& manifest, std::uint32_t part, const std::string& path) {
    const bool belongs = footer.key == manifest.key && footer.attempt_id == manifest.attempt_id && footer.part == part && footer.parts == manifest.parts.size() &&
                         footer.ranks == manifest.ranks && footer.block_bytes == manifest.block_bytes && ranks_of(footer) == manifest.parts[part].ranks;
    return belongs ? Status() : corrupt(path + ": belongs to another version, attempt or place than its manifest says");
}

Task<Result<OpenVersion>> open_version(World& world, Layout layout, Manifest manifest, Rank rank, RestoreSettings settings) {
    OpenVersion version;
    if (manifest.abandoned) co_return not_found(version_text(manifest.key) + " was given up");
    for (std::uint32_t i = 0; i < manifest.parts.size(); ++i) {
        const PartInfo& part = manifest.parts[i];
        if (rank != every_rank && !std::binary_search(part.ranks.begin(), part.ranks.end(), rank)) continue;
        const std::string path = layout.part(manifest, i);
        Result<Footer> footer = co_await read_footer(world, path, &part, settings);
        if (footer.code() == Code::not_found) {
            Status missing = co_await missing_part(world, layout, manifest, i, world.clock.in(settings.io_wait));
            co_return missing;
        }
        if (!footer.ok()) co_return std::move(footer).status();
        CO_TRY(check_belongs(*footer, manifest, i, path));
        version.footers.push_back(std::move(footer).value());
        version.parts.push_back(i);
    }
    version.manifest = std::move(manifest);
    version.index();
    co_return version;
}

}  // namespace cairn
