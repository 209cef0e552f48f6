// A part: data blocks, the footer (FlatBuffers), the trailer (fixed, so that it is found from the end).
#pragma once

#include "base/status.hpp"
#include "format/limits.hpp"
#include "format/names.hpp"
#include "model/types.hpp"

namespace cairn {

inline constexpr std::uint64_t part_trailer_bytes = 48;

// Where the footer lies in its part, and its XXH3.
struct FooterPlace {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    std::uint64_t checksum = 0;
    std::uint32_t version = format_version;  // of the part
    bool operator==(const FooterPlace&) const = default;
};

// Everything FORMAT.md demands of a footer; corrupt names what is wrong, and with which rank.
Status check_footer(const Footer& footer);

// Of all pieces of all runs of a part.
struct FooterCounts {
    std::uint64_t units = 0;  // checksums
    std::uint64_t cuts = 0;
    std::uint64_t pieces = 0;
};
// Whether one footer can hold so much; invalid_argument says what to do. For planning, when sizes are a user's choice.
Status check_part_size(const FooterCounts& counts, const std::vector<ImageInfo>& images);

// At the end of the part, at data_bytes, or all of a file beside it (part_index_file_name).
enum class IndexPlace : std::uint8_t { end_of_part, beside };
// The complete tail of a part, footer and trailer. More than check_part_size allows is a programmer's error, as is an end that is no multiple of part_alignment.
Bytes encode_footer(const Footer& footer, IndexPlace place = IndexPlace::end_of_part);

// `last_bytes` ends where the file ends and holds at least part_trailer_bytes.
Result<FooterPlace> decode_trailer(ByteView last_bytes, std::uint64_t file_bytes);
// `footer` is the run that `place` names.
Result<Footer> decode_footer(ByteView footer, const FooterPlace& place);

// The footer's checksum that a manifest carries; `tail` is what encode_footer gave.
std::uint64_t footer_checksum(ByteView tail);

}  // namespace cairn
