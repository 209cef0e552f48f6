// Slots: what goes at the daemon's end. All files beside each other and by one deadline, names first: one that hangs or is large keeps no other, and
// a process that ends gives back the memory of whatever has no name any more. What stays is told; the next daemon finds it.
#include <algorithm>

#include "base/log.hpp"
#include "daemon/blocking.hpp"
#include "daemon/slot_files.hpp"
#include "daemon/slots.hpp"

namespace cairn {

struct Slots::Removed {
    std::uint64_t bytes = 0;
    std::size_t staying = 0;
    std::uint64_t staying_bytes = 0;
    Status why;  // of the first that stays
};

// A file that is being allocated is no one's to remove: it is waited for, for half of the time.
Task<void> Slots::remove_unsealed(WorkerPool& removers, Nanos deadline) {
    ended_ = true;
    freed_.notify_all();  // who waits for room is told, and makes no slot of what is given back here
    const Nanos give_up = clock_.now() + (deadline - clock_.now()) / 2;
    while (allocating_ > 0 && clock_.now() < give_up) co_await freed_.wait(give_up);
    std::function<bool(const Slot&)> which = [](const Slot& slot) { return slot.state != State::image; };
    co_await remove_all(std::move(which), removers, deadline);
}

Task<std::uint64_t> Slots::remove_versions(std::vector<VersionKey> keys, WorkerPool& removers, Nanos deadline) {
    std::function<bool(const Slot&)> which = [keys = std::move(keys)](const Slot& slot) {
        return slot.state == State::image && slot.pins.empty() && std::find(keys.begin(), keys.end(), slot.image.key) != keys.end();
    };
    const std::uint64_t bytes = co_await remove_all(std::move(which), removers, deadline);
    co_return bytes;
}

// Waited for: the process may end as soon as this does.
Task<std::uint64_t> Slots::remove_all(std::function<bool(const Slot&)> which, WorkerPool& removers, Nanos deadline) {
    Removed removed;
    Gate gate(clock_);
    for (Place place = slots_.begin(); place != slots_.end();) {
        const Place here = place++;
        if (!which(here->second)) continue;
        const std::string path = here->first;
        const std::uint64_t bytes = here->second.bytes;
        bytes_ -= bytes;
        stop_clearing(here->second);
        slots_.erase(here);
        gate.spawn(remove_one(path, bytes, removers, deadline, removed));
    }
    co_await gate.close();  // each ends at the deadline
    if (removed.staying > 0)
        log_warning("slots-stay", {{"count", removed.staying}, {"bytes", removed.staying_bytes}, {"why", removed.why}});
    co_return removed.bytes;
}

Task<void> Slots::remove_one(std::string path, std::uint64_t bytes, WorkerPool& removers, Nanos deadline, Removed& removed) {
    std::function<Status()> work = [path, later = removers.disposer()] { return remove_slot_name(path, later); };
    Status status = co_await call_blocking(removers, clock_, std::move(work), deadline);
    if (status.ok()) {
        removed.bytes += bytes;
        co_return;
    }
    ++removed.staying;
    removed.staying_bytes += bytes;
    if (removed.why.ok()) removed.why = std::move(status).within("removing " + path);
}

}  // namespace cairn
