// Numbers to planes, each of their bytes of one significance, and back.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "codec/integers.hpp"

namespace cairn {

inline constexpr std::size_t tile = 512;  // numbers

// Halves of numbers come apart, and theirs, until they are bytes; and back. Each step is one that a compiler makes vectors of.
template <typename Half, typename Number>
void halve(const Number* __restrict from, std::size_t length, Half* __restrict low, Half* __restrict high) {
    for (std::size_t i = 0; i < length; ++i) low[i] = static_cast<Half>(from[i]);
    for (std::size_t i = 0; i < length; ++i) high[i] = static_cast<Half>(from[i] >> (8 * sizeof(Half)));
}
template <typename Half, typename Number>
void unite(const Half* __restrict low, const Half* __restrict high, std::size_t length, Number* __restrict to) {
    for (std::size_t i = 0; i < length; ++i) to[i] = static_cast<Number>(low[i] | static_cast<Number>(static_cast<Number>(high[i]) << (8 * sizeof(Half))));
}

template <std::size_t bytes>
using Unsigned = std::conditional_t<bytes == 8, std::uint64_t, std::conditional_t<bytes == 4, std::uint32_t, std::conditional_t<bytes == 2, std::uint16_t, std::uint8_t>>>;

// The lowest plane first; each is `apart` bytes behind the one before.
template <typename Number>
void split_tile(const Number* numbers, std::size_t length, std::byte* planes, std::size_t apart) {
    if constexpr (sizeof(Number) == 1) {
        std::memcpy(planes, numbers, length);
    } else {
        using Half = Unsigned<sizeof(Number) / 2>;
        std::array<Half, tile> low, high;
        halve(numbers, length, low.data(), high.data());
        split_tile(low.data(), length, planes, apart);
        split_tile(high.data(), length, planes + sizeof(Half) * apart, apart);
    }
}
template <typename Number>
void join_tile(const std::byte* planes, std::size_t apart, std::size_t length, Number* numbers) {
    if constexpr (sizeof(Number) == 1) {
        std::memcpy(numbers, planes, length);
    } else {
        using Half = Unsigned<sizeof(Number) / 2>;
        std::array<Half, tile> low, high;
        join_tile(planes, apart, length, low.data());
        join_tile(planes + sizeof(Half) * apart, apart, length, high.data());
        unite(low.data(), high.data(), length, numbers);
    }
}

template <typename Number>
void split(const Number* numbers, std::size_t count, bool is_folded, std::byte* planes) {
    std::array<Number, tile> folded;
    for (std::size_t at = 0; at < count; at += tile) {
        const std::size_t length = std::min(tile, count - at);
        if (is_folded)
            for (std::size_t i = 0; i < length; ++i) folded[i] = fold(numbers[at + i]);
        split_tile(is_folded ? folded.data() : numbers + at, length, planes + at, count);
    }
}
template <typename Number>
void join(const std::byte* planes, std::size_t count, bool is_folded, Number* numbers) {
    for (std::size_t at = 0; at < count; at += tile) {
        const std::size_t length = std::min(tile, count - at);
        join_tile(planes + at, count, length, numbers + at);
        if (is_folded)
            for (std::size_t i = at; i < at + length; ++i) numbers[i] = unfold(numbers[i]);
    }
}

}  // namespace cairn
