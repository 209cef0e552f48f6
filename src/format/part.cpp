// Footers and trailers of parts.
#include "format/part.hpp"

#include <algorithm>
#include <unordered_map>

#include "base/checksum.hpp"
#include "format/check.hpp"
#include "format/covers.hpp"
#include "format/fields.hpp"
#include "format/frame.hpp"
#include "model/checksum_units.hpp"
#include "part_generated.h"

namespace cairn {

namespace {

// The trailer, from the end of the file. Its size and the places of magic, version and checksum stay in every version.
constexpr std::string_view part_magic = "CAIRNprt";
constexpr std::size_t offset_at = 0, length_at = 8, checksum_at = 16, version_at = 24, zero_at = 28,
                      own_checksum_at = 32, magic_at = 40;
static_assert(magic_at + 8 == part_trailer_bytes);

using check::refuse;

std::string name_of(const StoredRun& run) { return "the run at " + std::to_string(run.part_offset); }
std::string name_of(const StoredPiece& piece) { return "rank " + std::to_string(piece.rank) + " at " + std::to_string(piece.image_offset) + " of its image"; }

using ImageBytes = std::unordered_map<Rank, std::uint64_t>;

// Where a run lies, and how its bytes are stored.
Status check_place(const StoredRun& run, const Footer& footer) {
    const std::string of = name_of(run);
    if (run.stored_bytes == 0 || run.part_offset > footer.data_bytes || run.stored_bytes > footer.data_bytes - run.part_offset)
        return refuse(of, " with ", run.stored_bytes, " bytes reaches beyond the part's ", footer.data_bytes, " data bytes");
    if (run.pieces.empty()) return refuse(of, " holds nothing of any image");
    if (run.codec > footer.codecs.size()) return refuse(of, " has codec ", run.codec, " of ", footer.codecs.size());
    if (run.codec == 0 && run.checksum != 0) return refuse(of, " is stored as it is, and yet has a checksum of its own");
    if (run.base > footer.bases.size()) return refuse(of, " has base ", run.base, " of ", footer.bases.size());
    if (run.codec == 0 && run.base != 0) return refuse(of, " is stored as it is, and yet has a base");
    return {};
}

// One piece by itself; `end`: of what the pieces before it hold of the run.
Status check_piece(const StoredPiece& piece, const Footer& footer, const ImageBytes& images, std::uint64_t end) {
    const std::string of = name_of(piece);
    const auto image = images.find(piece.rank);
    if (image == images.end()) return refuse(of, ": nothing is said of that rank's image");
    if (piece.length == 0 || piece.length > image->second || piece.image_offset > image->second - piece.length)
        return refuse(of, " with ", piece.length, " bytes lies outside its image of ", image->second, " bytes");
    if (!cuts_valid(piece.cuts, piece.image_offset, piece.length, footer.block_bytes)) return refuse(of, ": its units can not be cut so");
    const std::uint64_t units = unit_count(footer.block_bytes, piece.image_offset, piece.cuts, piece.length);
    if (piece.checksums.size() != units) return refuse(of, " has ", piece.checksums.size(), " checksums for ", units, " units");
    if (piece.at > end) return refuse(of, " lies at ", piece.at, " of its run, of which only ", end, " bytes come before");
    return {};
}

Status check_run(const StoredRun& run, const Footer& footer, const ImageBytes& images) {
    TRY(check_place(run, footer));
    std::uint64_t end = 0, at = 0;
    for (const StoredPiece& piece : run.pieces) {
        if (piece.at < at) return refuse(name_of(run), ": ", name_of(piece), " is out of order");
        at = piece.at;
        TRY(check_piece(piece, footer, images, end).within(name_of(run)));
        end = std::max(end, piece.at + piece.length);
    }
    if (run.codec == 0 && end != run.stored_bytes) return refuse(name_of(run), " stores ", run.stored_bytes, " bytes as they are, and its pieces are ", end);
    if (run.codec != 0 && run.stored_bytes >= end) return refuse(name_of(run), " encodes ", end, " bytes as ", run.stored_bytes, ", which is not shorter");
    if (run.codec != 0 && end > encoded_run_bytes_max) return refuse(name_of(run), " encodes ", end, " bytes in one; at most ", encoded_run_bytes_max, " are allowed");
    return {};
}

// No two runs share a byte of the part. Each starts where direct I/O can, or without a gap: other formats take none.
Status check_runs_apart(const Footer& footer) {
    std::uint64_t end = footer.prefix_bytes;
    for (const StoredRun& run : footer.runs) {
        if (run.part_offset < end) return refuse(name_of(run), " overlaps or precedes what is before it");
        if (run.part_offset != end && run.part_offset % part_alignment != 0) return refuse(name_of(run), " starts neither on a multiple of ", part_alignment, " nor where what is before it ends");
        end = run.part_offset + run.stored_bytes;
    }
    if (end > footer.data_bytes) return refuse(footer.data_bytes, " data bytes, and its prefix is ", footer.prefix_bytes);
    if (footer.data_bytes != end && footer.data_bytes % part_alignment != 0) return refuse(footer.data_bytes, " data bytes are no multiple of ", part_alignment);
    return {};
}

Status check_bases(const Footer& footer) {
    if (footer.bases.size() > base_runs_max) return refuse(footer.bases.size(), " base runs; at most ", base_runs_max, " are allowed");
    for (const BaseRun& base : footer.bases)
        if (base.of.version == 0 || base.of.version >= footer.key.version || !base.of.incarnation || base.part >= ranks_max || base.part_offset > bytes_max)
            return refuse("a run of version ", base.of.version, " can not be a base of one of version ", footer.key.version);
    return {};
}

Status check_codecs(const std::vector<CodecName>& codecs) {
    if (codecs.size() > codecs_max) return refuse(codecs.size(), " codecs; at most ", codecs_max, " are allowed");
    for (const CodecName& codec : codecs)
        if (codec.name.empty() || !printable(codec.name, codec_text_bytes_max) || !printable(codec.parameters, codec_text_bytes_max))
            return refuse("a codec with an impossible name or parameters");
    return {};
}

Status check_identity(const Footer& footer) {
    TRY(check::key(footer.key));
    if (!footer.attempt_id) return refuse("no attempt");
    TRY(check::ranks(footer.ranks));
    if (footer.parts == 0 || footer.parts > footer.ranks || footer.part >= footer.parts)
        return refuse("part ", footer.part, " of ", footer.parts, " for ", footer.ranks, " ranks");
    TRY(check::block_bytes(footer.block_bytes));
    if (footer.data_bytes > bytes_max) return refuse(footer.data_bytes, " data bytes are too many");
    if (footer.prefix_bytes > prefix_bytes_max) return refuse("a prefix of ", footer.prefix_bytes, " bytes; at most ", prefix_bytes_max, " are allowed");
    if (footer.prefix_bytes == 0 && footer.prefix_checksum != 0) return refuse("no prefix, and yet it has a checksum");
    TRY(check_bases(footer));
    return check_codecs(footer.codecs);
}

// Every piece a run and a cover of its own.
std::uint64_t footer_bytes_bound(const FooterCounts& counts, const std::vector<ImageInfo>& images) {
    return 1024 + 8 * (counts.units + counts.cuts) + 192 * counts.pieces + check::encoded_bytes(images);
}

constexpr std::uint64_t codec_bytes_bound = 300, base_bytes_bound = 80;

std::uint64_t footer_bytes_bound(const FooterCounts& counts, const Footer& footer) {
    return footer_bytes_bound(counts, footer.images) + codec_bytes_bound * footer.codecs.size() + base_bytes_bound * footer.bases.size();
}

FooterCounts counts_of(const Footer& footer) {
    FooterCounts counts;
    for (const StoredRun& run : footer.runs)
        for (const StoredPiece& piece : run.pieces) ++counts.pieces, counts.units += piece.checksums.size(), counts.cuts += piece.cuts.size();
    return counts;
}

}  // namespace

Status check_part_size(const FooterCounts& counts, const std::vector<ImageInfo>& images) {
    if (counts.units > part_units_max)
        return invalid_argument("a part of " + std::to_string(counts.units) + " checksums; it has at most " +
                                std::to_string(part_units_max) + ": use larger blocks or more parts");
    if (footer_bytes_bound(counts, images) > record_bytes_max)
        return invalid_argument("regions and runs of images are too many for one part's footer: use more parts");
    return {};
}

Status check_footer(const Footer& footer) {
    TRY(check_identity(footer));
    ImageBytes image_bytes;
    for (const ImageInfo& image : footer.images) {
        if (image.rank >= footer.ranks) return refuse("rank ", image.rank, " of ", footer.ranks);
        if (!image_bytes.emplace(image.rank, image.bytes).second) return refuse("rank ", image.rank, " is there twice");
        TRY(check::image(image));
    }
    for (const StoredRun& run : footer.runs) TRY(check_run(run, footer, image_bytes));
    const FooterCounts counts = counts_of(footer);
    if (const Status size = check_part_size(counts, footer.images); !size.ok()) return corrupt(size.text());
    if (footer_bytes_bound(counts, footer) > record_bytes_max) return refuse("its runs, regions and codecs are too many for one footer");
    TRY(check_runs_apart(footer));
    return check_pieces_apart(footer.runs);
}

Bytes encode_footer(const Footer& footer, IndexPlace place) {
    const FooterCounts counts = counts_of(footer);
    const std::uint64_t bound = footer_bytes_bound(counts, footer);
    CAIRN_CHECK(bound <= record_bytes_max);
    Writer writer(bound);
    auto& builder = writer.builder;
    const auto images = writer.images(footer.images);
    const auto codecs = writer.codecs(footer.codecs);
    const auto covers = writer.covers(covers_of(footer.runs, footer.block_bytes));
    const auto runs = writer.runs(footer.runs);
    const auto bases = footer.bases.empty() ? 0 : writer.base_runs(footer.bases);
    const auto key = writer.key(footer.key);
    const fb::Id attempt_id = Writer::id(footer.attempt_id);
    fb::FinishFooterBuffer(
        builder, fb::CreateFooter(builder, key, footer.attempt, &attempt_id, footer.part, footer.parts, footer.ranks,
                                  footer.block_bytes, footer.data_bytes, images, 0, codecs, covers, runs, bases, footer.prefix_bytes, footer.prefix_checksum));
    const ByteView body = writer.bytes();
    Bytes tail(body.size() + part_trailer_bytes);
    std::memcpy(tail.data(), body.data(), body.size());
    std::byte* trailer = tail.data() + body.size();
    put_u64(trailer + offset_at, place == IndexPlace::beside ? 0 : footer.data_bytes);
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
    const FooterPlace place{get_u64(&trailer[offset_at]), get_u64(&trailer[length_at]), get_u64(&trailer[checksum_at]), version};
    if (version == 0 || get_u32(&trailer[zero_at]) != 0) return corrupt("the part's trailer has impossible fields");
    const std::uint64_t before = file_bytes - part_trailer_bytes;
    if (place.length == 0 || place.length > record_bytes_max || place.length > before ||
        place.offset != before - place.length)
        return refuse("the footer of ", place.length, " bytes at ", place.offset,
                      " does not end where the trailer begins, at ", before);
    return place;
}

namespace {

// Of version 1, where everything began on a block.
Status check_extents(const std::vector<StoredRun>& runs, std::uint64_t block_bytes) {
    for (const StoredRun& run : runs)
        if (run.part_offset % block_bytes != 0 || run.pieces.front().image_offset % block_bytes != 0)
            return refuse(name_of(run), ": ", name_of(run.pieces.front()), " does not start on a block");
    return {};
}

}  // namespace

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
    if (place.version == 1) value.runs = reader.tables(root->extents(), [&](const fb::Extent& extent) { return reader.extent(extent); });
    else value.runs = reader.runs(root->runs());
    value.bases = reader.tables(root->bases(), [&](const fb::BaseRun& base) { return reader.base_run(base); });
    value.prefix_bytes = root->prefix_bytes();
    value.prefix_checksum = root->prefix_checksum();
    value.codecs = reader.tables(root->codecs(), [&](const fb::Codec& codec) { return reader.codec(codec); });
    const std::vector<Cover> covers = reader.covers(root->covers());
    if (reader.exhausted()) return corrupt("footer: it unpacks to more than it holds");
    TRY(check::block_bytes(value.block_bytes).within("footer"));
    if (place.version > 1) TRY(give_checksums(value.runs, covers, value.block_bytes).within("footer"));
    else TRY(check_extents(value.runs, value.block_bytes).within("footer"));
    TRY(check_footer(value).within("footer"));
    const bool is_beside = place.offset == 0;  // or there are no data
    if (!is_beside && (value.data_bytes != place.offset || value.data_bytes % part_alignment != 0))
        return refuse("footer: it lies at ", place.offset, ", not on a multiple of ", part_alignment, " behind its ", value.data_bytes, " data bytes");
    return value;
}

}  // namespace cairn
