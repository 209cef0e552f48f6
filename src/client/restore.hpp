// RestoreRun: one restore over the versions that there are. Where bytes come from is the matter of `read` (read/fetch.hpp); where they go:
// restore_target.hpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "client/restore_target.hpp"
#include "client/session.hpp"
#include "read/fetch.hpp"

namespace cairn {

class RestoreRun {
  public:
    RestoreRun(Session& session, const std::vector<std::string>* names, Deadline deadline);

    // Collective, after a survey.
    Result<const KeptVersion*> newest();
    Result<const KeptVersion*> exactly(Version version);
    const std::string& notes() const noexcept { return notes_; }  // for a person, one a line

  private:
    Result<std::vector<const ProtectedRegion*>> wanted() const;
    Result<HandOut> aim(const KeptVersion& kept, const ImageInfo& image);
    Status fetch(const KeptVersion& kept, bool& refused);
    Status restore(const KeptVersion& kept, bool& refused);

    Session& session_;
    const std::vector<std::string>* names_;
    Deadline deadline_;
    std::vector<std::unique_ptr<RestoreTarget>> targets_;
    std::string notes_;
};

}  // namespace cairn
