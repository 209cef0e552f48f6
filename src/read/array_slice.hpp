// A slice of an array: what of its bytes is wanted where along each axis a range of places is, and where a byte that comes belongs in the slice. A slice of single numbers of a large array has
// as many rows as numbers, so they are never listed; only what lies a gap apart is. Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/status.hpp"
#include "copies/wanted.hpp"

namespace cairn {

// Of one axis: [begin, end).
struct AxisRange {
    std::uint64_t begin = 0, end = 0;
    bool operator==(const AxisRange&) const = default;
};

// "3:7,:,-1" as Python writes it, without steps: a place, or a range of them, for each axis from the slowest on; of axes that are not named all. invalid_argument says which axis is wrong, and what it has.
Result<std::vector<AxisRange>> parse_slice(std::string_view text, const std::vector<std::uint64_t>& shape);

class ArraySlice {
  public:
    // Of a row-major array of at least one axis; one range for each, within it.
    ArraySlice(std::uint64_t element_bytes, const std::vector<std::uint64_t>& shape, const std::vector<AxisRange>& axes);
    // All of so many bytes.
    static ArraySlice whole(std::uint64_t bytes) { return {1, {bytes}, {{0, bytes}}}; }

    std::uint64_t bytes() const noexcept { return rows_ * row_bytes_; }
    // How many bytes of the slice lie before this byte of the array: rows keep their order, so what follows each other in the array does so in the slice.
    std::uint64_t before(std::uint64_t at) const;
    // In the array: increasing runs that hold the slice, and between two of them always a gap of so many bytes or more, so that no block of such a length is read for nothing.
    std::vector<ImageRange> ranges(std::uint64_t gap_bytes) const;
    // Of bytes of the array from `at` on those of the slice, to the front of `into`, which has room for before(at + data.size()) - before(at) bytes.
    void cut(std::uint64_t at, ByteView data, std::byte* into) const;

  private:
    struct Axis {
        std::uint64_t stride, begin, count;  // bytes from one place to the next; places
    };
    std::uint64_t row_at(std::uint64_t row) const;      // where it begins in the array
    std::uint64_t row_ending_after(std::uint64_t at) const;  // the first one; rows_ where none does

    std::vector<Axis> axes_;  // those above a row
    std::uint64_t first_ = 0;  // where the first row begins within the axes' places
    std::uint64_t row_bytes_ = 0, rows_ = 1;
};

}  // namespace cairn
