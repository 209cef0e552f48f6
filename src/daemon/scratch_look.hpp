// ScratchLook: the first look of a daemon at what scratch holds. A directory is asked until it answers, a file that can not be read for a reason
// that may pass a few times; what is wrong with what is read is said in the log.
#pragma once

#include <functional>

#include "copies/scratch.hpp"

namespace cairn {

inline constexpr int looks_max = 3;  // at a file that can not be read for a reason that may pass

// What the next look may find otherwise; nullptr when there is none.
const Unread* first_passing(const std::vector<Unread>& unread);
// Some of it only another release can read.
bool has_unsupported(const std::vector<Unread>& unread);

class ScratchLook {
  public:
    ScratchLook(World world, ScratchLayout scratch, Nanos io_wait) : world_(world), scratch_(std::move(scratch)), io_wait_(io_wait) {}

    // cancelled when it is over. What stays unread of the jobs may still stand under persistent.
    Task<Result<JobScan>> jobs(std::function<bool()> over);
    Task<Result<ScratchScan>> images(std::function<bool()> over);
    // What could not be read when it was looked at last; ok while all could.
    const Status& problem() const { return problem_; }

  private:
    template <class Scan>
    Task<Result<Scan>> look_at_all(Task<Result<Scan>> (*look)(World&, ScratchLayout, Nanos), std::function<bool()> over);
    Task<void> wait_for_scratch(Status why);

    World world_;
    ScratchLayout scratch_;
    Nanos io_wait_;
    Status problem_;
};

}  // namespace cairn
