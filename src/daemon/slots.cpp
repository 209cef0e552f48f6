// Slots: who gets which file, and how files come and go. What is made before it is asked for is in slots_ahead.cpp; what is
// given up when scratch is full, or by retention, in slots_full.cpp; what goes at the daemon's end, in slots_end.cpp.
#include "daemon/slots.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/log.hpp"
#include "base/units.hpp"
#include "daemon/blocking.hpp"
#include "daemon/memory.hpp"
#include "daemon/slot_files.hpp"
#include "format/check.hpp"
#include "format/image.hpp"
#include "format/names.hpp"

namespace cairn {

namespace {

constexpr std::uint32_t passed_over_max = 8;
constexpr Nanos look_for_room = 200 * millisecond;  // files unlinked elsewhere, and by workers, give room without a word

}  // namespace

Slots::Slots(Clock& clock, WorkerPool& workers, Node& node, std::string directory, SlotSettings settings)
    : clock_(clock),
      workers_(workers),
      node_(node),
      directory_(std::move(directory)),
      settings_(std::move(settings)),
      freed_(clock),
      gate_(clock) {
    // Names that no earlier daemon gave out: a client may still have those mapped.
    using namespace std::chrono;
    next_number_ =
        static_cast<std::uint64_t>(duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count());
}

void Slots::adopt(const LocalImage& image, bool committed) {
    const ImageHeader& header = image.header;
    Slot slot;
    slot.bytes = image.data.buffer->size();  // all of the file is mapped
    slot.state = State::image;
    slot.rank = header.rank;
    slot.image = {header.key, header.epoch, header.parent, header.rank, header.ranks, header.image.bytes, committed};
    slot.map = image.data.buffer;
    bytes_ += slot.bytes;
    slots_.insert_or_assign(image.path, std::move(slot));
}

void Slots::discard(const std::string& path) {
    const Place place = slots_.find(path);
    if (place != slots_.end()) return unlink(place);
    workers_.disposer()([path] { ::unlink(path.c_str()); });
}

// ---- handing out ----

// 3: mapped by this very connection; 2: of this rank, whose last owner is gone; 1: of somebody else who is gone; 0: of
// somebody alive.
int Slots::kinship(const Slot& slot, Owner owner, Rank rank) const {
    if (slot.owner == owner) return 3;
    if (live_.count(slot.owner)) return 0;
    return slot.rank == rank ? 2 : 1;
}

Slots::Place Slots::find_free(Owner owner, const control::Acquire& request, bool take_any) {
    Place best = slots_.end();
    int best_kinship = take_any ? -1 : 0;  // somebody alive will want it again
    for (Place place = slots_.begin(); place != slots_.end(); ++place) {
        const Slot& slot = place->second;
        if (slot.state != State::free || !fits(slot.bytes, request.bytes, take_any)) continue;
        const int kin = kinship(slot, owner, request.rank);
        if (kin > best_kinship || (kin == best_kinship && best != slots_.end() && slot.freed > best->second.freed)) {
            best = place;
            best_kinship = kin;
        }
    }
    return best;
}

// A free slot that is too small and that nobody else will want: it is grown rather than left to lie.
Slots::Place Slots::find_growable(Owner owner, const control::Acquire& request) {
    Place best = slots_.end();
    for (Place place = slots_.begin(); place != slots_.end(); ++place) {
        const Slot& slot = place->second;
        if (slot.state != State::free || slot.bytes >= request.bytes || kinship(slot, owner, request.rank) == 0)
            continue;
        if (best == slots_.end() || slot.bytes > best->second.bytes) best = place;
    }
    return best;
}

bool Slots::is_clearing() const {
    return std::any_of(slots_.begin(), slots_.end(), [](const auto& entry) { return entry.second.clearing_since.has_value(); });
}

// One that is being cleared, and has not been for long, will be worth having: warm or nobody else's, and not too large. take_any: where there is no
// room, each is, if only to be removed.
bool Slots::will_be_free_for(Owner owner, const control::Acquire& request, bool take_any) const {
    return std::any_of(slots_.begin(), slots_.end(), [&](const auto& entry) {
        const Slot& slot = entry.second;
        if (!slot.clearing_since || clock_.now() - *slot.clearing_since >= settings_.clear_wait) return false;
        if (take_any) return true;
        return kinship(slot, owner, request.rank) > 0 && (slot.bytes < request.bytes || fits(slot.bytes, request.bytes, false));
    });
}

bool Slots::has_room(std::uint64_t more_bytes) const {
    return settings_.bytes_max == 0 || bytes_ + more_bytes <= settings_.bytes_max;
}

// A plan of the version needs its images' sizes, and not their bytes.
void Slots::begin(Slot& slot, const control::Acquire& request) {
    if (request.block_bytes == 0) return;
    slot.begun = request.key;
    node_.begin_image(request.key, {request.rank, request.image_bytes, request.block_bytes});
}

void Slots::leave(Slot& slot) {
    const std::optional<VersionKey> begun = std::exchange(slot.begun, std::nullopt);
    // Whoever lost a connection may have begun the same image once more, in another slot.
    const auto has_it = [&](const auto& entry) { return entry.second.begun == begun && entry.second.rank == slot.rank; };
    if (begun && std::none_of(slots_.begin(), slots_.end(), has_it)) node_.leave_image(*begun, *slot.rank);
}

control::Slot Slots::hand_out(Place place, Owner owner, const control::Acquire& request) {
    Slot& slot = place->second;
    slot.state = State::owned;
    slot.owner = owner;
    slot.lease = ++last_lease_;
    slot.rank = request.rank;
    slot.passed_over = 0;
    stop_clearing(slot);
    trim(owner);
    begin(slot, request);
    return {place->first, slot.bytes, std::exchange(slot.fresh, false)};
}

void Slots::trim(Owner owner) {
    for (Place place = slots_.begin(); place != slots_.end();) {
        const Place here = place++;
        Slot& slot = here->second;
        if (slot.state == State::free && slot.owner == owner && ++slot.passed_over > passed_over_max) unlink(here);
    }
}

void Slots::trim_idle(Nanos age) {
    constexpr std::size_t kept_warm = 2;
    std::map<Owner, std::vector<Place>> by_owner;
    for (Place place = slots_.begin(); place != slots_.end(); ++place)
        if (place->second.state == State::free) by_owner[place->second.owner].push_back(place);
    for (auto& [owner, places] : by_owner) {
        const std::size_t kept = live_.count(owner) ? kept_warm : 0;
        std::sort(places.begin(), places.end(), [](Place a, Place b) { return a->second.freed > b->second.freed; });
        for (std::size_t i = kept; i < places.size(); ++i)
            if (clock_.now() - places[i]->second.freed_at >= age) unlink(places[i]);
    }
}

// Whoever asks again does so at the next daemon.
static Status daemon_ends(const std::string& what) { return unavailable(what + ": this daemon ends"); }

// To `bytes`, from what it has. The slot is free again afterwards; one that never had anything is gone when that fails.
Task<Status> Slots::allocate(Place place, std::uint64_t bytes) {
    Slot& slot = place->second;
    const std::uint64_t before = slot.bytes;
    slot.state = State::busy;
    slot.map.reset();
    slot.bytes = bytes;
    bytes_ += bytes - before;
    const std::string path = place->first;
    std::function<Status()> work = [path, bytes, numa_node = numa_node_of(slot.owner)] { return allocate_slot_file(path, bytes, numa_node); };
    ++allocating_;
    Status made = co_await call_blocking(workers_, clock_, std::move(work), clock_.in(settings_.allocate_wait));
    --allocating_;
    if (ended_) freed_.notify_all();  // who removes what is not sealed waits for this one
    if (slots_.find(path) == slots_.end()) co_return daemon_ends(path);
    slot.state = State::free;
    if (made.ok()) {
        slot.fresh = true;
        co_return made;
    }
    bytes_ -= bytes - before;
    slot.bytes = before;
    if (before == 0 || made.code() == Code::deadline) unlink(place);
    co_return made;
}

Task<Result<control::Slot>> Slots::acquire(Owner owner, control::Acquire request) {
    const std::string what = image_text(request.key, request.rank);
    if (request.bytes <= image_header_offset || request.bytes > bytes_max)
        co_return invalid_argument(what + ": an image can not be " + std::to_string(request.bytes) + " bytes");
    if (request.block_bytes != 0 && (!check::block_bytes_valid(request.block_bytes) || request.image_bytes > request.bytes))
        co_return invalid_argument(what + ": " + std::to_string(request.image_bytes) + " bytes in blocks of " + std::to_string(request.block_bytes) + " are no image for a slot of " + std::to_string(request.bytes));
    request.bytes = round_up(request.bytes, slot_step_bytes);
    if (settings_.bytes_max != 0 && request.bytes > settings_.bytes_max)
        co_return Status(Code::out_of_space, what + ": its image of " + format_bytes(request.bytes) +
                                                 " is larger than all that scratch may hold, " +
                                                 format_bytes(settings_.bytes_max) + " (" + settings_.bytes_max_from +
                                                 "): raise that, or protect less");
    live_.insert(owner);
    apply_retention();  // what was committed this very moment is a warm slot, too
    const Nanos deadline =
        clock_.in(static_cast<Nanos>(std::min<std::uint64_t>(request.wait_ms, 1u << 31)) * millisecond);
    const Nanos clear_deadline = std::max(deadline, clock_.in(settings_.clear_wait));  // others may give back one after the other
    while (live_.count(owner) && !ended_) {
        Place place = find_free(owner, request, false);
        if (place != slots_.end()) co_return hand_out(place, owner, request);
        if ((is_being_made_for(owner) && clock_.now() < deadline) ||
            (will_be_free_for(owner, request, false) && clock_.now() < clear_deadline)) {
            co_await freed_.wait(std::min(clear_deadline, clock_.in(look_for_room)));
            continue;
        }
        place = find_growable(owner, request);
        if (has_room(request.bytes - (place == slots_.end() ? 0 : place->second.bytes))) {
            if (place == slots_.end()) place = add_slot(owner, request.rank);
            Status made = co_await allocate(place, request.bytes);
            if (made.ok()) continue;  // it is free and fits, unless the owner has gone meanwhile
            if (made.code() != Code::out_of_space) co_return made;
        }
        ++short_of_room_;
        const std::uint64_t room = co_await room_bytes();
        --short_of_room_;
        if (!live_.count(owner) || ended_) break;
        place = find_free(owner, request, true);
        if (place != slots_.end()) co_return hand_out(place, owner, request);
        if (will_be_free_for(owner, request, true) && clock_.now() < clear_deadline) {
            co_await freed_.wait(std::min(clear_deadline, clock_.in(look_for_room)));
            continue;
        }
        if (unlink_one_free(request.bytes, room)) continue;
        ++short_of_room_;
        const bool gained = co_await make_room();
        --short_of_room_;
        if (gained) continue;
        if (clock_.now() >= deadline)
            co_return Status(Code::out_of_space, what + ": scratch " + directory_ + " has no room for " +
                                                     format_bytes(request.bytes) + ": " + what_holds());
        ++short_of_room_;
        co_await freed_.wait(std::min(deadline, clock_.in(look_for_room)));
        --short_of_room_;
    }
    if (ended_) co_return daemon_ends(what);
    co_return unavailable(what + ": the client has gone");
}

// The owner is counted as having it from the beginning: none is made ahead for it besides.
Slots::Place Slots::add_slot(Owner owner, Rank rank) {
    for (;;) {  // a clock that was set back may give numbers that scratch still holds
        const std::string path = directory_ + "/" + slot_file_name(SlotKind::image, next_number_++);
        if (spared_.count(path)) continue;
        const auto [place, is_new] = slots_.emplace(path, Slot());
        if (!is_new) continue;
        place->second.owner = owner;
        place->second.rank = rank;
        return place;
    }
}

// What the file system has left; none where it does not say. One look for all who ask while it is under way: where it hangs, many would take all
// threads. Who asks after one that hangs was given up is told at once.
Task<std::uint64_t> Slots::room_bytes() {
    if (!room_look_running_.expired()) {
        const std::shared_ptr<RoomLook> others = room_look_;
        while (!others->is_over) co_await others->over.wait(clock_.in(settings_.allocate_wait));
        co_return others->bytes;
    }
    const auto look = std::make_shared<RoomLook>(clock_);
    room_look_ = look;
    const auto bytes = std::make_shared<std::uint64_t>(0);
    room_look_running_ = bytes;
    std::function<Status()> work = [bytes, directory = directory_, room_in = settings_.room_in] {
        TRY_ASSIGN(*bytes, room_in(directory));
        return Status();
    };
    const Status looked = co_await call_blocking(workers_, clock_, std::move(work), clock_.in(settings_.allocate_wait));
    if (looked.ok()) look->bytes = *bytes;
    look->is_over = true;
    look->over.notify_all();
    co_return look->bytes;
}

// ---- coming back ----

Status Slots::release(Owner owner, const std::string& path) {
    if (lease_of(owner, path) == 0) return not_found(path + " is not a slot that was acquired here");
    make_free(slots_.find(path));
    return {};
}

Slots::Lease Slots::lease_of(Owner owner, const std::string& path) const {
    const auto place = slots_.find(path);
    const bool has = place != slots_.end() && place->second.state == State::owned && place->second.owner == owner;
    return has ? place->second.lease : 0;
}

bool Slots::sealed(const LocalImage& image, Lease lease) {
    const ImageHeader& header = image.header;
    const Place place = slots_.find(image.path);
    if (place == slots_.end()) return false;
    Slot& slot = place->second;
    if (lease == 0 || slot.lease != lease || (slot.state != State::owned && slot.state != State::busy)) return false;
    slot.state = State::image;
    slot.rank = header.rank;
    slot.image = {header.key, header.epoch, header.parent, header.rank, header.ranks, header.image.bytes, false};
    slot.map = image.data.buffer;
    return true;
}

BufferPtr Slots::mapping(const std::string& path) const {
    const auto place = slots_.find(path);
    const bool is_good = place != slots_.end() && place->second.map && !place->second.map->has_lost_bytes();
    return is_good ? place->second.map : nullptr;
}

bool Slots::holds(const VersionKey& key, Rank rank, const std::string& path) const {
    const auto place = slots_.find(path);
    return place != slots_.end() && place->second.state == State::image && place->second.image.key == key &&
           place->second.image.rank == rank;
}

void Slots::discard_unsealed(const std::string& path, Lease lease) {
    const Place place = slots_.find(path);
    if (place != slots_.end() && place->second.lease == lease && place->second.state == State::busy) unlink(place);
}

std::vector<Slots::Left> Slots::disconnected(Owner owner) {
    live_.erase(owner);
    not_ahead_.erase(owner);
    expected_.erase(owner);
    unpin(owner);
    std::vector<Left> left;
    for (auto& [path, slot] : slots_)
        if (slot.state == State::owned && slot.owner == owner) {
            slot.state = State::busy;
            leave(slot);
            left.push_back({path, slot.lease});
        }
    return left;
}

void Slots::make_free(Place place) {
    leave(place->second);
    place->second.state = State::busy;
    place->second.lease = 0;
    place->second.image = {};
    place->second.freed = ++last_freed_;
    place->second.clearing_since = clock_.now();
    gate_.spawn(clear(place->first));
}

// One that can not be cleared goes: it may be any time that what it held is invalid, or never.
Task<void> Slots::clear(std::string path) {
    std::function<Status()> work = [path] { return invalidate_slot_file(path); };
    const Status cleared = co_await call_blocking(workers_, clock_, std::move(work), clock_.in(settings_.allocate_wait));
    const Place place = slots_.find(path);
    if (place != slots_.end() && cleared.ok()) {
        place->second.state = State::free;
        place->second.clearing_since.reset();
        place->second.freed_at = clock_.now();
    } else if (place != slots_.end()) {
        log_warning("slot-lost", {{"path", path}, {"error", cleared}});
        unlink(place);
    }
    freed_.notify_all();
}

// The memory comes back when the last mapping is gone, here and in clients.
void Slots::unlink(Place place) {
    leave(place->second);
    // Clients keep free slots mapped, which alone would keep their memory, for as long as they compute.
    const bool nobody_stores = place->second.state == State::free;
    workers_.disposer()([path = place->first, nobody_stores] { nobody_stores ? remove_free_slot_file(path) : void(::unlink(path.c_str())); });
    bytes_ -= place->second.bytes;
    stop_clearing(place->second);
    slots_.erase(place);
    freed_.notify_all();
}

// Only when all free slots together would make the difference; then the largest one first.
bool Slots::unlink_one_free(std::uint64_t wanted_bytes, std::uint64_t room_bytes) {
    std::uint64_t free_bytes = 0;
    Place largest = slots_.end();
    for (Place place = slots_.begin(); place != slots_.end(); ++place) {
        if (place->second.state != State::free) continue;
        free_bytes += place->second.bytes;
        if (largest == slots_.end() || place->second.bytes > largest->second.bytes) largest = place;
    }
    if (largest == slots_.end()) return false;
    std::uint64_t room = room_bytes;
    if (settings_.bytes_max != 0) room = std::min(room, settings_.bytes_max - std::min(bytes_, settings_.bytes_max));
    if (free_bytes + room < wanted_bytes) return false;
    if (largest->second.fresh) not_ahead_[largest->second.owner] = clock_.in(settings_.allocate_wait);  // else it would be made again at once
    unlink(largest);
    return true;
}

// ---- images ----

control::ImageList Slots::pin_images(Owner owner, const std::string& name) {
    control::ImageList list;
    for (auto& [path, slot] : slots_) {
        if (slot.state != State::image || slot.image.key.name != name) continue;
        slot.pins.insert(owner);
        ++slot.pinned;
        const Image& image = slot.image;
        list.images.push_back({image.key, image.epoch, image.parent, image.rank, image.ranks, image.bytes, path});
    }
    return list;
}

void Slots::unpin(Owner owner) {
    for (auto& [path, slot] : slots_) slot.pins.erase(owner);
    apply_retention();
}

bool Slots::knows_committed(const VersionKey& key) const {
    return std::any_of(slots_.begin(), slots_.end(), [&](const auto& entry) {
        return entry.second.state == State::image && entry.second.image.committed && entry.second.image.key == key;
    });
}

}  // namespace cairn
