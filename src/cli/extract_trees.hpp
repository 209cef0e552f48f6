// The directory trees among the files of a version: what they are, and which regions are their files' bytes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/place.hpp"
#include "cli/tree_output.hpp"
#include "read/plan.hpp"
#include "read/version_copies.hpp"

namespace cairn::cli {

// Reads by a plan. Bytes of scratch are only good when it says afterwards that they were.
Status read_by_plan(Place& place, const VersionCopies& copies, ReadPlan plan, HandOut& out, EncodedRuns* encoded = nullptr);

// A tree of a rank's image.
struct FoundTree {
    Rank rank = 0;
    Tree tree;
    std::vector<const Region*> regions;  // by entry; null: it has no bytes
};
// Order: the image's regions were loaded, and stay as they are. corrupt where the index says what the image does not have.
Result<std::vector<FoundTree>> trees_of(Place& place, const VersionCopies& copies, Rank rank);

}  // namespace cairn::cli
