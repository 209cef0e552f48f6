// Outcomes: what became of the versions of which scratch holds images, as persistent tells at the start: one look for each. Persistent retention leaves no trace of
// what it removed, so the rule itself must tell: what it would not keep any more was committed and let go, or would be at once if it were.
// Committing it again would undo the removal.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/persistent_retention.hpp"

namespace cairn {

class Outcomes {
  public:
    Outcomes(World world, Layout layout, RetentionRule rule, Nanos io_wait) : world_(world), layout_(std::move(layout)), rule_(rule), io_wait_(io_wait) {}

    // ok: committed, and what the manifest says of this rank can be read; also when retention let the version go since. cancelled: given up. Else it is not
    // there, or nobody can tell.
    Task<Code> of(VersionKey key, Rank rank);

  private:
    struct Look {
        Code code = Code::ok;
        std::optional<Rank> of_rank;  // of the others the manifest's records were not looked at
    };
    Task<Look> look(VersionKey key, Rank rank);

    World world_;
    Layout layout_;
    RetentionRule rule_;
    Nanos io_wait_;
    std::map<VersionKey, Look> seen_;  // the last one
    std::map<std::string, std::vector<CatalogEntry>> series_;  // by name
};

}  // namespace cairn
