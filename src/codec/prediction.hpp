// Prediction: which way to make small differences of the numbers in some bytes, found on a sample of them. A pure function of these bytes, and of what is told of them.
//
// A number is predicted from those a stride before it, along up to three strides: with all three of a field's true axes, by the seven corners of a box whose eighth it is (Lorenzo's
// predictor). What is left is exact: integers, modulo their width. Where the same bytes of an older version are there, a number may be predicted from what it was in that one, first.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.hpp"
#include "codec/integers.hpp"
#include "codec/plane.hpp"
#include "model/number_array.hpp"

namespace cairn {

inline constexpr std::size_t strides_max = 3;
inline constexpr std::size_t width_max = 8;

// How numbers lie, and what predicts them.
struct Way {
    std::uint8_t width = 1;
    bool is_ordered = false, is_swapped = false, is_rotated = false;  // floating point; big endian; the highest bit, a sign, is the lowest, so that an exponent begins with a byte
    bool has_sums = false;  // predicted in floating point (float_sums.hpp): ordered, of 4 or 8 bytes
    bool has_base = false;  // less what it was in the older version; never with sums
    std::uint8_t strides = 0;
    std::array<std::uint32_t, strides_max> stride = {};  // in numbers
    bool operator==(const Way&) const = default;
    bool is_folded() const { return strides != 0 || has_base; }  // both signs are as likely
};

// Bytes, and what they were in an older version, their base: as many, or none where there is none.
struct Original {
    ByteView raw, base = {};
    bool is_shared = false;  // by several arrays, end to end: one place of it tells little of the next
    Original part(std::size_t offset, std::size_t length) const { return {raw.subspan(offset, length), base.empty() ? base : base.subspan(offset, length), is_shared}; }
};

// Whether bytes look as if drawn by chance, each for itself and beside those 1, 2, 4 and 8 before it: no way of numbers makes them shorter. Much shorter than to look for one; of others it mostly
// looks at 4 KiB once.
bool is_noise(ByteView raw);

// What is left of bytes taken one way, as a share of them: by the entropy of each plane of a sample.
struct Cost {
    double all = 2;
    std::array<double, width_max> plane = {};
};
struct Choice {
    Way way;
    Cost cost;
};

// Of an array whose shape is known: which of its axes tell something of the next number.
// `before`: what was chosen for a place of the same array.
Choice choose(const Original& original, const NumberArray& array, Effort effort, const Choice* before = nullptr);
// Of bytes of which nothing is known. At least 64.
Choice choose(const Original& original);

// Of a column of records: numbers of that width, one after the other. A glance takes a fifth of the time, and tells which of two columns is better.
Choice choose_column(ByteView column, std::uint8_t width, bool is_swapped, Effort effort, const Choice* before = nullptr);
Choice glance_column(ByteView column, std::uint8_t width, bool is_swapped);

template <typename Number>
Number swap_bytes(Number number) {
    if constexpr (sizeof(Number) == 8) return __builtin_bswap64(number);
    if constexpr (sizeof(Number) == 4) return __builtin_bswap32(number);
    if constexpr (sizeof(Number) == 2) return __builtin_bswap16(number);
    return number;
}

// As integers that have the order of what they mean.
template <typename Number>
void to_numbers(const std::byte* raw, std::size_t count, const Way& way, Number* numbers) {
    std::memcpy(numbers, raw, count * sizeof(Number));
    if (way.is_swapped)
        for (std::size_t i = 0; i < count; ++i) numbers[i] = swap_bytes(numbers[i]);
    if (way.is_ordered)
        for (std::size_t i = 0; i < count; ++i) numbers[i] = ordered(numbers[i]);
    if (way.is_rotated)
        for (std::size_t i = 0; i < count; ++i) numbers[i] = rotated(numbers[i]);
}

// The same, less what they were where the way has a base. `other`: room for as many.
template <typename Number>
void to_numbers(const Original& original, std::size_t first, std::size_t count, const Way& way, Number* numbers, Number* other) {
    to_numbers(original.raw.data() + first * sizeof(Number), count, way, numbers);
    if (!way.has_base) return;
    to_numbers(original.base.data() + first * sizeof(Number), count, way, other);
    for (std::size_t i = 0; i < count; ++i) numbers[i] = static_cast<Number>(numbers[i] - other[i]);
}

// The function for numbers of that width.
#define CAIRN_BY_WIDTH(width, function, ...)               \
    ((width) == 8   ? function<std::uint64_t>(__VA_ARGS__) \
     : (width) == 4 ? function<std::uint32_t>(__VA_ARGS__) \
     : (width) == 2 ? function<std::uint16_t>(__VA_ARGS__) \
                    : function<std::uint8_t>(__VA_ARGS__))

}  // namespace cairn
