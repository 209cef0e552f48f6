// LeftSlots: slots whose client is gone. Its image may have been sealed by somebody who could not say so any more; what was not is given up.
#pragma once

#include "daemon/slots.hpp"
#include "world/world.hpp"

namespace cairn {

class LeftSlots {
  public:
    LeftSlots(World world, Node& node, Slots& slots, Nanos io_wait) : world_(world), node_(node), slots_(slots), io_wait_(io_wait) {}

    Task<void> look_into(Slots::Left left);
    // Whose the images are that are being looked into is not known yet.
    bool is_looking() const { return looking_ != 0; }

  private:
    Task<void> take(Slots::Left left);

    World world_;
    Node& node_;
    Slots& slots_;
    Nanos io_wait_;
    std::size_t looking_ = 0;
};

}  // namespace cairn
