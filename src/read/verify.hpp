// Verify: every block of a version that can be read from here, compared with its checksums; what is stored of encoded runs, or what they decode to as well.
#pragma once

#include <functional>

#include "read/version_copies.hpp"

namespace cairn {

struct Verdict {
    VersionKey key;
    std::uint64_t bytes = 0;
    std::vector<Damage> damage;
    std::uint32_t ranks = 0;
    bool from_scratch = false;
    std::vector<Rank> unchecked;  // in scratch, without checksums yet
    std::vector<Rank> absent;     // neither committed nor in this host's scratch
    bool whole() const { return damage.empty() && unchecked.empty() && absent.empty(); }
};

// A committed version is read from its parts, any other from the images of it that scratch has; one whose manifest can not be read is damage by itself.
// An image that is not believed, or can not be read, is damage; one that leaves scratch meanwhile is absent. Fails where nothing can be said of the version.
Task<Result<Verdict>> verify_seen(World& world, Layout layout, Seen seen, std::vector<ScratchImage> images, RestoreSettings settings,
                                  std::function<void(std::uint64_t bytes)> progress, VerifyDepth depth = VerifyDepth::decoded);

}  // namespace cairn
