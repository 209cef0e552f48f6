// Headers of image slots.
#include "format/image.hpp"

#include "base/checksum.hpp"
#include "format/check.hpp"
#include "format/fields.hpp"
#include "format/frame.hpp"
#include "image_generated.h"
#include "model/checksum_units.hpp"

namespace cairn {

using check::refuse;

namespace {
constexpr std::uint64_t page_bytes = 4096;
}

namespace {

std::uint64_t units_of(const ImageInfo& image, std::uint64_t block_bytes) { return div_up(image.bytes, block_bytes) + image.cuts; }

}  // namespace

std::uint64_t image_units(const ImageHeader& header) { return units_of(header.image, header.block_bytes); }
std::uint64_t image_table_bytes(const ImageHeader& header) { return 8 * (image_units(header) + header.image.cuts); }

ImageLayout image_layout(std::uint64_t header_encoded_bytes, const ImageInfo& image, std::uint64_t block_bytes) {
    ImageLayout layout;
    layout.checksums_offset = round_up(image_header_offset + header_encoded_bytes, 64);
    layout.data_offset = round_up(layout.checksums_offset + 8 * (units_of(image, block_bytes) + image.cuts), page_bytes);
    layout.file_bytes = layout.data_offset + round_up(image.bytes, page_bytes);
    return layout;
}

Status check_image_header(const ImageHeader& header) {
    TRY(check::key(header.key));
    TRY(check::parent(header.parent));
    if (header.epoch == 0 || header.epoch > epoch_max) return refuse("epoch ", header.epoch);
    TRY(check::ranks(header.ranks));
    if (header.rank >= header.ranks) return refuse("rank ", header.rank, " of ", header.ranks);
    if (header.image.rank != header.rank)
        return refuse("rank ", header.rank, " with the image of rank ", header.image.rank);
    TRY(check::block_bytes(header.block_bytes));
    TRY(check::image(header.image));
    const std::uint64_t room = header.data_offset - header.checksums_offset;
    const bool is_place = header.checksums_offset >= image_header_offset && header.checksums_offset % 8 == 0 && header.data_offset <= bytes_max &&
                          header.data_offset % page_bytes == 0 && header.checksums_offset <= header.data_offset;
    // Cuts first: a hostile header's may be so many that what they take is no number any more.
    if (!is_place || header.image.cuts > room / 16 || image_table_bytes(header) > room)
        return refuse("a checksum table at ", header.checksums_offset, " and data at ", header.data_offset,
                      " can not be");
    return {};
}

Bytes image_table(const ImageHeader& header, const std::vector<std::uint64_t>& checksums) {
    const ByteView sums = std::as_bytes(std::span(checksums)), cuts = std::as_bytes(std::span(header.cuts));
    Bytes table(sums.begin(), sums.end());
    table.insert(table.end(), cuts.begin(), cuts.end());
    return table;
}

Status check_cuts(const ImageHeader& header) {
    if (header.cuts.size() == header.image.cuts && cuts_valid(header.cuts, 0, header.image.bytes, header.block_bytes)) return {};
    return refuse("image of rank ", header.rank, ": its checksum units can not be cut so");
}

Bytes encode_image_header(const ImageHeader& header) {
    Writer writer;
    auto& builder = writer.builder;
    const auto image = writer.image(header.image);
    const auto key = writer.key(header.key);
    const fb::Parent parent = Writer::parent(header.parent);
    const fb::Place place(header.checksums_offset, header.data_offset);
    fb::FinishImageHeaderBuffer(builder, fb::CreateImageHeader(builder, key, header.epoch, &parent, header.ranks,
                                                               header.block_bytes, &place, image));
    return frame(FrameKind::image, writer.bytes());
}

std::uint64_t image_proof(const ImageHeader& header, ByteView table) {
    const std::uint64_t words[] = {header.key.incarnation.high, header.key.incarnation.low, header.key.version,
                                   header.rank,                 header.image.bytes,         header.block_bytes};
    const ByteView whose = std::as_bytes(std::span(words));
    Bytes bytes(whose.begin(), whose.end());
    bytes.insert(bytes.end(), table.begin(), table.end());
    return checksum(bytes);
}

Result<ImageHeader> decode_image_header(ByteView bytes) {
    Bytes body;
    TRY_ASSIGN(body, unframe(FrameKind::image, bytes, FrameEnd::more_may_follow));
    const auto* root = verified_root<fb::ImageHeader>(body, fb::ImageHeaderIdentifier());
    if (!root) return corrupt("image header: its checksum holds but its structure does not");
    Reader reader(body.size());
    ImageHeader value;
    value.key = reader.key(*root->key());
    value.epoch = root->epoch();
    value.parent = Reader::parent(*root->parent());
    value.ranks = root->ranks();
    value.block_bytes = root->block_bytes();
    value.checksums_offset = root->place()->checksums_offset();
    value.data_offset = root->place()->data_offset();
    value.image = reader.image(*root->image());
    value.rank = value.image.rank;
    if (reader.exhausted()) return corrupt("image header: it unpacks to more than it holds");
    TRY(check_image_header(value).within("image header"));
    if (value.checksums_offset < image_header_offset + frame_header_bytes + body.size())
        return corrupt("image header: its checksum table lies within itself");
    return value;
}

Status check_image_fits(const ImageHeader& header, std::uint64_t file_bytes) {
    if (header.data_offset <= file_bytes && header.image.bytes <= file_bytes - header.data_offset) return {};
    return refuse("image of rank ", header.rank, ": ", header.image.bytes, " bytes at ", header.data_offset,
                  " are more than the ", file_bytes, " of its slot file");
}

}  // namespace cairn
