// Persistent retention: when a version is committed, the older ones that the rule does not keep leave persistent. Done
// by the coordinator's daemon alone, and only while its job is the head of the current lineage and nobody opened the
// series after it: a job that was superseded, or may be in a moment, removes nothing. Nothing stays of what it removes, so that a job that takes versions for weeks does not
// fill directories: what allows that is said in catalog/removal.hpp.
#pragma once

#include <map>
#include <set>
#include <string>

#include "catalog/lineage.hpp"
#include "catalog/removal.hpp"
#include "engine/router/node.hpp"
#include "world/world.hpp"

namespace cairn {

// base/config's retention_keeps; last 0 keeps all.
struct RetentionRule {
    std::uint64_t last = 0, every = 0;
};
// Whether a version stays, or would stay if it were committed, by what its own incarnation committed after it.
bool rule_keeps(const RetentionRule& rule, const std::vector<CatalogEntry>& entries, const VersionKey& key);

class PersistentRetention {
  public:
    PersistentRetention(World world, const Node& node, Layout layout, RetentionRule rule, Nanos io_wait)
        : world_(world), node_(node), layout_(std::move(layout)), rule_(rule), io_wait_(io_wait), gate_(world.clock) {}

    // A version of a job that this node coordinates is committed. Saying it again costs nothing.
    void committed(const VersionKey& key);
    bool busy() const { return gate_.active() != 0; }
    bool busy(Id128 incarnation) const { return under_way_.count(incarnation) != 0; }
    // Of a job that is over.
    void forget(Id128 incarnation) {
        newest_.erase(incarnation);
        applied_.erase(incarnation);
    }

  private:
    Task<void> apply(std::string name, Id128 incarnation);
    Task<Status> apply_once(std::string name, Id128 incarnation);
    Task<Status> remove_beyond(const std::vector<CatalogEntry>& entries, const Lineage& lineage, Id128 own);
    Task<Status> remove(const CatalogEntry& entry, Id128 own);
    bool settled(const VersionKey& key) const;
    Task<Result<Fence>> fence_of(Id128 incarnation, Id128 own);
    Task<Status> lift_tombstones(const std::vector<CatalogEntry>& entries, Id128 own);

    World world_;
    const Node& node_;
    Layout layout_;
    RetentionRule rule_;
    Nanos io_wait_;
    std::map<Id128, Version> newest_;  // committed, by incarnation
    std::map<Id128, Version> applied_;
    std::set<Id128> under_way_;
    Gate gate_;  // last: its coroutines refer to all of the above
};

}  // namespace cairn
