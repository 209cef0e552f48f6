// UnderWay: which versions a node is flushing, and how much of them is left: what the class that their flush needs goes by (daemon/need.hpp). All that it looks at
// comes from whoever has it (daemon/stepping.cpp), so it is pure.
#pragma once

#include <functional>
#include <set>
#include <vector>

#include "daemon/need.hpp"
#include "daemon/processors.hpp"
#include "engine/version_state.hpp"

namespace cairn {

class UnderWay {
  public:
    // Sums are since the daemon began.
    struct Sight {
        std::function<std::vector<VersionKey>()> versions;       // all that the node knows
        std::function<VersionState(const VersionKey&)> state;
        std::function<bool(const VersionKey&)> is_unsealed;      // some rank has not sealed it
        std::function<std::uint64_t()> given_bytes;              // of images, to who leads
        std::function<Processors::Seen()> processors;
    };
    UnderWay(NeedSettings settings, Sight sight) : sight_(std::move(sight)), need_(settings) {}

    bool look(Nanos now);  // true: something is under way

    Need& need() { return need_; }
    const Need& need() const { return need_; }

  private:
    NeedLook seen(Nanos now) const;
    std::uint64_t left_bytes() const;
    bool is_flushed(const VersionKey& key, const VersionState& state, Nanos now);
    void note_versions(Nanos now);

    const Sight sight_;
    Need need_;
    std::set<VersionKey> under_way_;
    std::set<VersionKey> unsealed_;   // that others hold up
    std::uint64_t given_before_ = 0;  // when the oldest of them began
};

}  // namespace cairn
