// The manifest of a version: its publication is the commit.
#pragma once

#include "base/status.hpp"
#include "format/names.hpp"
#include "format/part.hpp"
#include "model/types.hpp"

namespace cairn {

Status check_manifest(const Manifest& manifest);
Bytes encode_manifest(const Manifest& manifest);
Result<Manifest> decode_manifest(ByteView bytes);

// Whether a part's footer is the one that the manifest means at `index`: identity, attempt, place, checksum, ranks.
Status check_part_of(const Manifest& manifest, std::size_t index, const Footer& footer, const FooterPlace& place);

}  // namespace cairn
