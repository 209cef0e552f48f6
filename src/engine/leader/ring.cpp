// The free queue FQ, kept by the buffers' own reference counts.
#include "engine/leader/ring.hpp"

#include <algorithm>
#include <utility>

namespace cairn {

BufferRing::BufferRing(Clock& clock, Storage& storage, std::uint32_t buffers, std::uint64_t buffer_bytes)
    : storage_(storage), buffer_bytes_(buffer_bytes), buffers_(buffers), usable_(buffers),
      free_(std::make_shared<Channel<BufferPtr>>(clock, buffers)), receiving_(std::make_shared<Receiving>(clock)),
      encoding_(std::make_shared<std::uint32_t>(0)), encoded_(std::make_shared<Event>(clock)) {}

BufferPtr BufferRing::lend(BufferPtr base) {
    Buffer* raw = base.get();
    std::weak_ptr<Channel<BufferPtr>> free = free_;
    // The deleter runs when the last holder lets go; with the ring gone the memory goes too.
    return BufferPtr(raw, [free, base = std::move(base)](Buffer*) mutable {
        if (auto queue = free.lock()) queue->try_send(std::move(base));
    });
}

Result<BufferPtr> BufferRing::be_born() {
    if (born_ == buffers_) return BufferPtr();
    TRY_ASSIGN(BufferPtr born, storage_.allocate(buffer_bytes_));
    ++born_;
    usable_ = buffers_;
    return lend(std::move(born));
}

Task<Result<BufferPtr>> BufferRing::take(Nanos deadline) {
    if (free_->empty()) {
        Result<BufferPtr> born = be_born();
        // With some buffers in use the flush goes on with fewer; with none it can not.
        if (!born.ok() && born_ == 0) co_return std::move(born).status();
        if (!born.ok()) usable_ = born_;
        else if (*born) co_return born;
    }
    Result<BufferPtr> base = co_await free_->receive(deadline);
    if (!base.ok()) co_return std::move(base).status();
    BufferPtr lent = lend(std::move(base).value());
    co_return lent;
}

Task<Result<BufferPtr>> BufferRing::take_to_receive(bool leave_half, Nanos patience, Nanos deadline) {
    const std::shared_ptr<Receiving> receiving = receiving_;
    const auto too_many = [&] { return leave_half && receiving->buffers >= std::max(1u, usable_ / 2); };
    for (bool fewer = true; fewer && too_many();) fewer = co_await receiving->fewer.wait(patience);
    ++receiving->buffers;
    Result<BufferPtr> buffer = co_await take(deadline);
    if (!buffer.ok()) {
        --receiving->buffers;
        receiving->fewer.notify_all();
        co_return std::move(buffer).status();
    }
    Buffer* raw = buffer->get();
    co_return BufferPtr(raw, [receiving, held = std::move(buffer).value()](Buffer*) mutable {
        held.reset();
        --receiving->buffers;
        receiving->fewer.notify_all();
    });
}

BufferRing::Encoding& BufferRing::Encoding::operator=(Encoding&& other) noexcept {  // what this one was ends with `other`
    std::swap(count, other.count);
    std::swap(fewer, other.fewer);
    std::swap(buffer, other.buffer);
    return *this;
}

BufferRing::Encoding::~Encoding() {
    buffer.reset();
    if (!count) return;
    --*count;
    fewer->notify_all();
}

Task<Result<BufferRing::Encoding>> BufferRing::take_to_encode(Nanos deadline) {
    Result<BufferPtr> born{BufferPtr()};
    while (free_->empty()) {
        born = be_born();
        if (born.ok() && *born) break;
        if (*encoding_ == 0) co_return deadline_passed("no buffer is free");
        const bool fewer = co_await encoded_->wait(deadline);
        if (!fewer && free_->empty()) co_return deadline_passed("no buffer became free");
    }
    Encoding encoding;
    encoding.count = encoding_;
    encoding.fewer = encoded_;
    if (born.ok() && *born) {
        encoding.buffer = std::move(born).value();
    } else {
        Result<BufferPtr> buffer = co_await take(deadline);  // there is one: it does not wait
        if (!buffer.ok()) co_return std::move(buffer).status();
        encoding.buffer = std::move(buffer).value();
    }
    ++*encoding_;
    co_return encoding;
}

}  // namespace cairn
