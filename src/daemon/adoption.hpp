// Adoption, the start: what an earlier daemon left in scratch is found, believed or not, and goes on being flushed.
//
// Rosters first, then images (scratch_look.hpp); what a restart of the machine may have torn is asked for its proof (doubts.hpp); then each image goes to
// its slot, and, where it is not committed (outcomes.hpp), to the node as soon as its job can be joined (unseen_images.hpp). What has nothing left to
// finish goes. What can not be read for a reason that may pass, or only by another release, stays where it is, and so do the jobs: it may be of one of them.
#pragma once

#include <functional>

#include "daemon/doubts.hpp"
#include "daemon/outcomes.hpp"
#include "daemon/scratch_look.hpp"
#include "daemon/unseen_images.hpp"

namespace cairn {

class Adoption {
  public:
    Adoption(World world, WorkerPool& workers, Node& node, Slots& slots, JobFiles& files, Jobs& jobs, ScratchLayout scratch, std::string node_name,
             Layout layout, RetentionRule rule, Nanos io_wait);

    // Committed images are kept, others are flushed on, what holds nothing goes. Fails only when it is over.
    Task<Status> adopt(std::function<bool()> over);
    // Looks at images that a restart of the machine may have torn, and goes on with those whose job could not be joined, because persistent was
    // away; ends when there are none, or it is over.
    Task<void> go_on(std::function<bool()> over);

    UnseenImages& unseen() { return unseen_; }
    // All of scratch was looked at.
    bool knows_images() const { return knows_images_; }
    // Files that another release wrote, and that it alone can read: any job may be theirs.
    bool has_unsupported() const { return has_unsupported_; }
    // Files of scratch could not be read, for a reason that may pass: any job may be theirs.
    bool has_unread() const { return has_unread_; }
    bool verifying() const { return doubts_.verifying(); }
    // Why scratch is not adopted yet: what could not be read when it was looked at last.
    const Status& problem() const { return look_.problem(); }

  private:
    Task<void> adopt_one(LocalImage image, Outcomes& outcomes);
    Task<void> settle(LocalImage image, bool to_be_flushed);
    Task<void> forget_ended();

    World world_;
    Node& node_;
    Slots& slots_;
    JobFiles& files_;
    Jobs& jobs_;
    std::string node_name_;
    Layout layout_;
    RetentionRule rule_;
    Nanos io_wait_;
    ScratchLook look_;
    Doubts doubts_;
    UnseenImages unseen_;
    bool knows_images_ = false;
    bool has_unread_ = false;
    bool has_unsupported_ = false;
};

}  // namespace cairn
