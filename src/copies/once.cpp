#include "copies/once.hpp"

#include <algorithm>
#include <utility>

namespace cairn {

bool OnceState::is_any_used(std::size_t first, std::size_t end) const {
    return is_gone || std::find(used.begin() + static_cast<std::ptrdiff_t>(first), used.begin() + static_cast<std::ptrdiff_t>(end), true) != used.begin() + static_cast<std::ptrdiff_t>(end);
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
Result<OnceReads::KeptPtr> OnceReads::a_free_one(const Range& range, WantedFor use) {
    const std::uint64_t bytes = range.raw.length;
    const bool is_given = range.of->source != nullptr;
    KeptPtr oldest;
    std::size_t born_before = 0;
    for (const KeptPtr& kept : kept_) {
        if (kept->use != use) continue;
        ++born_before;
        if (!kept->reading && kept->base.use_count() == 1 && (!oldest || kept->number < oldest->number)) oldest = kept;
    }
    if (born_before >= buffers_each) {
        if (!oldest || (oldest->base->size() >= bytes && oldest->is_given == is_given && !oldest->base->has_lost_bytes())) return oldest;
        std::erase(kept_, oldest);
        oldest.reset();
    }
    KeptPtr born = std::make_shared<Kept>();
    born->use = use;
    born->is_given = is_given;
    const std::uint64_t size = std::max(bytes, buffer_bytes_);
    TRY_ASSIGN(born->base, is_given ? range.of->source->allocate(size) : world_.storage.allocate(size));
    kept_.push_back(born);
    return born;
}

// Whatever becomes of it, bytes that can be read once are not asked of their source again. Where they do not come back, whoever reads them holds the buffer.
Task<Status> OnceReads::copy(const Range& range, Slice into) {
    if (const std::shared_ptr<ImageSource> source = range.of->source) {
        Status given = co_await source->fill(range.offset, std::move(into), world_.clock.in(io_wait_));
        range.of->is_gone |= given.code() == Code::not_found;
        co_return given;
    }
    std::fill(range.of->used.begin() + static_cast<std::ptrdiff_t>(range.first), range.of->used.begin() + static_cast<std::ptrdiff_t>(range.end), true);
    Slice raw = range.raw;
    const Result<Encoded> copied = co_await world_.cpu.encode(Coding(Codec::none), std::move(raw), BaseBytes(), nothing_known, into, world_.clock.in(io_wait_));
    if (copied.ok() && range.raw.buffer->has_lost_bytes()) co_return Status(Code::io_error, "the image of rank " + std::to_string(range.rank) + " lost some of its bytes");
    co_return copied.status();
}

Task<Status> OnceReads::read(const Range& range, KeptPtr into) {
    into->of = range.of;
    into->first = range.first;
    into->end = range.end;
    into->length = range.raw.length;
    into->number = ++taken_;
    into->reading = true;
    Slice here{into->base, 0, range.raw.length};
    Status status = co_await copy(range, here);
    if (status.ok()) {
        const Units units = range.units;
        std::vector<std::uint64_t> made = co_await world_.cpu.checksums(std::move(here), units);
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
    const std::string which = range.of->source ? "'s image, which its process gives when it is asked" : "'s image, which can be read once only";
    const std::string what = "rank " + std::to_string(range.rank) + which;
    for (;;) {
        KeptPtr kept = find(range);
        if (kept && !kept->reading) co_return lend(*kept);
        if (!kept && range.of->is_any_used(range.first, range.end)) co_return not_found(what + ": bytes " + std::to_string(range.offset) + "+" + std::to_string(range.raw.length) + (range.of->is_gone ? " are gone with it" : " were read before"));
        if (!kept) {
            Result<KeptPtr> free = a_free_one(range, use);
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
