// What Cairn's own regions say of an image's bytes: each is an extent of its type and shape.
#pragma once

#include <vector>

#include "describe/extent.hpp"

namespace cairn {

// In their order. Regions without a type of numbers, and those that files or callbacks filled, are not among them: their bytes may describe themselves (file.hpp).
std::vector<Extent> describe_regions(const std::vector<Region>& regions);
bool describes_itself(const Region& region);

}  // namespace cairn
