// The regions of what is open, of whichever copy: all of an image, or one by its name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "read/version_copies.hpp"

namespace cairn {

// Order: before anybody looks at ImageInfo::regions. Of no ranks: of all that are open.
Task<Status> load_regions(World& world, Layout layout, VersionCopies& copies, std::vector<Rank> ranks, RestoreSettings settings, EncodedRuns* encoded = nullptr);

struct FoundRegion {
    std::optional<Region> region;   // nothing: the image has none of that name
    std::uint32_t index_reads = 0;  // what it cost: three among a hundred thousand regions
};
Task<Result<FoundRegion>> find_region(World& world, Layout layout, const VersionCopies& copies, Rank rank, std::string name, RestoreSettings settings);

}  // namespace cairn
