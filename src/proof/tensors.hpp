// Parts that are safetensors files, seen as another program sees them: by their header alone.
#pragma once

#include "copies/restore.hpp"
#include "proof/kept.hpp"
#include "proof/seed_run.hpp"

namespace cairn::testing {

// Each part begins with a header that other programs take: its tensors lie end to end, from the header's end to the file's; and each region of each image is one of them, of its
// own name and type, there where the footer says that its bytes are.
Status check_tensors(SeedRun& run, Kept& kept, const OpenVersion& version);

}  // namespace cairn::testing
