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
    const std::uint64_t table_bytes = part_record_bytes * manifest.parts.size() + 4 * (manifest.ranks + 1 + said);
    if (table_bytes > part_tables_bytes_max) return refuse("its part records are ", table_bytes, " bytes; at most ", part_tables_bytes_max, " are allowed");
    if (said < manifest.ranks) return refuse("its parts hold ", said, " of ", manifest.ranks, " ranks");
    std::vector<bool> there(manifest.ranks);
    for (const PartInfo& part : manifest.parts)
        for (const Rank rank : part.ranks) there[rank] = true;
    const auto absent = std::find(there.begin(), there.end(), false);
    if (absent != there.end()) return refuse("no part holds rank ", absent - there.begin());
    return {};
}

// One part by itself.
Status check_part(const PartInfo& part, const Manifest& manifest) {
    TRY(check::part_info(part));
    if (part.index_bytes == 0 && part.footer_offset % part_alignment != 0) return refuse(part.file, ": its footer does not start on a multiple of ", part_alignment);
    if (part.root > manifest.roots.size()) return refuse(part.file, " lies below root ", part.root, "; the manifest names ", manifest.roots.size());
    if (part.origin > manifest.bases.size()) return refuse(part.file, " is of base ", part.origin, "; the manifest names ", manifest.bases.size());
    return check::increasing(part.ranks, manifest.ranks).within(part.file);
}

// A file a rank, or a node: which ranks it has is then its name.
Status check_layout(const PartInfo& part, const PartFileName& name, const Manifest& manifest) {
    if (name.layout == FileLayout::ranks && (name.parts != manifest.ranks || part.ranks != std::vector<Rank>(1, name.part)))
        return refuse(part.file, " is not the file of one rank of ", manifest.ranks);
    if (name.layout == FileLayout::nodes && name.parts != manifest.nodes) return refuse(part.file, " is not the file of one node of ", manifest.nodes);
    return {};
}

std::size_t own_parts(const Manifest& manifest) {
    const auto is_own = [](const PartInfo& part) { return part.origin == 0; };
    return static_cast<std::size_t>(std::count_if(manifest.parts.begin(), manifest.parts.end(), is_own));
}

Status check_own_parts(const Manifest& manifest, std::size_t own) {
    FileLayout layout = FileLayout::parts;
    for (std::size_t i = 0; i < own; ++i) {
        const PartInfo& part = manifest.parts[i];
        TRY(check_part(part, manifest));
        const auto name = parse_part_file_name(part.file);
        if (i == 0) layout = name->layout;
        if (part.origin != 0 || name->part != i || name->parts != own || name->attempt_id != manifest.attempt_id || name->layout != layout)
            return refuse(part.file, " is not part ", i, " of ", own, " of its attempt");
        TRY(check_layout(part, *name, manifest));
    }
    return {};
}

// Behind its own, by base and number; all of one base are of the attempt that was committed there. Of a base that is only needed to decode runs there are none.
Status check_base_parts(const Manifest& manifest, std::size_t own) {
    std::uint32_t origin = 0;
    PartFileName before;
    for (std::size_t i = own; i < manifest.parts.size(); ++i) {
        const PartInfo& part = manifest.parts[i];
        TRY(check_part(part, manifest));
        const PartFileName name = *parse_part_file_name(part.file);
        const bool is_next_base = part.origin > origin;
        const bool is_same = part.origin == origin && origin != 0 && name.attempt_id == before.attempt_id && name.parts == before.parts && name.layout == before.layout && name.part > before.part;
        if (!is_next_base && !is_same) return refuse(part.file, " of base ", part.origin, " is out of order, or of another attempt than those before it");
        origin = part.origin;
        before = name;
    }
    return {};
}

Status check_bases(const Manifest& manifest) {
    for (std::size_t i = 0; i < manifest.bases.size(); ++i) {
        const BaseVersion& base = manifest.bases[i];
        if (base.version == 0 || base.version >= manifest.key.version || !base.incarnation) return refuse("version ", base.version, " can not be a base of version ", manifest.key.version);
        if (std::find(manifest.bases.begin(), manifest.bases.begin() + static_cast<std::ptrdiff_t>(i), base) != manifest.bases.begin() + static_cast<std::ptrdiff_t>(i))
            return refuse("version ", base.version, " is twice among its bases");
    }
    return {};
}

// Of what a manifest says itself, without its parts.
Status check_head(const Manifest& manifest) {
    TRY(check::key(manifest.key));
    TRY(check::parent(manifest.parent));
    if (manifest.epoch == 0 || manifest.epoch > epoch_max) return refuse("epoch ", manifest.epoch);
    TRY(check::roots(manifest.roots));
    if (manifest.abandoned) {
        if (!manifest.parts.empty() || !manifest.bases.empty() || !manifest.node_targets.empty()) return refuse("abandoned, and yet it names parts");
        return {};
    }
    if (!manifest.attempt_id) return refuse("no attempt");
    TRY(check::ranks(manifest.ranks));
    if (manifest.nodes == 0) return refuse(manifest.nodes, " nodes for ", manifest.ranks, " ranks");
    TRY(check::block_bytes(manifest.block_bytes));
    if (!manifest.node_targets.empty() && manifest.node_targets.size() != manifest.nodes) return refuse(manifest.node_targets.size(), " targets of ", manifest.nodes, " nodes");
    for (const std::string& target : manifest.node_targets)
        if (target.empty() || !printable(target, target_name_bytes_max)) return refuse("a target whose name can not be one");
    if (manifest.bases.size() > bases_max) return refuse(manifest.bases.size(), " bases; at most ", bases_max, " are allowed");
    return check_bases(manifest);
}

}  // namespace

Status check_manifest(const Manifest& manifest) {
    TRY(check_head(manifest));
    if (manifest.abandoned) return {};
    const std::size_t own = own_parts(manifest);
    if ((own == 0 && manifest.bases.empty()) || own > manifest.ranks) return refuse(own, " parts for ", manifest.ranks, " ranks");
    TRY(check_own_parts(manifest, own));
    TRY(check_base_parts(manifest, own));
    return check_every_rank(manifest);
}

namespace {

PartNaming naming_of(const PartInfo& part) {
    const PartFileName name = parse_part_file_name(part.file).value_or(PartFileName());
    return {name.attempt_id, name.parts, name.layout};
}

auto write_bases(Writer& writer, const Manifest& manifest) {
    std::vector<flatbuffers::Offset<fb::Base>> offsets;
    for (std::uint32_t i = 0; i < manifest.bases.size(); ++i) {
        const auto is_of = [i](const PartInfo& part) { return part.origin == i + 1; };
        const auto part = std::find_if(manifest.parts.begin(), manifest.parts.end(), is_of);
        const PartNaming naming = part == manifest.parts.end() ? PartNaming() : naming_of(*part);
        const fb::Id incarnation = Writer::id(manifest.bases[i].incarnation), attempt_id = Writer::id(naming.attempt_id);
        offsets.push_back(fb::CreateBase(writer.builder, &incarnation, manifest.bases[i].version, &attempt_id, naming.files, static_cast<std::uint8_t>(naming.layout)));
    }
    return writer.builder.CreateVector(offsets);
}

struct TargetOffsets {
    flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>> names = 0;
    flatbuffers::Offset<flatbuffers::Vector<std::uint32_t>> of_nodes = 0;
};

// Each name once.
TargetOffsets write_targets(Writer& writer, const std::vector<std::string>& node_targets) {
    if (node_targets.empty()) return {};
    std::vector<std::string> names = node_targets;
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    std::vector<std::uint32_t> of_nodes;
    for (const std::string& each : node_targets) of_nodes.push_back(static_cast<std::uint32_t>(std::lower_bound(names.begin(), names.end(), each) - names.begin()));
    TargetOffsets offsets;
    offsets.names = writer.strings(names);
    offsets.of_nodes = writer.numbers(of_nodes);
    return offsets;
}

}  // namespace

Bytes encode_manifest(const Manifest& manifest) {
    const EncodedPartTables encoded = encode_part_tables(manifest);
    Writer writer;
    auto& builder = writer.builder;
    const auto roots = writer.strings(manifest.roots);
    const auto key = writer.key(manifest.key);
    const fb::Parent parent = Writer::parent(manifest.parent);
    const fb::Id attempt_id = Writer::id(manifest.attempt_id);
    const PartNaming own = own_parts(manifest) == 0 ? PartNaming() : naming_of(manifest.parts.front());
    const auto bases = manifest.bases.empty() ? 0 : write_bases(writer, manifest);
    const TargetOffsets targets = write_targets(writer, manifest.node_targets);
    const auto page_checksums = encoded.tables.empty() ? 0 : writer.numbers(encoded.tables.page_checksums);
    fb::FinishManifestBuffer(builder, fb::CreateManifest(builder, key, manifest.epoch, &parent, &attempt_id, manifest.abandoned, manifest.ranks, manifest.nodes, manifest.image_bytes,
                                                         manifest.block_bytes, manifest.wall_time_s, 0, roots, static_cast<std::uint8_t>(own.layout), own.files, encoded.tables.records,
                                                         encoded.tables.rank_parts, bases, page_checksums, targets.names, targets.of_nodes));
    Bytes bytes = frame(FrameKind::manifest, writer.bytes());
    bytes.insert(bytes.end(), encoded.bytes.begin(), encoded.bytes.end());
    return bytes;
}

namespace {

Status read_naming(const fb::Manifest& root, Reader& reader, ManifestHead& head) {
    const auto layout_of = [](std::uint8_t layout) { return static_cast<FileLayout>(layout); };
    bool layouts_known = root.layout() < std::size(layout_words);
    head.naming.push_back({head.manifest.attempt_id, root.files(), layout_of(root.layout())});
    const auto base = [&](const fb::Base& each) {
        layouts_known = layouts_known && each.layout() < std::size(layout_words);
        head.naming.push_back({Reader::id(*each.attempt_id()), each.files(), layout_of(each.layout())});
        return BaseVersion{each.version(), Reader::id(*each.incarnation())};
    };
    head.manifest.bases = reader.tables(root.bases(), base);
    return layouts_known ? Status() : refuse("its files are laid out in a way that this Cairn does not know");
}

Status read_targets(const fb::Manifest& root, Reader& reader, Manifest& manifest) {
    const std::vector<std::string> names = reader.strings(root.targets());
    for (const std::uint32_t name : reader.numbers(root.node_targets())) {
        if (name >= names.size()) return refuse("a node's target is the one of place ", name, " of ", names.size());
        manifest.node_targets.push_back(names[name]);
    }
    return {};
}

// Version 1 named its parts, and had nothing else of them.
Status read_tables(const fb::Manifest& root, Reader& reader, std::uint32_t version, ManifestHead& head) {
    PartTables& tables = head.tables;
    tables.records = root.part_records();
    tables.ranks = root.ranks();
    tables.rank_parts = root.rank_parts();
    tables.page_checksums = reader.numbers(root.page_checksums());
    head.manifest.parts = reader.part_infos(root.parts());
    if (version == 1 ? !tables.empty() : !head.manifest.parts.empty()) return refuse("its parts are told as in another version");
    if (head.manifest.abandoned && !tables.empty()) return refuse("abandoned, and yet it names parts");
    return tables.check_size();
}

}  // namespace

Result<ManifestHead> decode_manifest_head(ByteView start) {
    Bytes body;
    TRY_ASSIGN(body, unframe(FrameKind::manifest, start, FrameEnd::more_may_follow));
    const auto* root = verified_root<fb::Manifest>(body, fb::ManifestIdentifier());
    if (!root) return corrupt("manifest: its checksum holds but its structure does not");
    Reader reader(body.size());
    ManifestHead head;
    Manifest& value = head.manifest;
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
    value.roots = reader.strings(root->roots());
    TRY(read_naming(*root, reader, head).within("manifest"));
    TRY(read_targets(*root, reader, value).within("manifest"));
    TRY(read_tables(*root, reader, frame_version(start), head).within("manifest"));
    if (reader.exhausted()) return corrupt("manifest: it unpacks to more than it holds");
    TRY(check_head(value).within("manifest"));
    head.tables.offset = frame_header_bytes + body.size();
    return head;
}

Result<Manifest> decode_manifest(ByteView bytes) {
    TRY_ASSIGN(ManifestHead head, decode_manifest_head(bytes));
    const ByteView tables = bytes.subspan(head.tables.offset);
    if (!head.tables.empty()) {
        Result<std::vector<PartInfo>> parts = decode_part_tables(head.tables, head.naming, tables);
        if (!parts.ok()) return std::move(parts).status().within("manifest");
        head.manifest.parts = std::move(parts).value();
    } else if (!tables.empty()) {
        return refuse("manifest: ", tables.size(), " bytes follow it");
    }
    TRY(check_manifest(head.manifest).within("manifest"));
    return std::move(head.manifest);
}

Result<Manifest> manifest_of_rank(const ManifestHead& head, Rank rank, std::vector<PartInfo> parts) {
    Manifest manifest = head.manifest;
    manifest.of_rank = rank;
    for (PartInfo& part : parts) {
        part.ranks.assign(1, rank);
        TRY(check_part(part, manifest).within("manifest"));
        TRY(check_layout(part, *parse_part_file_name(part.file), manifest).within("manifest"));
    }
    manifest.parts = std::move(parts);
    return manifest;
}

Status check_footer_place(const FooterPlace& place, const PartInfo& part) {
    const std::uint64_t end = part.index_bytes == 0 ? part.bytes : part.index_bytes;
    if (place.checksum == part.footer_checksum && place.offset == part.footer_offset && place.length + part_trailer_bytes == end - part.footer_offset) return {};
    return corrupt("its footer is not the one in the manifest");
}

Status check_part_of(const Manifest& manifest, std::size_t index, const Footer& footer) {
    if (index >= manifest.parts.size()) return refuse("the manifest has no part ", index);
    const PartInfo& part = manifest.parts[index];
    const auto not_its = [&](const char* what) { return refuse("the footer's ", what, " is not the manifest's"); };
    if (footer.key != key_of(manifest, part)) return not_its("name, version or incarnation");
    const PartFileName name = *parse_part_file_name(part.file);
    if (footer.attempt_id != name.attempt_id) return not_its("attempt");
    if (footer.part != name.part || footer.parts != name.parts) return not_its("part number");
    if (footer.ranks != manifest.ranks || footer.block_bytes != manifest.block_bytes) return not_its("number of ranks or block size");
    if (footer.data_bytes != (part.index_bytes != 0 ? part.bytes : part.footer_offset)) return not_its("size of the part");
    for (const BaseRun& base : footer.bases)
        if (std::find(manifest.bases.begin(), manifest.bases.end(), base.of) == manifest.bases.end())
            return refuse("its runs need version ", base.of.version, ", and the manifest names no such base");
    std::vector<Rank> ranks;
    for (const ImageInfo& image : footer.images) ranks.push_back(image.rank);
    std::sort(ranks.begin(), ranks.end());
    const bool is_some = manifest.of_rank || part.origin != 0;  // a base's part may hold images that are not this version's
    if (is_some ? !std::includes(ranks.begin(), ranks.end(), part.ranks.begin(), part.ranks.end()) : ranks != part.ranks) return not_its("list of ranks");
    return {};
}

VersionKey key_of(const Manifest& manifest, const PartInfo& part) {
    if (part.origin == 0) return manifest.key;
    const BaseVersion& base = manifest.bases[part.origin - 1];
    return {manifest.key.name, base.version, base.incarnation};
}

}  // namespace cairn
