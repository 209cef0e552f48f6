// The free queue FQ, kept by the buffers' own reference counts.
#include "engine/leader/ring.hpp"

namespace cairn {

BufferRing::BufferRing(Clock& clock, Storage& storage, std::uint32_t buffers, std::uint64_t buffer_bytes)
    : storage_(storage), buffer_bytes_(buffer_bytes), buffers_(buffers),
      free_(std::make_shared<Channel<BufferPtr>>(clock, buffers)) {}

BufferPtr BufferRing::lend(BufferPtr base) {
    Buffer* raw = base.get();
    std::weak_ptr<Channel<BufferPtr>> free = free_;
    // The deleter runs when the last holder lets go; with the ring gone the memory goes too.
    return BufferPtr(raw, [free, base = std::move(base)](Buffer*) mutable {
        if (auto queue = free.lock()) queue->try_send(std::move(base));
    });
}

Task<Result<BufferPtr>> BufferRing::take(Nanos deadline) {
    if (free_->empty() && born_ < buffers_) {
        Result<BufferPtr> born = storage_.allocate(buffer_bytes_);
        if (born.ok()) {
            ++born_;
            BufferPtr lent = lend(std::move(born).value());
            co_return lent;
        }
        // With some buffers in use the flush goes on with fewer; with none it can not.
        if (born_ == 0) co_return std::move(born).status();
    }
    Result<BufferPtr> base = co_await free_->receive(deadline);
    if (!base.ok()) co_return std::move(base).status();
    BufferPtr lent = lend(std::move(base).value());
    co_return lent;
}

}  // namespace cairn
