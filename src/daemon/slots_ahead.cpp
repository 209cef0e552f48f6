// Slots: what is made before it is asked for. A fresh slot costs several times the copy: its file is allocated, the kernel clears each page when it is first
// written to, and the client maps it. All of that can be done while the application computes, where it has said what it protects (Prepare).
//
// Order: wish (expected, or a first image that is sealed on all nodes) -> file allocated, near the rank -> pages written to, from front to back, until
// somebody asks for the slot -> the client maps it and asks for it. What was never handed out is given back where memory gets short.
//
// Not chosen: a third slot. Whoever needs one makes it when it does, and keeps it for as long as flushes are that slow.
#include <algorithm>

#include "base/log.hpp"
#include "daemon/blocking.hpp"
#include "daemon/slots.hpp"
#include "format/image.hpp"

namespace cairn {

namespace {
constexpr std::size_t made_at_once = 2;  // of the workers: others are for who waits
constexpr std::uint64_t cleared_at_once_bytes = 64 << 20;  // what waits for a worker meanwhile comes in between
constexpr Nanos made_again_after = 60 * second;
constexpr std::size_t slots_each = 2;    // one to flush, one to fill
}  // namespace

// ---- what is wanted ----

Result<control::Prepared> Slots::prepare(Owner owner, const control::Prepare& request) {
    if (request.bytes <= image_header_offset || request.bytes > bytes_max)
        return invalid_argument("rank " + std::to_string(request.rank) + ": an image can not be " + std::to_string(request.bytes) + " bytes");
    live_.insert(owner);
    const Expected expected{request.rank, round_up(request.bytes, slot_step_bytes), request.numa_node};
    if (const auto known = expected_.find(owner); known != expected_.end() && known->second.bytes != expected.bytes) not_ahead_.erase(owner);
    expected_[owner] = expected;
    control::Prepared prepared;
    std::size_t count = 0;
    bool has_one = false, comes = false;
    claim_free(owner, expected);
    for (Place next = slots_.begin(); next != slots_.end();) {
        const Place place = next++;
        const Slot& slot = place->second;
        if (slot.owner != owner) continue;
        if (slot.state == State::free && slot.fresh && slot.bytes >= expected.bytes && !fits(slot.bytes, expected.bytes, false)) {
            unlink(place);  // made for much more than is protected now
            continue;
        }
        ++count;
        comes |= slot.state == State::busy || (slot.state == State::free && slot.bytes < expected.bytes);  // being made, or invalidated; to be made larger
        if (slot.state != State::free || !fits(slot.bytes, expected.bytes, false)) continue;
        has_one = true;
        if (!slot.stop_clearing) prepared.slots.push_back({place->first, slot.bytes, slot.fresh});
        else prepared.more_to_come = true;
    }
    const bool is_possible = !ended_ahead_ && may_have_ahead(owner) && (settings_.bytes_max == 0 || expected.bytes <= settings_.bytes_max);
    if (!has_one) prepared.more_to_come = is_possible && (count < slots_each || comes);
    if (!has_one && !ended_ahead_ && !ended_) gate_.spawn(prepare_next());
    return prepared;
}

// What somebody left who is gone is as good as a new one, and warm.
void Slots::claim_free(Owner owner, const Expected& expected) {
    const bool has_any = std::any_of(slots_.begin(), slots_.end(), [&](const auto& entry) { return entry.second.owner == owner; });
    control::Acquire like;
    like.rank = expected.rank;
    like.bytes = expected.bytes;
    const Place place = has_any ? slots_.end() : find_free(owner, like, false);
    if (place == slots_.end()) return;
    place->second.owner = owner;
    place->second.rank = expected.rank;
}

std::map<Slots::Owner, Slots::Share> Slots::shares() const {
    std::map<Owner, Share> all;
    for (const Owner owner : live_) all[owner];
    for (const auto& [path, slot] : slots_) {
        const auto found = all.find(slot.owner);
        if (found == all.end()) continue;
        Share& share = found->second;
        ++share.count;
        if (slot.state == State::image) share.image = &slot;
        if (slot.state == State::free && slot.bytes >= share.free_bytes) share.free = path, share.free_bytes = slot.bytes;
    }
    return all;
}

// One that is made, or handed out, counts at once: nobody gets two of a kind.
std::optional<Slots::Wish> Slots::find_wish(std::uint64_t room_bytes) const {
    if (short_of_room_ > 0 || ended_ahead_) return std::nullopt;
    for (const auto& [owner, share] : shares()) {
        if (!may_have_ahead(owner)) continue;
        const auto known = expected_.find(owner);
        const Expected expected = known == expected_.end() ? Expected() : known->second;
        Wish wish{owner, expected.rank, expected.bytes, {}};
        const bool is_too_large = share.free_bytes > 0 && expected.bytes > 0 && share.free_bytes >= expected.bytes && !fits(share.free_bytes, expected.bytes, false);
        if (is_too_large && share.count < slots_each) {
            // as if it were not there
        } else if (!share.free.empty()) {
            if (share.free_bytes >= expected.bytes) continue;
            wish.smaller = share.free;
        } else if (share.count == 1 && share.image && node_.state(share.image->image.key).level >= Level::sealed) {
            wish.rank = share.image->image.rank;
            if (known == expected_.end()) wish.bytes = share.image->bytes;
        } else if (share.count > 0 || known == expected_.end()) {
            continue;
        }
        if (has_room_to_spare(wish.bytes - (wish.smaller.empty() ? 0 : share.free_bytes), room_bytes)) return wish;
    }
    return std::nullopt;
}

bool Slots::may_have_ahead(Owner owner) const {
    const auto refused = not_ahead_.find(owner);
    return refused == not_ahead_.end() || clock_.now() >= refused->second;
}

bool Slots::is_being_made_for(Owner owner) const {
    return std::any_of(slots_.begin(), slots_.end(), [&](const auto& entry) { return entry.second.ahead && entry.second.owner == owner; });
}

std::int32_t Slots::numa_node_of(Owner owner) const {
    const auto known = expected_.find(owner);
    return known == expected_.end() ? -1 : known->second.numa_node;
}

// The program's own memory may come from the same place. What is being made has perhaps not taken its room yet.
bool Slots::has_room_to_spare(std::uint64_t bytes, std::uint64_t room_bytes) const {
    std::uint64_t promised = 0;
    for (const auto& [path, slot] : slots_)
        if (slot.ahead) promised += slot.bytes;
    return has_room(bytes) && room_bytes >= 2 * bytes + promised && memory_left() >= 2 * bytes + promised + settings_.spare_memory_bytes;
}

// Many may ask at once, and it takes several files to read. 0 where it can not be told.
std::uint64_t Slots::memory_left() const {
    constexpr Nanos look_again = 200 * millisecond;
    if (memory_looked_ == 0 || clock_.now() - memory_looked_ >= look_again) {
        memory_looked_ = clock_.now();
        memory_left_ = settings_.available_memory_bytes().value_or(0);
    }
    return memory_left_;
}

// ---- making it ----

void Slots::stop_clearing(Slot& slot) {
    if (slot.stop_clearing) *slot.stop_clearing = true;
    slot.stop_clearing.reset();
}

Task<void> Slots::prepare_next() {
    if (preparing_ == made_at_once) co_return;
    ++preparing_;
    for (;;) {
        const std::uint64_t room = co_await room_bytes();
        std::optional<Wish> wish;
        if (!ended_) wish = find_wish(room);
        if (!wish) break;
        co_await make_ahead(*wish);
    }
    --preparing_;
}

Task<void> Slots::make_ahead(Wish wish) {
    const Place place = wish.smaller.empty() ? add_slot(wish.owner, wish.rank) : slots_.find(wish.smaller);
    const std::string path = place->first;
    stop_clearing(place->second);
    place->second.ahead = true;
    place->second.freed = ++last_freed_;
    place->second.freed_at = clock_.now();
    const Status made = co_await allocate(place, wish.bytes);
    const Place after = slots_.find(path);
    if (after != slots_.end()) after->second.ahead = false;
    memory_looked_ = 0;  // it has been taken
    freed_.notify_all();
    if (!made.ok()) {  // and a new slot is gone
        if (!ended_) log_warning("slot-not-made-ahead", {{"path", path}, {"error", made}});
        if (live_.count(wish.owner)) not_ahead_[wish.owner] = clock_.in(made_again_after);
        co_return;
    }
    // From here on it may be handed out at any moment, which ends the clearing.
    const auto stop = std::make_shared<std::atomic<bool>>(false);
    after->second.stop_clearing = stop;
    for (std::uint64_t begin = 0; begin < wish.bytes && !*stop; begin += cleared_at_once_bytes) {
        const std::uint64_t end = std::min(begin + cleared_at_once_bytes, wish.bytes);
        std::function<Status()> clear = [path, begin, end, stop] {
            clear_ahead(path, begin, end, *stop);
            return Status();
        };
        const Status ignored = co_await call_blocking(workers_, clock_, std::move(clear), never);
        (void)ignored;
    }
    const Place cleared = slots_.find(path);
    if (cleared != slots_.end() && cleared->second.stop_clearing == stop) cleared->second.stop_clearing.reset();
}

// At the beginning of the daemon's end, whose work waits for the same workers.
void Slots::end_ahead() {
    ended_ahead_ = true;
    for (auto& [path, slot] : slots_) stop_clearing(slot);
}

// ---- giving it back ----

void Slots::give_back_ahead() {
    if (settings_.spare_memory_bytes == 0) return;
    const auto unused = [](const Slot& slot) { return slot.state == State::free && slot.fresh; };
    if (std::none_of(slots_.begin(), slots_.end(), [&](const auto& entry) { return unused(entry.second); })) return;
    const std::uint64_t left = memory_left();
    if (left == 0 || left >= settings_.spare_memory_bytes) return;
    std::uint64_t bytes = 0;
    for (Place next = slots_.begin(); next != slots_.end();) {
        const Place place = next++;
        if (!unused(place->second)) continue;
        if (live_.count(place->second.owner)) not_ahead_[place->second.owner] = clock_.in(made_again_after);
        bytes += place->second.bytes;
        unlink(place);
    }
    log_info("slots-given-back", {{"bytes", bytes}, {"memory_left", left}});
}

}  // namespace cairn
