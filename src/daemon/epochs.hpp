// Epochs: whether a newer open of a series has taken over from a job of this node (rule 2). A rank is told so at its
// next checkpoint, on every node, instead of filling scratch with versions that never commit.
//
// One look at persistent a version and node, however many ranks, beside the copy into scratch: the application waits
// for memory, not for the file system. A look that takes long holds nobody up, and tells the checkpoint after.
#pragma once

#include <map>

#include "catalog/layout.hpp"
#include "world/channel.hpp"
#include "world/gate.hpp"
#include "world/world.hpp"

namespace cairn {

class Epochs {
  public:
    Epochs(World world, Layout layout, Nanos io_wait);

    // superseded, naming who opened after `epoch`; ok when nobody did, or when it is not known within `wait`. Begins a
    // look when this is the first call for the version.
    Task<Status> check(VersionKey key, std::uint64_t epoch, Nanos wait);

    // Somebody may wait for a look.
    bool busy(Id128 incarnation) const {
        const auto last = looks_.find(incarnation);
        return last != looks_.end() && last->second.under_way;
    }
    // Of a job that nobody asks for any more.
    void forget(Id128 incarnation) { looks_.erase(incarnation); }

  private:
    struct Look {
        Version version = 0;  // the last one that it was looked for
        bool under_way = false;
        Status found;  // superseded for good: epochs only rise
    };
    Task<void> look(VersionKey key, std::uint64_t epoch);

    World world_;
    Layout layout_;
    Nanos io_wait_;
    std::map<Id128, Look> looks_;  // by incarnation
    Event looked_;
    Gate gate_;
};

}  // namespace cairn
