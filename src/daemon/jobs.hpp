// Jobs: those that this node takes part in now, and the rosters that scratch held at the start, by which it takes part again.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "daemon/job_files.hpp"
#include "engine/router/node.hpp"

namespace cairn {

class Jobs {
  public:
    Jobs(World world, Node& node, JobFiles& files, std::string node_name, Nanos io_wait);

    // Remembers the job in both places, then joins. Calls for one incarnation take turns: many ranks join at once, and
    // only the first one writes.
    Task<Status> join(Roster roster, NodeIndex self);
    // One of which nobody here tells, by what scratch or persistent says of it: not_found where neither does.
    Task<Status> join_again(Id128 incarnation);
    // Rosters that scratch held at the start; for join_again, until they are forgotten.
    void found(std::vector<Roster> rosters);
    const std::map<Id128, Roster>& found() const { return found_; }
    void forget_found() { found_.clear(); }

    // This node is its job's node 0, whose daemon coordinates.
    bool coordinates(Id128 incarnation) const;
    // As last joined; null for a job that did not join.
    const Roster* roster_of(Id128 incarnation) const;
    // But for those that somebody is about to join.
    std::vector<Id128> known() const;
    bool is_joining(Id128 incarnation) const { return joining_.count(incarnation) != 0; }
    // Of a job that is over, where the node has forgotten it: what is kept of it in files stays until this daemon ends (ended_jobs.hpp).
    void let_go(Id128 incarnation) { known_.erase(incarnation); }

    // Tells where this daemon is to be found of jobs that joined while persistent was another file system than theirs, once it is back. Ends when it
    // is over.
    Task<void> publish_late(std::function<bool()> over);

  private:
    struct Known {
        Roster roster;  // as last joined
        NodeIndex self = 0;
        bool published = false;  // under persistent
    };
    Task<Status> put_on_record(Known* job);

    World world_;
    Node& node_;
    JobFiles& files_;
    std::string node_name_;
    Nanos io_wait_;
    std::map<Id128, Known> known_;
    std::map<Id128, Roster> found_;
    std::set<Id128> joining_;
    Event joined_;
};

}  // namespace cairn
