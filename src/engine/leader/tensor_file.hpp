// Tensor file: what makes a part a safetensors file, once all images lie in it: the header before them. Its room was left when the part was planned
// (model/tensor_places.hpp).
//
// Order: of each image the region index is read back from the part, since it came through other hands, chunk by chunk; it is compared with the checksums of the footer; the
// header names what the indexes say. One image at a time: what all of them say is in the header, which lies in memory once, as the footer does.
#pragma once

#include "engine/leader/attempt.hpp"
#include "model/types.hpp"

namespace cairn::engine {

// Writes the header, and notes its checksum in the footer. io_error: the part does not hold what was written to it.
Task<Status> write_tensors_header(World& world, PartState& part, Footer& footer, Nanos wait);

}  // namespace cairn::engine
