// Capture: the application's memory becomes a sealed image in a slot. One copy, in the order of rule 4: invalidate,
// everything else, seal.
#pragma once

#include <vector>

#include "base/status.hpp"
#include "client/regions.hpp"
#include "client/slot_maps.hpp"
#include "format/image.hpp"
#include "model/types.hpp"

namespace cairn {

// What is to be captured, before there is a slot for it.
struct CapturePlan {
    ImageHeader header;  // with the offsets filled in
    Bytes encoded;       // the header as it goes into the slot
    Bytes index;         // the region index, the last bytes of the image
    std::uint64_t slot_bytes = 0;
};

// `header` names the version; regions, sizes and offsets are filled in here. `layout`: of the job's files; in safetensors files arrays lie close together.
Result<CapturePlan> plan_capture(ImageHeader header, const RegionTable& regions, const MemoryMap& map, FileLayout layout = FileLayout::parts);

// About what plan_capture would say of memory regions, and not less. Callbacks and files say how much they are when they are captured, and count nothing here. 0: nothing is
// protected whose size is known.
std::uint64_t slot_bytes_ahead(const RegionTable& regions, std::uint64_t block_bytes);

// Fills and seals the slot. On failure it holds nothing.
Status capture(const CapturePlan& plan, const RegionTable& regions, SlotMaps::Map& slot, bool make_checksums);

}  // namespace cairn
