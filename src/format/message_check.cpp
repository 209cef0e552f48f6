#include "format/message_check.hpp"

#include <algorithm>

#include "format/check.hpp"
#include "format/limits.hpp"

namespace cairn {

using check::refuse;

namespace {

Status check_code(Code code, const std::string& text) {
    if (code > Code::internal) return refuse("unknown code ", int(code));
    if (text.size() > text_bytes_max) return refuse("a text of ", text.size(), " bytes");
    return {};
}

Status check_images(const std::vector<ImageInfo>& images) {
    std::vector<Rank> ranks;
    for (const ImageInfo& image : images) {
        TRY(check::image(image));
        ranks.push_back(image.rank);
    }
    std::sort(ranks.begin(), ranks.end());
    if (std::adjacent_find(ranks.begin(), ranks.end()) != ranks.end()) return refuse("a rank is there twice");
    return {};
}

Status check_source(const Source& source) {
    if (source.rank < ranks_max && source.length <= bytes_max && source.image_offset <= bytes_max - source.length)
        return {};
    return refuse("an impossible run of rank ", source.rank, "'s image: ", source.length, " bytes at ",
                  source.image_offset);
}

Status check_range(std::uint64_t offset, std::uint64_t bytes) {
    if (bytes <= bytes_max && offset <= 2 * bytes_max - bytes) return {};
    return refuse("an impossible range of a part: ", bytes, " bytes at ", offset);
}

// `block_bytes`: what runs start on.
Status check_nodes(const std::vector<NodeSources>& nodes, std::uint64_t block_bytes) {
    for (const NodeSources& node : nodes)
        for (const Source& source : node.sources) {
            TRY(check_source(source));
            if (source.image_offset % block_bytes != 0)
                return refuse("a run of an image that does not start on a block");
        }
    return {};
}

Status check_work(const std::vector<message::Work>& work) {
    for (const message::Work& w : work) {
        TRY(check_range(w.offset, w.bytes));
        if (w.offset % part_alignment != 0) return refuse("a range of a part that is not aligned");
        TRY(check_nodes(w.nodes, 1));
    }
    return {};
}

Status check_addresses(const std::vector<message::NodeAddress>& addresses) {
    for (const auto& address : addresses)
        if (!printable(address.address, address_bytes_max)) return refuse("an impossible address of node ", address.node);
    return {};
}

Status check_attempt(Id128 attempt_id) { return attempt_id ? Status() : refuse("no attempt"); }

Status check_plan(const PartPlan& part, std::uint64_t block_bytes) {
    if (!printable(part.target, address_bytes_max)) return refuse("an impossible storage target of part ", part.part);
    if (part.shares.empty()) return refuse("part ", part.part, " has no leader");
    if (part.sized_bytes > 2 * bytes_max) return refuse("part ", part.part, " is sized to ", part.sized_bytes, " bytes");
    for (const Share& share : part.shares) {
        TRY(check_range(share.offset, share.bytes));
        if (share.offset % part_alignment != 0 || share.bytes % part_alignment != 0) return refuse("a share that is not aligned");
        TRY(check_nodes(share.nodes, block_bytes));
    }
    return {};
}

struct BodyCheck {
    Status operator()(const message::Sealed& m) const {
        TRY(check::block_bytes(m.block_bytes));
        return check_images(m.images);
    }
    Status operator()(const message::Begun& m) const {
        TRY(check::block_bytes(m.block_bytes));
        return check_images(m.images);
    }
    Status operator()(const message::Lead& m) const {
        TRY(check_attempt(m.attempt_id));
        TRY(check::ranks(m.ranks_total));
        if (m.parts_total == 0 || m.parts_total > m.ranks_total)
            return refuse(m.parts_total, " parts for ", m.ranks_total, " ranks");
        TRY(check::block_bytes(m.block_bytes));
        if (!printable(m.codec, codec_text_bytes_max) || !printable(m.trial, codec_text_bytes_max)) return refuse("an impossible codec");
        if (m.pack_bytes > bytes_max) return refuse("packs of ", m.pack_bytes, " bytes");
        if (m.merge_bytes > bytes_max || m.trial_merge_bytes > bytes_max) return refuse("images that give ", std::max(m.merge_bytes, m.trial_merge_bytes), " bytes by turns");
        TRY(check::efforts(m.keys));
        TRY(check_images(m.images));
        TRY(check_addresses(m.addresses));
        for (const PartPlan& part : m.parts) {
            if (part.part >= m.parts_total) return refuse("part ", part.part, " of ", m.parts_total);
            TRY(check_plan(part, m.block_bytes));
        }
        return {};
    }
    Status operator()(const message::PartFailed& m) const {
        TRY(check_attempt(m.attempt_id));
        if (m.code == Code::ok) return refuse("a part that failed for no reason");
        return check_code(m.code, m.text);
    }
    Status operator()(const message::Replace& m) const {
        TRY(check_attempt(m.attempt_id));
        TRY(check_addresses(m.addresses));
        if (m.with.size() > 1) return refuse("several parts in the place of one");
        for (const PartPlan& part : m.with) {
            if (part.shares.size() != 1 || part.replacement == 0 || part.part == m.part) return refuse("a part that can not take the place of part ", m.part);
            TRY(check_plan(part, 1));
        }
        return {};
    }
    Status operator()(const message::PartsDone& m) const {
        TRY(check_attempt(m.attempt_id));
        for (const PartInfo& part : m.parts) TRY(check::part_info(part));
        if (m.card > Card::has_room) return refuse("an unknown word on the card");
        for (const message::CodecRate& codec : m.codecs)
            if (!printable(codec.codec, codec_text_bytes_max)) return refuse("an impossible codec");
        if (m.keys.size() > keys_max) return refuse(m.keys.size(), " keys");
        for (const KeyEncoded& key : m.keys)
            if (key.raw_bytes > bytes_max || key.stored_bytes > bytes_max) return refuse("more bytes of a key than there can be");
        return check_code(m.code, m.text);
    }
    Status operator()(const message::Progress& m) const { return check_attempt(m.attempt_id); }
    Status operator()(const message::Acknowledged& m) const { return check_attempt(m.attempt_id); }
    Status operator()(const message::Leave& m) const { return check_attempt(m.attempt_id); }
    Status operator()(const message::Want& m) const {
        if (!printable(m.codec, codec_text_bytes_max)) return refuse("an impossible codec");
        TRY(check::efforts(m.keys));
        return check_source(m.source);
    }
    Status operator()(const message::Chunk& m) const {
        if (m.stored_bytes >= encoded_run_bytes_max) return refuse("a chunk of ", m.stored_bytes, " bytes that are encoded");
        if (m.arrays.size() > arrays_told_max) return refuse(m.arrays.size(), " arrays of a chunk");
        if (m.stored_bytes != 0 && !m.arrays.empty()) return refuse("arrays of a chunk that is encoded");
        if (m.stored_bytes == 0 && m.stored_checksum != 0) return refuse("a chunk that is encoded in no bytes");
        if (m.stored_bytes != 0 && (m.code != Code::ok || m.checksums.empty())) return refuse("a chunk that is encoded, of nothing");
        return check_code(m.code, m.text);
    }
    Status operator()(const message::Ended& m) const { return check_code(m.code, m.text); }
    Status operator()(const message::Shed& m) const { return check_attempt(m.attempt_id); }
    Status operator()(const message::Given& m) const {
        TRY(check_attempt(m.attempt_id));
        return check_work(m.work);
    }
    Status operator()(const message::Take& m) const {
        TRY(check_attempt(m.attempt_id));
        TRY(check_addresses(m.addresses));
        return check_work(m.work);
    }
    Status operator()(const message::Taken& m) const { return check_attempt(m.attempt_id); }
    Status operator()(const message::Complete& m) const {
        TRY(check_attempt(m.attempt_id));
        return check_images(m.images);
    }
    Status operator()(const message::Opened& m) const { return check_attempt(m.attempt_id); }
    Status operator()(const message::ShareDone& m) const {
        TRY(check_attempt(m.attempt_id));
        TRY(check::block_bytes(m.block_bytes));
        if (m.pieces == 0 || m.piece >= m.pieces) return refuse("piece ", m.piece, " of ", m.pieces);
        for (const StoredRun& run : m.runs) {
            TRY(check_range(run.part_offset, run.stored_bytes));
            for (const StoredPiece& piece : run.pieces) {
                TRY(check_source({piece.rank, piece.image_offset, piece.length}));
                TRY(check_range(piece.at, piece.length));
            }
        }
        return check_range(m.sample.part_offset, m.sample.length);
    }
    Status operator()(const message::ShareKept& m) const { return check_attempt(m.attempt_id); }
    Status operator()(const message::Room& m) const {
        TRY(check_attempt(m.attempt_id));
        if (m.bytes == 0 || m.bytes > bytes_max) return refuse("room for ", m.bytes, " bytes");
        return {};
    }
    Status operator()(const message::Roomed& m) const {
        TRY(check_attempt(m.attempt_id));
        if (m.offset % part_alignment != 0 || m.offset > 2 * bytes_max) return refuse("room at ", m.offset);
        return {};
    }
    Status operator()(const message::Noted&) const { return {}; }
    Status operator()(const message::Cancel&) const { return {}; }
};

}  // namespace

Status check_body(const message::Body& body) { return std::visit(BodyCheck{}, body); }

}  // namespace cairn
