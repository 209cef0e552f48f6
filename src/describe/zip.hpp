// Zip archives, as far as extents need them: which bytes of the file are an entry's own. PKWARE APPNOTE.TXT 6.3.10: sections 4.3.7 (local header), 4.3.12 (central
// directory), 4.3.14 and 4.3.15 (ZIP64's end and its locator), 4.3.16 (end), 4.5.3 (ZIP64's extra field).
#pragma once

#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/status.hpp"

namespace cairn {

// Stored (method 0), not encrypted, and not empty. Others are in no form that tells anything of their content.
struct ZipEntry {
    std::string_view name;  // of the archive's bytes
    std::uint64_t offset = 0, length = 0;  // in the file, bytes
};

// By offset, none over another, each within the file. The central directory counts: of a local header only where the data begin behind it. Takes time and memory as the
// directory is long.
Result<std::vector<ZipEntry>> stored_entries(ByteView file);

}  // namespace cairn
