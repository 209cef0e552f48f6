// Manifests.
#include "format/manifest.hpp"

#include <algorithm>

#include "format/check.hpp"
#include "format/fields.hpp"
#include "format/frame.hpp"
#include "manifest_generated.h"

namespace cairn {

using check::refuse;

namespace {

// Every rank lies in some part. The bit map is no larger than what the parts say.
Status check_every_rank(const Manifest& manifest) {
    std::uint64_t said = 0;
    for (const PartInfo& part : manifest.parts) said += part.ranks.size();
    if (said < manifest.ranks) return refuse("its parts hold ", said, " of ", manifest.ranks, " ranks");
    std::vector<bool> there(manifest.ranks);
    for (const PartInfo& part : manifest.parts)
        for (const Rank rank : part.ranks) there[rank] = true;
    const auto absent = std::find(there.begin(), there.end(), false);
    if (absent != there.end()) return refuse("no part holds rank ", absent - there.begin());
    return {};
}

Status check_parts(const Manifest& manifest) {
    for (std::size_t i = 0; i < manifest.parts.size(); ++i) {
        const PartInfo& part = manifest.parts[i];
        TRY(check::part_info(part));
        const auto name = parse_part_file_name(part.file);
        if (name->part != i || name->parts != manifest.parts.size() || name->attempt_id != manifest.attempt_id)
            return refuse(part.file, " is not part ", i, " of ", manifest.parts.size(), " of its attempt");
        if (part.footer_offset % part_alignment != 0)
            return refuse(part.file, ": its footer does not start on a multiple of ", part_alignment);
        if (part.root > manifest.roots.size()) return refuse(part.file, " lies below root ", part.root, "; the manifest names ", manifest.roots.size());
        TRY(check::increasing(part.ranks, manifest.ranks).within(part.file));
    }
    return check_every_rank(manifest);
}

}  // namespace

Status check_manifest(const Manifest& manifest) {
    TRY(check::key(manifest.key));
    TRY(check::parent(manifest.parent));
    if (manifest.epoch == 0 || manifest.epoch > epoch_max) return refuse("epoch ", manifest.epoch);
    TRY(check::roots(manifest.roots));
    if (manifest.abandoned) {
        if (!manifest.parts.empty()) return refuse("abandoned, and yet it names parts");
        return {};
    }
    if (!manifest.attempt_id) return refuse("no attempt");
    TRY(check::ranks(manifest.ranks));
    if (manifest.nodes == 0) return refuse(manifest.nodes, " nodes for ", manifest.ranks, " ranks");
    TRY(check::block_bytes(manifest.block_bytes));
    if (manifest.parts.empty() || manifest.parts.size() > manifest.ranks)
        return refuse(manifest.parts.size(), " parts for ", manifest.ranks, " ranks");
    return check_parts(manifest);
}

Bytes encode_manifest(const Manifest& manifest) {
    Writer writer;
    auto& builder = writer.builder;
    const auto parts = writer.part_infos(manifest.parts);
    const auto roots = writer.strings(manifest.roots);
    const auto key = writer.key(manifest.key);
    const fb::Parent parent = Writer::parent(manifest.parent);
    const fb::Id attempt_id = Writer::id(manifest.attempt_id);
    fb::FinishManifestBuffer(
        builder,
        fb::CreateManifest(builder, key, manifest.epoch, &parent, &attempt_id, manifest.abandoned, manifest.ranks,
                           manifest.nodes, manifest.image_bytes, manifest.block_bytes, manifest.wall_time_s, parts, roots));
    return frame(FrameKind::manifest, writer.bytes());
}

Result<Manifest> decode_manifest(ByteView bytes) {
    Bytes body;
    TRY_ASSIGN(body, unframe(FrameKind::manifest, bytes));
    const auto* root = verified_root<fb::Manifest>(body, fb::ManifestIdentifier());
    if (!root) return corrupt("manifest: its checksum holds but its structure does not");
    Reader reader(body.size());
    Manifest value;
    value.key = reader.key(*root->key());
    value.epoch = root->epoch();
    value.parent = Reader::parent(*root->parent());
    value.attempt_id = Reader::id(*root->attempt_id());
    value.abandoned = root->abandoned();
    value.ranks = root->ranks();
    value.nodes = root->nodes();
    value.image_bytes = root->image_bytes();
    value.block_bytes = root->block_bytes();
    value.wall_time_s = root->wall_time_s();
    value.parts = reader.part_infos(root->parts());
    value.roots = reader.strings(root->roots());
    if (reader.exhausted()) return corrupt("manifest: it unpacks to more than it holds");
    TRY(check_manifest(value).within("manifest"));
    return value;
}

Status check_part_of(const Manifest& manifest, std::size_t index, const Footer& footer, const FooterPlace& place) {
    if (index >= manifest.parts.size()) return refuse("the manifest has no part ", index);
    const PartInfo& part = manifest.parts[index];
    const auto not_its = [&](const char* what) {
        return refuse(part.file, ": the footer's ", what, " is not the manifest's");
    };
    if (place.offset != part.footer_offset || place.length + part_trailer_bytes != part.bytes - part.footer_offset)
        return not_its("place");
    if (place.checksum != part.footer_checksum) return not_its("checksum");
    if (footer.key != manifest.key) return not_its("name, version or incarnation");
    if (footer.attempt_id != manifest.attempt_id) return not_its("attempt");
    if (footer.part != index || footer.parts != manifest.parts.size()) return not_its("part number");
    if (footer.ranks != manifest.ranks || footer.block_bytes != manifest.block_bytes)
        return not_its("number of ranks or block size");
    std::vector<Rank> ranks;
    for (const ImageInfo& image : footer.images) ranks.push_back(image.rank);
    std::sort(ranks.begin(), ranks.end());
    if (ranks != part.ranks) return not_its("list of ranks");
    return {};
}

}  // namespace cairn
