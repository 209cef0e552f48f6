#include "describe/regions.hpp"

namespace cairn {

bool describes_itself(const Region& region) { return region.kind != RegionKind::memory || region.type == DataType::bytes; }

std::vector<Extent> describe_regions(const std::vector<Region>& regions) {
    std::vector<Extent> extents;
    for (const Region& region : regions)
        if (!describes_itself(region)) extents.push_back({region.name, region.type, false, region.shape, region.offset, region.length});
    return extents;
}

}  // namespace cairn
