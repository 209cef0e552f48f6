// Which bytes are records, and which columns they are best taken apart into: found on a sample. A pure function of these bytes, and of what is told of them.
#pragma once

#include <optional>
#include <span>

#include "base/bytes.hpp"
#include "codec/columns.hpp"

namespace cairn {

inline constexpr std::size_t record_bytes_min = 9, record_bytes_max = 256;  // a longer one leaves too few numbers of a stretch to each column

struct Records {
    Columns columns;
    double cost = 2;  // what is left of them, as a share
    bool is_swapped = false;
    std::vector<std::uint8_t> widths = {};  // of the numbers of a record, one after the other
    // The same records, so many bytes further on.
    void move(std::size_t bytes) { columns.before = static_cast<std::uint16_t>((columns.before + columns.record - bytes % columns.record) % columns.record); }
};

// Whether the rows of an array are as likely records: short, and no number tells anything of the next one in its row.
bool may_be_records(ByteView raw, const NumberArray& array, const Way& way);
// Whether bytes are much more often what they were another number of bytes before than a number, a row or a plane before, as they are told: so what is told may be wrong.
bool is_more_alike(ByteView raw, const NumberArray& array);
// How long the records are that some bytes seem to be; 0: none are seen. At most record_bytes_max.
std::size_t guess_record(ByteView raw);
// How many of some bytes are what they were a record before, as a share of them.
double alike(ByteView raw, std::size_t record);

// `column`: memory as long as `raw`. `before`: what was chosen for a place that is alike. Nothing where there are too few records, or where more than about `most` is left of them.
std::optional<Records> choose_columns(ByteView raw, std::size_t record, bool is_swapped, double most, Effort effort, std::span<std::byte> column, const Records* before = nullptr);

}  // namespace cairn
