// Persistent retention: when a version is committed, the older ones that the rule does not keep leave persistent. Done
// by the coordinator's daemon alone, and only while its job is the head of the current lineage: a job that was
// superseded removes nothing.
#pragma once

#include <map>
#include <set>
#include <string>

#include "engine/node.hpp"
#include "world/world.hpp"

namespace cairn {

class PersistentRetention {
  public:
    // base/config's retention_keeps; last 0 keeps all.
    struct Rule {
        std::uint64_t last = 0, every = 0;
    };
    PersistentRetention(World world, Layout layout, Rule rule, Nanos io_wait)
        : world_(world), layout_(std::move(layout)), rule_(rule), io_wait_(io_wait), gate_(world.clock) {}

    // A version of a job that this node coordinates is committed. Saying it again costs nothing.
    void committed(const VersionKey& key);
    bool busy() const { return gate_.active() != 0; }

  private:
    Task<void> apply(std::string name, Id128 incarnation);
    Task<Status> apply_once(std::string name, Id128 incarnation);

    World world_;
    Layout layout_;
    Rule rule_;
    Nanos io_wait_;
    std::map<Id128, Version> newest_;  // committed, by incarnation
    std::map<Id128, Version> applied_;
    std::set<Id128> under_way_;
    Gate gate_;  // last: its coroutines refer to all of the above
};

}  // namespace cairn
