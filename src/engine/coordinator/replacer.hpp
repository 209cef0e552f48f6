// Replacer: a storage target dies, or is full, in mid-flush. What lay on it is written again to another one, within the attempt: a file takes the place of the part that failed.
//
//   a leader of the part                     coordinator                                first leader of the part
//   PartFailed, until Replace  ----------->  leaves the target out; no work moves to or from the part any more
//   drops its share            <-----------  Replace, to all leaders of the part  -----> drops its share
//                                            waits for work that was just changing hands
//                                            what the part holds (model/contents), another target, the version's directory there
//                                            Replace, with the plan  -------------------> writes all of it, alone, under a name of its own
//                              Progress without the old part, and with the new one <----
//
// The new part has a number of its own, K and up, by which all messages tell it from the old one; work changes hands between it and others as with any part. Its file is the
// part's so many-th replacement (format/names.hpp), so a write to the old file that comes back late goes where no manifest looks. All that failed is one part: the other leaders go on.
//
// Who writes it is the old part's first leader, since it can not have reported, and knows all images of the part. Where no target is left, the attempt fails, as it
// does without targets.
#pragma once

#include "engine/coordinator/side.hpp"

namespace cairn::engine {

class Replacer : CoordinatorRole {
  public:
    explicit Replacer(Common& common);

    void on_part_failed(FlightPtr flight, NodeIndex from, const message::PartFailed& failed);
    // Every heartbeat: what was not answered is said once more.
    void repeat(Flight& flight);

  private:
    Task<void> replace(FlightPtr flight, Id128 attempt_id, std::uint32_t part);
    Task<Status> make_directory(FlightPtr flight, std::string target);
    std::optional<std::string> choose_target(Job& job, const Contest& contest, std::uint64_t bytes) const;
    void tell(Flight& flight, std::uint32_t part, std::optional<NodeIndex> asks = std::nullopt);
    bool is_current(const Flight& flight, Id128 attempt_id) const;
};

}  // namespace cairn::engine
