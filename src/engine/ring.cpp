// The free queue FQ, kept by the buffers' own reference counts.
#include "engine/ring.hpp"

#include <algorithm>
#include <utility>

namespace cairn {

struct BufferRing::Users {
    explicit Users(Clock& clock) : fewer(clock) {}
    std::uint32_t waiting = 0, holding = 0;
    Event fewer;  // perhaps
};

BufferRing::Use::Use(std::shared_ptr<Users> u, BufferPtr b) : users(std::move(u)), buffer(std::move(b)) { ++users->holding; }

BufferRing::Use& BufferRing::Use::operator=(Use&& other) noexcept {  // what this one was ends with `other`
    std::swap(users, other.users);
    std::swap(buffer, other.buffer);
    return *this;
}

BufferRing::Use::~Use() {
    buffer.reset();
    if (!users) return;
    --users->holding;
    users->fewer.notify_all();
}

BufferRing::BufferRing(Clock& clock, Storage& storage, std::uint32_t buffers, std::uint64_t buffer_bytes)
    : storage_(storage), buffer_bytes_(buffer_bytes), buffers_(buffers), usable_(buffers),
      free_(std::make_shared<Channel<BufferPtr>>(clock, buffers)), receiving_(std::make_shared<Users>(clock)),
      encoding_(std::make_shared<Users>(clock)) {}

BufferPtr BufferRing::lend(BufferPtr base) {
    Buffer* raw = base.get();
    std::weak_ptr<Channel<BufferPtr>> free = free_;
    // The deleter runs when the last holder lets go; with the ring gone the memory goes too.
    return BufferPtr(raw, [free, receiving = receiving_, base = std::move(base)](Buffer*) mutable {
        if (auto queue = free.lock()) queue->try_send(std::move(base));
        receiving->fewer.notify_all();  // of a buffer that was in quarantine, half is theirs again
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

std::uint32_t BufferRing::in_quarantine() const {
    const std::uint32_t lent = born_ - static_cast<std::uint32_t>(free_->size());
    return lent - std::min(lent, receiving_->holding + encoding_->holding);
}

Task<Result<BufferRing::Use>> BufferRing::take_to_receive(bool leave_half, Nanos deadline) {
    const std::shared_ptr<Users> receiving = receiving_;
    const auto too_many = [&] { return leave_half && receiving->waiting + receiving->holding >= std::max(1u, (usable_ - in_quarantine()) / 2); };
    while (too_many()) {
        const bool fewer = co_await receiving->fewer.wait(deadline);
        if (!fewer && too_many()) co_return deadline_passed("no buffer became free");
    }
    ++receiving->waiting;
    Result<BufferPtr> buffer = co_await take(deadline);
    --receiving->waiting;
    if (!buffer.ok()) {
        receiving->fewer.notify_all();
        co_return std::move(buffer).status();
    }
    co_return Use(receiving, std::move(buffer).value());
}

Task<Result<BufferRing::Use>> BufferRing::take_to_encode(Nanos deadline) {
    Result<BufferPtr> buffer{BufferPtr()};
    while (free_->empty()) {
        buffer = be_born();
        if (buffer.ok() && *buffer) co_return Use(encoding_, std::move(buffer).value());
        if (encoding_->holding == 0) co_return deadline_passed("no buffer is free");
        const bool fewer = co_await encoding_->fewer.wait(deadline);
        if (!fewer && free_->empty()) co_return deadline_passed("no buffer became free");
    }
    buffer = co_await take(deadline);  // there is one: it does not wait
    if (!buffer.ok()) co_return std::move(buffer).status();
    co_return Use(encoding_, std::move(buffer).value());
}

}  // namespace cairn
