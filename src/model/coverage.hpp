// Coverage: whether extents in many places, counted by many nodes, are together every block of every image once. A sum over blocks, each of its
// rank and its place in the image, modulo 2^64: a block that is missing, or there twice, makes another sum, but for one case in 2^64, and sums of parts
// add up without anybody seeing all extents.
#pragma once

#include <cstdint>

#include "model/types.hpp"

namespace cairn {

// Of the bytes [image_offset, image_offset + length) of a rank's image, whole blocks but for the image's last: 0 for none.
std::uint64_t coverage(Rank rank, std::uint64_t image_offset, std::uint64_t length, std::uint64_t block_bytes);

}  // namespace cairn
