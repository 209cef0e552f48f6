// BufferRing: the fixed set of buffers of a leader (fgcs24, Section 4.1: circular buffer reuse). A buffer that is free is in the free
// queue FQ; taking one is the credit a follower needs. A buffer returns to FQ when its last holder lets go of it, whoever that is: the
// writer when its write ended, or the kernel when a write that outlived its deadline is over at last.
#pragma once

#include "world/world.hpp"

namespace cairn {

class BufferRing {
  public:
    // Allocates nothing yet: buffers come into being when first taken, and stay.
    BufferRing(Clock& clock, Storage& storage, std::uint32_t buffers, std::uint64_t buffer_bytes);

    // Algorithm 3, lines 3 to 6. deadline: none became free; out_of_space: no memory for the first one.
    Task<Result<BufferPtr>> take(Nanos deadline);

    std::uint64_t buffer_bytes() const noexcept { return buffer_bytes_; }

  private:
    BufferPtr lend(BufferPtr base);

    Storage& storage_;
    std::uint64_t buffer_bytes_;
    std::uint32_t buffers_;
    std::uint32_t born_ = 0;
    std::shared_ptr<Channel<BufferPtr>> free_;  // FQ; shared with the deleters of lent buffers, which may outlive the ring
};

}  // namespace cairn
