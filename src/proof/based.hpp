// Versions that are stored as what changed since an older one.
#pragma once

#include "copies/restore.hpp"
#include "proof/kept.hpp"
#include "proof/seed_run.hpp"

namespace cairn::testing {

// What is published depends on a version only where some of its bytes need it, and that one is whole, older, of the same job, and stands; and no more depend on one than the job asked for.
Status check_based(SeedRun& run, Kept& kept, const OpenVersion& version);

}  // namespace cairn::testing
