// Footers and trailers of parts.
#include "format/part.hpp"

#include <algorithm>
#include <unordered_map>

#include "base/checksum.hpp"
#include "format/check.hpp"
#include "format/fields.hpp"
#include "format/frame.hpp"
#include "part_generated.h"

namespace cairn {

namespace {

// The trailer, from the end of the file. Its size and the places of magic, version and checksum stay in every version.
constexpr std::string_view part_magic = "CAIRNprt";
constexpr std::size_t offset_at = 0, length_at = 8, checksum_at = 16, version_at = 24, zero_at = 28,
                      own_checksum_at = 32, magic_at = 40;
static_assert(magic_at + 8 == part_trailer_bytes);

using check::refuse;

std::string name_of(const Extent& extent) {
    return "the extent of rank " + std::to_string(extent.rank) + " at " + std::to_string(extent.part_offset);
}

// One extent by itself; `image_bytes` are its rank's.
Status check_extent(const Extent& extent, const Footer& footer, std::uint64_t image_bytes) {
    const std::uint64_t block = footer.block_bytes;
    const std::string of = name_of(extent);
    if (extent.part_offset % block != 0 || extent.image_offset % block != 0)
        return refuse(of, " does not start on a block");
    if (extent.length == 0 || extent.length > image_bytes || extent.image_offset > image_bytes - extent.length)
        return refuse(of, " lies outside its image of ", image_bytes, " bytes");
    if (extent.length % block != 0 && extent.image_offset + extent.length != image_bytes)
        return refuse(of, " ends within a block that is not its image's last");
    if (extent.part_offset > footer.data_bytes ||
        round_up(extent.length, block) > footer.data_bytes - extent.part_offset)
        return refuse(of, " reaches beyond the part's ", footer.data_bytes, " data bytes");
    if (extent.checksums.size() != div_up(extent.length, block))
        return refuse(of, " has ", extent.checksums.size(), " checksums for ", div_up(extent.length, block), " blocks");
    return {};
}

// No two extents share a byte, in the part or in an image.
Status check_overlaps(const Footer& footer) {
    std::vector<const Extent*> by_image;
    by_image.reserve(footer.extents.size());
    for (std::size_t i = 0; i < footer.extents.size(); ++i) {
        const Extent& extent = footer.extents[i];
        by_image.push_back(&extent);
        if (i == 0) continue;
        const Extent& before = footer.extents[i - 1];
        if (extent.part_offset < before.part_offset + round_up(before.length, footer.block_bytes))
            return refuse(name_of(extent), " overlaps or precedes the one before it in the part");
    }
    std::sort(by_image.begin(), by_image.end(), [](const Extent* a, const Extent* b) {
        return a->rank != b->rank ? a->rank < b->rank : a->image_offset < b->image_offset;
    });
    for (std::size_t i = 1; i < by_image.size(); ++i) {
        const Extent &before = *by_image[i - 1], &extent = *by_image[i];
        if (extent.rank == before.rank && extent.image_offset < before.image_offset + before.length)
            return refuse(name_of(extent), " holds bytes of its image that another extent holds, too");
    }
    return {};
}

Status check_identity(const Footer& footer) {
    TRY(check::key(footer.key));
    if (!footer.attempt_id) return refuse("no attempt");
    TRY(check::ranks(footer.ranks));
    if (footer.parts == 0 || footer.parts > footer.ranks || footer.part >= footer.parts)
        return refuse("part ", footer.part, " of ", footer.parts, " for ", footer.ranks, " ranks");
    TRY(check::block_bytes(footer.block_bytes));
    if (footer.data_bytes > bytes_max || footer.data_bytes % footer.block_bytes != 0)
        return refuse(footer.data_bytes, " data bytes are not whole blocks of ", footer.block_bytes);
    return {};
}

std::uint64_t footer_bytes_bound(std::uint64_t blocks, std::uint64_t extents, const std::vector<ImageInfo>& images) {
    return 1024 + 8 * blocks + 128 * extents + check::encoded_bytes(images);
}

}  // namespace

Status check_part_size(std::uint64_t blocks, std::uint64_t extents, const std::vector<ImageInfo>& images) {
    if (blocks > part_blocks_max)
        return invalid_argument("a part of " + std::to_string(blocks) + " blocks; it has at most " +
                                std::to_string(part_blocks_max) + ": use larger blocks or more parts");
    if (footer_bytes_bound(blocks, extents, images) > record_bytes_max)
        return invalid_argument("regions and runs of images are too many for one part's footer: use more parts");
    return {};
}

Status check_footer(const Footer& footer) {
    TRY(check_identity(footer));
    std::unordered_map<Rank, std::uint64_t> image_bytes;
    for (const ImageInfo& image : footer.images) {
        if (image.rank >= footer.ranks) return refuse("rank ", image.rank, " of ", footer.ranks);
        if (!image_bytes.emplace(image.rank, image.bytes).second) return refuse("rank ", image.rank, " is there twice");
        TRY(check::image(image));
    }
    std::uint64_t blocks = 0;
    for (const Extent& extent : footer.extents) {
        const auto image = image_bytes.find(extent.rank);
        if (image == image_bytes.end()) return refuse(name_of(extent), ": nothing is said of that rank's image");
        TRY(check_extent(extent, footer, image->second));
        blocks += extent.checksums.size();
    }
    if (const Status size = check_part_size(blocks, footer.extents.size(), footer.images); !size.ok())
        return corrupt(size.text());
    return check_overlaps(footer);
}

Bytes encode_footer(const Footer& footer) {
    std::uint64_t blocks = 0;
    for (const Extent& extent : footer.extents) blocks += extent.checksums.size();
    const std::uint64_t bound = footer_bytes_bound(blocks, footer.extents.size(), footer.images);
    CAIRN_CHECK(bound <= record_bytes_max);
    Writer writer(bound);
    auto& builder = writer.builder;
    const auto images = writer.images(footer.images);
    const auto extents = writer.extents(footer.extents);
    const auto key = writer.key(footer.key);
    const fb::Id attempt_id = Writer::id(footer.attempt_id);
    fb::FinishFooterBuffer(
        builder, fb::CreateFooter(builder, key, footer.attempt, &attempt_id, footer.part, footer.parts, footer.ranks,
                                  footer.block_bytes, footer.data_bytes, images, extents));
    const ByteView body = writer.bytes();
    Bytes tail(body.size() + part_trailer_bytes);
    std::memcpy(tail.data(), body.data(), body.size());
    std::byte* trailer = tail.data() + body.size();
    put_u64(trailer + offset_at, footer.data_bytes);
    put_u64(trailer + length_at, body.size());
    put_u64(trailer + checksum_at, checksum(body));
    put_u32(trailer + version_at, format_version);
    put_u64(trailer + own_checksum_at, checksum(ByteView(trailer, own_checksum_at)));
    std::memcpy(trailer + magic_at, part_magic.data(), part_magic.size());
    return tail;
}

std::uint64_t footer_checksum(ByteView tail) {
    CAIRN_CHECK(tail.size() > part_trailer_bytes);
    return get_u64(tail.data() + tail.size() - part_trailer_bytes + checksum_at);
}

Result<FooterPlace> decode_trailer(ByteView last_bytes, std::uint64_t file_bytes) {
    if (last_bytes.size() < part_trailer_bytes || file_bytes < part_trailer_bytes)
        return refuse("cut short: ", file_bytes, " bytes are too few for a part");
    const ByteView trailer = last_bytes.last(part_trailer_bytes);
    if (as_text(trailer.subspan(magic_at)) != part_magic)
        return corrupt("no part ends like this: the file was cut short, or is not one of Cairn's");
    if (get_u64(&trailer[own_checksum_at]) != checksum(trailer.first(own_checksum_at)))
        return corrupt("the part's trailer is damaged");
    const std::uint32_t version = get_u32(&trailer[version_at]);
    if (version > format_version) return newer_format(version).within("part");
    const FooterPlace place{get_u64(&trailer[offset_at]), get_u64(&trailer[length_at]), get_u64(&trailer[checksum_at])};
    if (version == 0 || get_u32(&trailer[zero_at]) != 0) return corrupt("the part's trailer has impossible fields");
    const std::uint64_t before = file_bytes - part_trailer_bytes;
    if (place.length == 0 || place.length > record_bytes_max || place.length > before ||
        place.offset != before - place.length)
        return refuse("the footer of ", place.length, " bytes at ", place.offset,
                      " does not end where the trailer begins, at ", before);
    return place;
}

Result<Footer> decode_footer(ByteView footer, const FooterPlace& place) {
    if (footer.size() != place.length)
        return refuse("footer: ", footer.size(), " of ", place.length, " bytes are there");
    if (checksum(footer) != place.checksum) return corrupt("footer: its checksum does not match its bytes");
    Bytes aligned;  // FlatBuffers are read in place, as numbers of 8 bytes
    if (reinterpret_cast<std::uintptr_t>(footer.data()) % 8 != 0) {
        aligned.assign(footer.begin(), footer.end());
        footer = aligned;
    }
    const auto* root = verified_root<fb::Footer>(footer, fb::FooterIdentifier());
    if (!root) return corrupt("footer: its checksum holds but its structure does not");
    Reader reader(footer.size());
    Footer value;
    value.key = reader.key(*root->key());
    value.attempt = root->attempt();
    value.attempt_id = Reader::id(*root->attempt_id());
    value.part = root->part();
    value.parts = root->parts();
    value.ranks = root->ranks();
    value.block_bytes = root->block_bytes();
    value.data_bytes = root->data_bytes();
    value.images = reader.images(root->images());
    value.extents = reader.extents(root->extents());
    if (reader.exhausted()) return corrupt("footer: it unpacks to more than it holds");
    TRY(check_footer(value).within("footer"));
    if (value.data_bytes != place.offset)
        return refuse("footer: it lies at ", place.offset, ", not behind its ", value.data_bytes, " data bytes");
    return value;
}

}  // namespace cairn
