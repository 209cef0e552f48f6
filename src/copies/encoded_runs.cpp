// Room is counted, not laid out: each buffer is memory of its own, and holds the room it was made in.
#include "copies/encoded_runs.hpp"

#include <algorithm>

namespace cairn {

EncodedRuns::EncodedRuns(World& world, std::uint64_t bytes_max, SharedRuns* node) : world_(world), bytes_max_(bytes_max), node_(node), held_(std::make_shared<Held>(world.clock)), decoded_(world.clock) {}

Task<Result<EncodedRuns::Room>> EncodedRuns::take(std::uint64_t bytes, Nanos patience) {
    while (!has_room(bytes)) {
        if (!kept_.empty()) {
            kept_.erase(kept_.begin());
            continue;
        }
        const bool less = co_await held_->less.wait(world_.clock.in(patience));
        if (!less && !has_room(bytes))
            co_return deadline_passed("no memory became free for the " + std::to_string(bytes) +
                                      " bytes that it takes encoded and decoded, since other reads did not come back: try again when the file system answers");
    }
    held_->bytes += bytes;
    co_return room_of(bytes);
}

bool EncodedRuns::has_room(std::uint64_t bytes) const { return held_->bytes == 0 || (held_->bytes <= bytes_max_ && bytes <= bytes_max_ - held_->bytes); }

EncodedRuns::Room EncodedRuns::room_of(std::uint64_t bytes) {
    return Room(new std::uint64_t(bytes), [held = held_](const std::uint64_t* gone) {
        held->bytes -= *gone;
        delete gone;
        held->less.notify_all();
    });
}

EncodedRuns::Room EncodedRuns::split(Room& room, std::uint64_t bytes) {
    CAIRN_CHECK(bytes <= *room);
    *room -= bytes;
    return room_of(bytes);
}

Result<Slice> EncodedRuns::allocate(Room room, std::uint64_t bytes) {
    TRY_ASSIGN(BufferPtr base, world_.storage.allocate(round_up(bytes, 4096)));
    Buffer* const raw = base.get();
    BufferPtr buffer(raw, [room = std::move(room), base = std::move(base)](Buffer*) mutable {
        base.reset();
        room.reset();
    });
    return Slice{std::move(buffer), 0, bytes};
}

void EncodedRuns::keep(Which which, RunBytes bytes) {
    kept_.push_back({which, std::move(bytes)});
    held_->less.notify_all();  // whoever waits may have it
}

std::vector<EncodedRuns::Kept>::const_iterator EncodedRuns::find(Which which) const {
    return std::find_if(kept_.begin(), kept_.end(), [&](const Kept& each) { return each.which == which; });
}

Slice EncodedRuns::take_kept(Which which) {
    const auto found = find(which);
    if (found == kept_.end()) return {};
    Slice raw = found->bytes.memory;
    kept_.erase(found);
    return raw;
}

bool EncodedRuns::keeps(Which which) const { return find(which) != kept_.end(); }

std::optional<RunBytes> EncodedRuns::kept(Which which) const {
    const auto found = find(which);
    return found == kept_.end() ? std::nullopt : std::optional(found->bytes);
}

void EncodedRuns::drop(Which which) {
    if (const auto found = find(which); found != kept_.end()) kept_.erase(found);
}

EncodedRuns& EncodedRuns::of_base() {
    if (!of_base_) of_base_ = std::make_unique<EncodedRuns>(world_, bytes_max_);
    return *of_base_;
}

Task<Slice> EncodedRuns::share(Which which, Nanos patience) {
    const Nanos deadline = world_.clock.in(patience);
    for (;;) {
        const auto found = find(which);
        if (found != kept_.end()) co_return Slice(found->bytes.memory);
        if (std::find(decoded_now_.begin(), decoded_now_.end(), which) == decoded_now_.end()) break;
        const bool told = co_await decoded_.wait(deadline);
        if (!told) break;
    }
    decoded_now_.push_back(which);
    co_return Slice();
}

void EncodedRuns::shared(Which which, Slice raw) {
    decoded_now_.erase(std::find(decoded_now_.begin(), decoded_now_.end(), which));
    if (raw.buffer) keep(which, {std::move(raw)});
    decoded_.notify_all();
}

}  // namespace cairn
