// The manifest of a version: its publication is the commit. A head says what it is, and behind it stand its parts (part_records.hpp), so that who wants one rank of very
// many need not read of the others.
#pragma once

#include "base/status.hpp"
#include "format/names.hpp"
#include "format/part.hpp"
#include "format/part_records.hpp"
#include "model/types.hpp"

namespace cairn {

Status check_manifest(const Manifest& manifest);
// Of a whole one.
Bytes encode_manifest(const Manifest& manifest);
Result<Manifest> decode_manifest(ByteView bytes);

// All but its parts, but for a manifest of version 1, which has them here.
struct ManifestHead {
    Manifest manifest;
    PartTables tables;
    std::vector<PartNaming> naming;  // by origin
};
// `start`: at least as many bytes as its frame has (frame_bytes).
Result<ManifestHead> decode_manifest_head(ByteView start);
// With those parts only that its tables have for this rank.
Result<Manifest> manifest_of_rank(const ManifestHead& head, Rank rank, std::vector<PartInfo> parts);

// Whose part it is: this version, or one of its bases.
VersionKey key_of(const Manifest& manifest, const PartInfo& part);
// Whether a part's footer is the one that the manifest means: place and checksum, before it is read; and what it says, then.
Status check_footer_place(const FooterPlace& place, const PartInfo& part);
Status check_part_of(const Manifest& manifest, std::size_t index, const Footer& footer);

}  // namespace cairn
