// What a job's targets still take, as far as they say so: looked at before a plan is made, so that no part goes where it finds no room.
//
// What was found stays with the job (Experience), and counts for one attempt: what that writes takes room.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/coordinator/side.hpp"
#include "storage/placement.hpp"

namespace cairn::engine {

class FreeSpace : CoordinatorRole {
  public:
    explicit FreeSpace(Common& common) : CoordinatorRole(common) {}

    // A target that does not answer is done without for a while (avoids_silent), or is asked again. The answers are dropped where they are not wanted any more.
    Task<void> look(Job& job, bool avoids_silent = true, std::function<bool()> is_wanted = [] { return true; });
    // After that: a target that has too little room for its share of this version counts as full only when it said so in three looks. What a file system says may be of before something was removed, and one of its
    // servers may have answered for all.
    Task<void> look_again_where_full(FlightPtr flight);
    bool is_known(Job& job) const { return world.clock.now() < experience(job).free_bytes_until; }  // from a look that no attempt used since
    // Where parts of a version of so many bytes may go. None: where the file system puts them.
    std::vector<std::string> usable_targets(Job& job, std::uint64_t bytes) const;

  private:
    // Those that parts may go to, with what is known of their room.
    std::vector<TargetRoom> tried_targets(Job& job) const;
    // Those of them that have too little room for their share of this version.
    std::vector<std::string> seem_full(const Flight& flight);
};

}  // namespace cairn::engine
