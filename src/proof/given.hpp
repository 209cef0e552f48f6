// A rank that waits in its checkpoint and gives its image's bytes when they are asked for, as with capture.mode = through. It may be late, too late, or leave.
#pragma once

#include <optional>
#include <set>

#include "copies/image_source.hpp"
#include "world/world.hpp"

namespace cairn::testing {

struct Giving {
    std::uint64_t pieces = 0;         // asked for so far
    std::set<std::uint64_t> offsets;  // of those that were given
    bool was_asked_again = false;     // for one of them
    bool is_gone = false;
};

// How a rank gives.
struct GivingWay {
    std::uint64_t seed = 0;
    bool is_late = false;                      // now and then
    std::optional<std::uint64_t> leaves_with;  // which piece
};

class GivingRank final : public ImageSource {
  public:
    // `world`: of the daemon that asks. `may_be_late`: until faults stop.
    GivingRank(World world, Slice data, GivingWay way, std::shared_ptr<Giving> giving, std::shared_ptr<const bool> may_be_late)
        : world_(world), data_(std::move(data)), way_(way), giving_(std::move(giving)), may_be_late_(std::move(may_be_late)) {}
    Result<BufferPtr> allocate(std::uint64_t bytes) override { return world_.storage.allocate(bytes); }
    Task<Status> fill(std::uint64_t offset, Slice into, Nanos deadline) override;

  private:
    World world_;
    Slice data_;
    GivingWay way_;
    std::shared_ptr<Giving> giving_;
    std::shared_ptr<const bool> may_be_late_;
};

}  // namespace cairn::testing
