// Outcomes: what became of the versions of which scratch holds images, as persistent tells at the start: one look for each. Persistent retention leaves no trace of
// what it removed, so the rule itself must tell: what it would not keep any more was committed and let go, or would be at once if it were.
// Committing it again would undo the removal.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "daemon/persistent_retention.hpp"

namespace cairn {

class Outcomes {
  public:
    Outcomes(World world, Layout layout, RetentionRule rule, Nanos io_wait) : world_(world), layout_(std::move(layout)), rule_(rule), io_wait_(io_wait) {}

    // ok: committed, also when retention let it go since. cancelled: given up. Else it is not there, or nobody can tell.
    Task<Code> of(VersionKey key);

  private:
    Task<Code> look(VersionKey key);

    World world_;
    Layout layout_;
    RetentionRule rule_;
    Nanos io_wait_;
    std::map<VersionKey, Code> seen_;
    std::map<std::string, std::vector<CatalogEntry>> series_;  // by name
};

}  // namespace cairn
