#include "copies/once.hpp"

#include <algorithm>
#include <utility>

namespace cairn {

bool OnceState::is_any_used(std::size_t first, std::size_t end) const {
    return std::find(used.begin() + static_cast<std::ptrdiff_t>(first), used.begin() + static_cast<std::ptrdiff_t>(end), true) != used.begin() + static_cast<std::ptrdiff_t>(end);
}

struct OnceReads::Freed {
    explicit Freed(Clock& clock) : event(clock) {}
    std::uint64_t times = 0;  // that a buffer was filled, or that somebody was done with one
    Event event;
    void tell() {
        ++times;
        event.notify_all();
    }
};

OnceReads::OnceReads(World& world, Nanos heartbeat, Nanos io_wait, std::uint64_t buffer_bytes)
    : world_(world), heartbeat_(heartbeat), io_wait_(io_wait), buffer_bytes_(buffer_bytes), freed_(std::make_shared<Freed>(world.clock)) {}

OnceReads::KeptPtr OnceReads::find(const Range& range) const {
    const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const KeptPtr& kept) {
        return kept->of.lock() == range.of && kept->first == range.first && kept->end == range.end;
    });
    return found == kept_.end() ? nullptr : *found;
}

// One that was never filled, or of those that nobody uses the one that was filled first; null: there is none.
Result<OnceReads::KeptPtr> OnceReads::a_free_one(std::uint64_t bytes, WantedFor use) {
    KeptPtr oldest;
    std::size_t born_before = 0;
    for (const KeptPtr& kept : kept_) {
        if (kept->use != use) continue;
        ++born_before;
        if (!kept->reading && kept->base.use_count() == 1 && (!oldest || kept->number < oldest->number)) oldest = kept;
    }
    if (born_before >= buffers_each) {
        if (!oldest || oldest->base->size() >= bytes) return oldest;
        std::erase(kept_, oldest);
        oldest.reset();
    }
    KeptPtr born = std::make_shared<Kept>();
    born->use = use;
    TRY_ASSIGN(born->base, world_.storage.allocate(std::max(bytes, buffer_bytes_)));
    kept_.push_back(born);
    return born;
}

// Whatever becomes of it, these bytes are not asked of their source again. Where they do not come back, whoever reads them holds the buffer.
Task<Status> OnceReads::read(const Range& range, KeptPtr into) {
    into->of = range.of;
    into->first = range.first;
    into->end = range.end;
    into->length = range.raw.length;
    into->number = ++taken_;
    into->reading = true;
    std::fill(range.of->used.begin() + static_cast<std::ptrdiff_t>(range.first), range.of->used.begin() + static_cast<std::ptrdiff_t>(range.end), true);
    Slice raw = range.raw, copy{into->base, 0, range.raw.length};
    const Result<Encoded> copied = co_await world_.cpu.encode(Codec::none, std::move(raw), BaseBytes(), nothing_known, copy, world_.clock.in(io_wait_));
    Status status = copied.status();
    if (status.ok() && range.raw.buffer->has_lost_bytes()) status = Status(Code::io_error, "the image of rank " + std::to_string(range.rank) + " lost some of its bytes");
    if (status.ok()) {
        const Units units = range.units;
        std::vector<std::uint64_t> made = co_await world_.cpu.checksums(std::move(copy), units);
        into->sums.checksums = std::move(made);
        into->sums.cuts = range.units.cuts;
    } else {
        into->of.reset();
    }
    into->reading = false;
    freed_->tell();
    co_return status;
}

HeldBytes OnceReads::lend(const Kept& kept) const {
    BufferPtr lent(kept.base.get(), [base = kept.base, freed = freed_](Buffer*) mutable {
        base.reset();
        freed->tell();
    });
    return {{std::move(lent), 0, kept.length}, kept.sums};
}

Task<Result<HeldBytes>> OnceReads::take(Range range, WantedFor use, std::function<bool()> over) {
    const Nanos wait_most = 2 * io_wait_;  // who holds one has waits of his own, each shorter than io_wait
    Nanos deadline = world_.clock.in(wait_most);
    std::uint64_t freed_before = freed_->times;
    const std::string what = "rank " + std::to_string(range.rank) + "'s image, which can be read once only";
    for (;;) {
        KeptPtr kept = find(range);
        if (kept && !kept->reading) co_return lend(*kept);
        if (!kept && range.of->is_any_used(range.first, range.end)) co_return not_found(what + ": bytes " + std::to_string(range.offset) + "+" + std::to_string(range.raw.length) + " were read before");
        if (!kept) {
            Result<KeptPtr> free = a_free_one(range.raw.length, use);
            if (!free.ok()) co_return std::move(free).status().within("a buffer for " + what);
            if (*free) {
                Status read_it = co_await read(range, *free);
                if (!read_it.ok()) co_return std::move(read_it).within(what);
                co_return lend(**free);
            }
        }
        if (over()) co_return Status(Code::cancelled, "nobody waits for it");
        if (std::exchange(freed_before, freed_->times) != freed_->times) deadline = world_.clock.in(wait_most);  // slow, but not stuck
        if (world_.clock.now() >= deadline) co_return deadline_passed(what + ": no buffer for it became free");
        const Nanos until = std::min(deadline, world_.clock.in(heartbeat_));
        co_await freed_->event.wait(until);
    }
}

}  // namespace cairn
