// A description of bytes: where an array of numbers lies in them, and how. What nobody describes is something else.
#pragma once

#include <cstdint>
#include <vector>

namespace cairn {

struct NumberArray {
    std::uint64_t offset = 0, length = 0;  // bytes
    std::uint8_t width = 1;                // of a number: 1, 2, 4 or 8
    bool is_float = false;
    bool is_swapped = false;  // big endian
    // How many numbers lie between neighbours along the axis that is the second from the end, and the third; 0: there is none.
    std::uint32_t row = 0, plane = 0;
    std::uint32_t key = 0;  // arrays with the same one are the same variable of several ranks, groups, records or files; their shapes may differ. 0: nothing is known
    bool operator==(const NumberArray&) const = default;
};

// What is told of one chunk to who encodes it on another node: 32 KiB. What is described behind that is taken on a sample.
inline constexpr std::size_t arrays_told_max = 1024;
inline constexpr std::uint64_t array_told_bytes_min = 256;  // codecs leave shorter ones to the sample

// Whether they can be believed: of so many bytes, by offset, none over another, none empty.
bool are_sound(const std::vector<NumberArray>& arrays, std::uint64_t bytes);

// Of these arrays the parts that lie in a range of the bytes, cut to whole numbers, with offsets in the range. `arrays`: by offset.
std::vector<NumberArray> within(const std::vector<NumberArray>& arrays, std::uint64_t offset, std::uint64_t length);

}  // namespace cairn
