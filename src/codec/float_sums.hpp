// Prediction in floating point: the same sums of numbers at the corners of a box, in their own arithmetic (as fpzip's, Lindstrom and Isenburg, "Fast and efficient compression of floating-point
// data", 2006). Where an exponent changes, differences of bits as integers are far off, and these are not. It is exact all the same: what is stored is how far the sum's bits and the number's lie apart.
//
// A reader has to come to the same sums: they are taken one corner after the other, rounded to nearest each time, and are 0 where they are no number.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "codec/integers.hpp"
#include "codec/prediction.hpp"

namespace cairn {

template <typename Number>
struct FloatOf;
template <>
struct FloatOf<std::uint64_t> {
    using Type = double;
};
template <>
struct FloatOf<std::uint32_t> {
    using Type = float;
};
template <typename Number>
inline constexpr bool has_sums = sizeof(Number) >= 4;

// All corners but the number's own. That of the first stride alone is the last, so that a reader waits for one sum from number to number.
struct Corners {
    struct Corner {
        std::size_t back = 0;
        bool is_negative = false;
    };
    std::array<Corner, 7> corner;
    std::size_t count = 0, farthest = 0;
    explicit Corners(const Way& way) {
        for (unsigned mask = (1u << way.strides) - 1; mask > 0; --mask) {
            Corner& one = corner[count++];
            for (std::size_t axis = 0; axis < way.strides; ++axis)
                if ((mask >> axis & 1) != 0) one.back += way.stride[axis];
            one.is_negative = std::popcount(mask) % 2 == 0;
        }
        if (count > 0) farthest = corner[0].back;
    }
};

// The bits, in the order of what they mean, of what the numbers before the one at `at` make likely; those before the first are none.
template <typename Number, typename Float>
Number sum_before(const Float* at, std::size_t before, const Corners& corners) {
    Float sum = 0;
    for (std::size_t i = 0; i < corners.count; ++i) {
        const auto& [back, is_negative] = corners.corner[i];
        if (back > before) continue;
        sum = is_negative ? sum - at[-static_cast<std::ptrdiff_t>(back)] : sum + at[-static_cast<std::ptrdiff_t>(back)];
    }
    return ordered(std::bit_cast<Number>(sum == sum ? sum : Float{0}));
}

template <typename Number, typename Float>
void subtract_sums(const Number* numbers, std::size_t count, const Way& way, Float* floats, Number* left) {
    const Corners corners(way);
    for (std::size_t i = 0; i < count; ++i) floats[i] = std::bit_cast<Float>(ordered(numbers[i]));
    for (std::size_t i = 0; i < count; ++i) left[i] = static_cast<Number>(numbers[i] - sum_before<Number>(floats + i, i, corners));
}
template <typename Number, typename Float>
void add_sums(Number* numbers, std::size_t count, const Way& way, Float* floats) {
    const Corners corners(way);
    for (std::size_t i = 0; i < count; ++i) {
        numbers[i] = static_cast<Number>(numbers[i] + sum_before<Number>(floats + i, i, corners));
        floats[i] = std::bit_cast<Float>(ordered(numbers[i]));
    }
}

}  // namespace cairn
