#include "engine/coordinator/free_space.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/log.hpp"
#include "base/units.hpp"
#include "storage/placement.hpp"

namespace cairn::engine {

namespace {
constexpr int looks_until_full = 3;  // a look at a file system's room may be a wrong one
}

// One that does not answer has failed already, before a byte was written. One that answers otherwise is met when a part is made.
Task<void> FreeSpace::look(Job& job, bool avoids_silent, std::function<bool()> is_wanted) {
    const Nanos deadline = world.clock.in(settings.io_wait);
    const std::unique_ptr<StorageDriver> driver = common.storage_driver(job);
    std::vector<std::string> names = driver->targets();
    std::erase_if(names, [&](const std::string& name) { return is_avoided(job, name); });
    const std::vector<TargetFill> fills = co_await driver->fill(std::move(names), deadline);
    if (!is_wanted()) co_return;
    experience(job).free_bytes.clear();
    for (const TargetFill& each : fills) {
        if (each.free_bytes.ok()) experience(job).free_bytes[each.name] = *each.free_bytes;
        else if (avoids_silent && each.free_bytes.code() == Code::deadline) avoid(job, each.name, each.free_bytes.status().text());
    }
    const auto is_silent = [](const TargetFill& each) { return each.free_bytes.code() == Code::deadline; };
    if (std::any_of(fills.begin(), fills.end(), is_silent) && !avoids_silent) co_return;  // it may have spoken up by the time an attempt asks
    experience(job).free_bytes_until = world.clock.in(settings.peer_wait);
}

std::vector<TargetRoom> FreeSpace::tried_targets(Job& job) const {
    std::vector<TargetRoom> tried;
    for (const std::string& name : common.storage_driver(job)->targets()) {
        const auto known = experience(job).free_bytes.find(name);
        if (!is_avoided(job, name)) tried.push_back({name, known == experience(job).free_bytes.end() ? UINT64_MAX : known->second});
    }
    return tried;
}

// Where no target is left the file system chooses; where it must not, all of them are tried again.
std::vector<std::string> FreeSpace::usable_targets(Job& job, std::uint64_t bytes) const {
    const std::vector<TargetRoom> tried = tried_targets(job);
    if (!tried.empty()) return with_room(tried, bytes, job.roster->files);
    const std::unique_ptr<StorageDriver> driver = common.storage_driver(job);
    return driver->needs_target() ? driver->targets() : std::vector<std::string>();
}

// Those of which it is not known already.
std::vector<std::string> FreeSpace::seem_full(const Flight& flight) {
    Job& job = *flight.job;
    Experience& known = experience(job);
    if (known.free_bytes.empty()) return {};
    const std::vector<TargetRoom> tried = tried_targets(job);
    const std::vector<std::string> roomy = with_room(tried, side(flight).sealed_bytes(), job.roster->files);
    const std::set<std::string> has_room(roomy.begin(), roomy.end());
    std::vector<std::string> full;
    for (const TargetRoom& target : tried)
        if (!has_room.count(target.name) && world.clock.now() >= known.full[target.name]) full.push_back(target.name);
    return full;
}

Task<void> FreeSpace::look_again_where_full(FlightPtr flight) {
    Experience& known = experience(*flight->job);
    std::vector<std::string> full = seem_full(*flight);
    const std::function<bool()> over = [this, flight] { return side(*flight).cancel || flight->state.dead; };
    for (int look = 1; look < looks_until_full && !full.empty() && !over(); ++look) {
        co_await world.clock.sleep(settings.heartbeat / 4);
        const Nanos deadline = world.clock.in(std::min(settings.heartbeat, settings.io_wait));
        const std::unique_ptr<StorageDriver> driver = common.storage_driver(*flight->job);
        const std::vector<TargetFill> fills = co_await driver->fill(full, deadline);
        for (const TargetFill& each : fills) {
            if (each.free_bytes.ok()) known.free_bytes[each.name] = std::max(known.free_bytes[each.name], *each.free_bytes);
            if (each.free_bytes.code() == Code::deadline) avoid(*flight->job, each.name, each.free_bytes.status().text());
        }
        full = seem_full(*flight);
    }
    for (const std::string& name : full) known.full[name] = world.clock.in(avoided_for);
    if (full.empty() || over()) co_return;
    log_info("target-full", {{"version", version_text(flight->key)}, {"target", full.front()}, {"others", full.size() - 1}, {"free", format_bytes(known.free_bytes[full.front()])}, {"looks", looks_until_full},
                             {"lost", "the parts of this version go to targets that have room for its raw bytes"}, {"for_s", static_cast<std::uint64_t>(avoided_for / second)}});
}

}  // namespace cairn::engine
