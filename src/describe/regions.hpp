// What Cairn's own regions say of an image's bytes: each is an array of its type and shape.
#pragma once

#include <vector>

#include "model/number_array.hpp"
#include "model/types.hpp"

namespace cairn {

// By offset in the image. Regions without a type of numbers, and those that files or callbacks filled, are not among them.
std::vector<NumberArray> describe_regions(const std::vector<Region>& regions);

}  // namespace cairn
