// Coverage: whether runs in many places, counted by many nodes, are together every byte of every image once. Each run adds a number for where it ends and takes away
// one for where it begins, each of its rank and its place in the image, modulo 2^64. What meets cancels out, wherever it was cut, so that what is left of a whole
// image is its end less its beginning. A byte that is missing, or there twice, leaves something else, but for one case in 2^64; and sums of parts add up without
// anybody seeing all runs.
#pragma once

#include <cstdint>

#include "model/types.hpp"

namespace cairn {

// Of the bytes [image_offset, image_offset + length) of a rank's image: 0 for none.
std::uint64_t coverage(Rank rank, std::uint64_t image_offset, std::uint64_t length);

}  // namespace cairn
