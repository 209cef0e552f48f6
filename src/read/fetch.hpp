// Fetch: one rank's image of one version, from the cheapest level that holds, into whoever wants ranges of it.
#pragma once

#include <functional>
#include <optional>

#include "copies/shared_runs.hpp"
#include "read/hand_out.hpp"
#include "read/plan.hpp"

namespace cairn {

// Where one rank's image may be, as a survey told.
struct ImagePlaces {
    VersionKey key;
    Rank rank = 0;
    std::string slot_path;   // empty: not in this node's scratch
    bool committed = false;  // the version is
    std::optional<SharedPlace> shared = {};  // with other ranks of the node, who fetch theirs at the same time
};

// Who wants what of the image, told its regions and sizes before a byte is read; once for each level that is tried. Not ok: the application does not fit,
// and no other level or version would do. It throws nothing.
using Aim = std::function<Result<HandOut>(const ImageInfo& image)>;

struct Fetched {
    Status status;
    bool refused = false;               // by the aim; or a root of its parts is away or in trouble, and an older version is not what a restart should take for that
    std::optional<Status> passed_over;  // damage in scratch, where the committed parts were asked instead
    Status not_shared = {};             // why each run was read by this rank itself, though it should have shared them
    SharedRuns::Counts shared = {};
};
Task<Fetched> fetch_image(World& world, Layout layout, ImagePlaces places, Aim aim, RestoreSettings settings, Nanos deadline);

// Only its regions and sizes.
Task<Result<ImageInfo>> describe_image(World& world, Layout layout, ImagePlaces places, RestoreSettings settings, Nanos deadline);

// Whether another level, or an older version, could do better than one that failed with this. (Whether a restart may go back for it is the client's question.)
bool another_may_do(const Status& status);

}  // namespace cairn
