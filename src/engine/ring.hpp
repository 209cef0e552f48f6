// BufferRing: a fixed set of buffers, a leader's (fgcs24, Section 4.1: circular buffer reuse) or a follower's. A buffer that is free is in the free
// queue FQ; taking one is the credit a follower needs. A buffer returns to FQ when its last holder lets go of it, whoever that is: the
// writer when its write ended, or the kernel when a write that outlived its deadline is over at last.
//
// Where data are encoded before they are written, that takes a second buffer. So receivers leave half of them: else all could hold what waits to be encoded. And
// who encodes waits only for others who do, whose buffers come back soon. A buffer in quarantine, whose user is done and whose I/O is not, belongs to neither: the
// half is of what is left.
#pragma once

#include "world/world.hpp"

namespace cairn {

class BufferRing {
  public:
    // Allocates nothing yet: buffers come into being when first taken, and stay.
    BufferRing(Clock& clock, Storage& storage, std::uint32_t buffers, std::uint64_t buffer_bytes);

    // Algorithm 3, lines 3 to 6. deadline: none became free; out_of_space: no memory for the first one.
    Task<Result<BufferPtr>> take(Nanos deadline);

    struct Users;
    // A buffer and its user, who is done when this goes, whether or not the kernel is.
    struct Use {
        std::shared_ptr<Users> users;
        BufferPtr buffer;
        Use() = default;
        Use(std::shared_ptr<Users> users, BufferPtr buffer);
        Use(Use&&) = default;
        Use& operator=(Use&& other) noexcept;
        ~Use();
    };
    // For what is received. leave_half: not more than half of them are held for that, but one.
    Task<Result<Use>> take_to_receive(bool leave_half, Nanos deadline);
    // For what is encoded. Not ok: there is none, and nobody encodes who would give one back; or not in time.
    Task<Result<Use>> take_to_encode(Nanos deadline);

    std::uint64_t buffer_bytes() const noexcept { return buffer_bytes_; }
    std::uint32_t buffers() const noexcept { return usable_; }  // that there is memory for, as far as it was asked for

  private:
    BufferPtr lend(BufferPtr base);
    Result<BufferPtr> be_born();  // ok, and null: there are as many as there may be
    std::uint32_t in_quarantine() const;

    Storage& storage_;
    std::uint64_t buffer_bytes_;
    std::uint32_t buffers_;
    std::uint32_t born_ = 0, usable_;
    std::shared_ptr<Channel<BufferPtr>> free_;  // FQ; shared with the deleters of lent buffers, which may outlive the ring
    std::shared_ptr<Users> receiving_;          // the same
    std::shared_ptr<Users> encoding_;
};

}  // namespace cairn
