// UnseenImages: images of scratch, not committed, that the node was not given yet: not proved whole, of a job that can not be joined for the moment, or of
// one that nothing here tells of. Each is given as soon as it can be.
//
//   added ──give──► the node has it
//            ├────► waiting: persistent is away; tried again with give_waiting
//            └────► orphan: nothing tells of its job; tried again when somebody does (give_orphans)
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "daemon/jobs.hpp"
#include "daemon/slots.hpp"

namespace cairn {

class UnseenImages {
  public:
    UnseenImages(World world, Node& node, Slots& slots, Jobs& jobs, Nanos io_wait)
        : world_(world), node_(node), slots_(slots), jobs_(jobs), io_wait_(io_wait) {}

    // Its slot is adopted: give it, or drop it.
    void add(const std::string& path, Id128 incarnation) { unseen_[path] = incarnation; }
    void drop(const std::string& path) { unseen_.erase(path); }
    Task<void> give(LocalImage image);
    // Once each that waits for its job.
    Task<void> give_waiting();
    bool has_waiting() const { return !waiting_.empty(); }
    // Sealed while an earlier daemon was ending and taking the job's records away: its ranks live, and have told of the job again.
    Task<void> give_orphans(Id128 incarnation);
    // Those that could not be read then. Ends when it is over.
    Task<void> give_orphans_late(std::function<bool()> over);
    bool has_of(Id128 incarnation) const;

  private:
    World world_;
    Node& node_;
    Slots& slots_;
    Jobs& jobs_;
    Nanos io_wait_;
    std::map<std::string, Id128> unseen_;                // by slot
    std::vector<LocalImage> waiting_;                    // of jobs that could not be joined yet
    std::map<Id128, std::vector<std::string>> orphans_;  // slots
};

}  // namespace cairn
