// EndedJobs: jobs that are over: what a daemon need not know of them while it lives, and which files of theirs it takes away when it ends.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "daemon/jobs.hpp"
#include "daemon/slots.hpp"

namespace cairn {

class EndedJobs {
  public:
    EndedJobs(World world, Node& node, Slots& slots, JobFiles& files, Jobs& jobs, std::string node_name)
        : world_(world), node_(node), slots_(slots), files_(files), jobs_(jobs), node_name_(std::move(node_name)) {}

    // A daemon that always has some client outlives any number of jobs. One that nobody has had, and of which nothing was left to do, for as long as an idle
    // daemon would have stayed is forgotten as that one's end would have done it: what its images and files say is what the next daemon would know, too. A rank
    // that comes back joins again. Each look tells which have been left for so long; `had`: jobs that clients have now.
    std::vector<Id128> left_for(Nanos span, std::set<Id128> had);
    // Somebody had it, also between two looks: its time begins anew. Or it is forgotten.
    void begin_anew(Id128 incarnation) { left_.erase(incarnation); }

    // At the end of the daemon: files of jobs that have nothing left to finish. knows_images: all of scratch was looked at, and understood; else those that are known only by a
    // file may have images that nobody has seen.
    Task<void> remove_files(bool knows_images, Nanos deadline);

  private:
    Task<std::vector<Roster>> let_go(Nanos deadline);
    std::set<Id128> unfinished() const;

    World world_;
    Node& node_;
    Slots& slots_;
    JobFiles& files_;
    Jobs& jobs_;
    std::string node_name_;
    std::map<Id128, Nanos> left_;  // nobody has them and nothing is left to do for them, and since when
};

}  // namespace cairn
