// What codecs have in common: integers from bytes, counts, and differences of either sign as small integers.
#pragma once

#include <cstddef>
#include <cstring>

namespace cairn {

template <typename Number>
Number load(const std::byte* at) {
    Number number;
    std::memcpy(&number, at, sizeof number);
    return number;
}

// A count that is stored beside what it counts: four bytes, little endian.
inline void put_count(std::byte* at, std::size_t count) {
    for (int i = 0; i < 4; ++i) at[i] = static_cast<std::byte>(count >> (8 * i));
}
inline std::size_t get_count(const std::byte* at) {
    std::size_t count = 0;
    for (int i = 0; i < 4; ++i) count |= std::to_integer<std::size_t>(at[i]) << (8 * i);
    return count;
}

// Small differences of either sign become small numbers.
template <typename Number>
Number fold(Number difference) {
    constexpr int top = 8 * sizeof(Number) - 1;
    return static_cast<Number>((difference << 1) ^ static_cast<Number>(0 - (difference >> top)));
}
template <typename Number>
Number unfold(Number folded) {
    return static_cast<Number>((folded >> 1) ^ static_cast<Number>(0 - (folded & 1)));
}

// The bits of a floating-point number as an integer that is the larger the larger the number is: of negative ones all but the sign are turned. Its own inverse.
template <typename Number>
Number ordered(Number bits) {
    constexpr int top = 8 * sizeof(Number) - 1;
    return static_cast<Number>(bits ^ (static_cast<Number>(0 - (bits >> top)) >> 1));
}

// The highest bit becomes the lowest; and back.
template <typename Number>
Number rotated(Number bits) {
    return static_cast<Number>(bits << 1 | bits >> (8 * sizeof(Number) - 1));
}
template <typename Number>
Number rotated_back(Number bits) {
    return static_cast<Number>(bits >> 1 | bits << (8 * sizeof(Number) - 1));
}

}  // namespace cairn
