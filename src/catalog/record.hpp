// Small files of metadata under persistent and in scratch: manifests, records, rosters. Anybody may have put anything there, of any size.
#pragma once

#include <string>

#include "format/frame.hpp"
#include "world/world.hpp"

namespace cairn {

// The whole of a file that is one frame of this kind, for its decoder. What is not is refused after its first 4 KiB, however large it is.
Task<Result<Bytes>> read_record(World& world, std::string path, FrameKind kind, std::uint64_t bytes_max, Nanos deadline);

}  // namespace cairn
