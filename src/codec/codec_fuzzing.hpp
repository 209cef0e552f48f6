// What the fuzz targets of this room share.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "codec/codec.hpp"

namespace cairn::fuzzing {

inline void expect(bool condition, const char* what) {
    if (condition) return;
    std::fprintf(stderr, "fuzz: %s\n", what);
    std::abort();
}

inline Codec codec_in(std::uint8_t byte) { return static_cast<Codec>((byte & 0x1F) % 5); }

// As one array, of numbers of 1 to 8 bytes.
inline std::vector<NumberArray> some_array(std::size_t bytes, std::uint8_t how) {
    NumberArray array;
    array.width = static_cast<std::uint8_t>(1 << (how & 3));
    array.is_float = (how & 4) != 0 && array.width > 1;
    array.is_swapped = (how & 8) != 0 && array.width > 1;
    array.length = bytes / array.width * array.width;
    array.row = (how & 16) != 0 ? 5 : 0;
    array.plane = (how & 32) != 0 && array.row > 0 ? 15 : 0;
    return array.length > 0 ? std::vector<NumberArray>(1, array) : std::vector<NumberArray>();
}

}  // namespace cairn::fuzzing
