// SystemRandom: every number straight from getrandom(2), so that identities and secrets can not be guessed, nor repeat
// in a forked child. Some hundred nanoseconds a number: few are drawn.
#pragma once

#include "world/cpu.hpp"

namespace cairn {

class SystemRandom final : public Randomness {
  public:
    std::uint64_t next() override;
};

}  // namespace cairn
