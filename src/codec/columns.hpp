// A stretch that is records, taken apart: of each record the same few bytes make a *column*, and each column is stored by itself, with a way of its own. FORMAT.md ("Codecs") says how it is stored.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "base/status.hpp"
#include "codec/prediction.hpp"

namespace cairn {

struct Column {
    std::uint8_t bytes = 0;  // of a record, a multiple of the way's width
    Choice choice;
};
struct Columns {
    std::uint16_t record = 0, before = 0;  // bytes of a record, and of the stretch before the first whole one
    std::vector<Column> columns;           // in the order in which they lie in a record; they are all of it
    std::size_t records(std::size_t raw_bytes) const { return (raw_bytes - before) / record; }
};

inline constexpr std::size_t columns_max = 255;

// Of each record its `bytes` from `offset` on, end to end; and back. `raw` begins with a record.
void gather_column(const std::byte* raw, std::size_t record, std::size_t records, std::size_t offset, std::size_t bytes, std::byte* column);
void scatter_column(const std::byte* column, std::size_t record, std::size_t records, std::size_t offset, std::size_t bytes, std::byte* raw);

// One column's bytes, stored: its way (width, flags and how many strides, a byte each, and these), and planes. How many of `into` that takes, 0 where there is no room or it is not worth it.
using PutColumn = std::function<std::size_t(const Choice& choice, ByteView column, std::span<std::byte> into)>;
// And back, with what it has read cut from `stored`. Its width is not 0.
using GetColumn = std::function<Status(ByteView& stored, std::span<std::byte> column)>;

// `column`: memory for the longest one. How many bytes of `into` it takes; 0: there is no room.
std::size_t put_columns(const Columns& columns, ByteView raw, std::span<std::byte> column, const PutColumn& put, std::span<std::byte> into);
// corrupt: `stored` makes other than so many bytes. `count`: of columns, as the stretch's head says.
Status get_columns(std::size_t count, ByteView stored, std::span<std::byte> column, const GetColumn& get, std::span<std::byte> into);

}  // namespace cairn
