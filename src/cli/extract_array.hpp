// Which array a slice is of: a region's own, one that the application or a rule describes in it, or one of a file that describes itself.
#pragma once

#include <string>

#include "cli/console.hpp"
#include "cli/place.hpp"
#include "describe/extent.hpp"
#include "read/alone.hpp"
#include "read/version_copies.hpp"

namespace cairn::cli {

// The array of that name, with its offset in the region; null: the region as a whole, which is one of bytes where it has no type. Of .npy and safetensors files the front is read; of other files
// that describe themselves all, once, into a file without a name: that is told on the console. `cost`: what that read is added. not_found names the arrays that there are; unsupported: it does not lie in one
// piece, not as it is, or with its axes in another order.
Result<Extent> find_array(Console& console, Place& place, const VersionCopies& copies, Rank rank, const Region& region, const std::string* name, ReadCost& cost);

}  // namespace cairn::cli
