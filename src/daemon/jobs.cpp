#include "daemon/jobs.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "daemon/blocking.hpp"
#include "daemon/slot_files.hpp"
#include "catalog/catalog.hpp"
#include "catalog/record.hpp"
#include "catalog/reserve.hpp"
#include "format/limits.hpp"
#include "format/roster.hpp"

namespace cairn {

namespace {


}  // namespace

Jobs::Jobs(World world, WorkerPool& workers, Node& node, Slots& slots, Layout layout, ScratchLayout scratch,
           std::string node_name, RetentionRule persistent_rule, Nanos io_wait)
    : world_(world),
      workers_(workers),
      node_(node),
      slots_(slots),
      layout_(std::move(layout)),
      scratch_(std::move(scratch)),
      node_name_(std::move(node_name)),
      persistent_rule_(persistent_rule),
      io_wait_(io_wait),
      joined_(world.clock) {}

Task<Status> Jobs::join(Roster roster, NodeIndex self) {
    if (self >= roster.members.size() || roster.members[self].node != node_name_)
        co_return invalid_argument("the roster of " + roster.name + " does not name this node, " + node_name_ +
                                   ", at place " + std::to_string(self));
    const Id128 incarnation = roster.incarnation;
    while (joining_.count(incarnation)) co_await joined_.wait(world_.clock.in(io_wait_));
    roster.members[self].address = world_.network.self();
    const auto known = known_.find(incarnation);
    if (known == known_.end() || known->second.self != self || !(known->second.roster == roster)) {
        joining_.insert(incarnation);
        Status remembered = co_await remember(roster);
        Status published = remembered;
        if (remembered.ok()) published = co_await publish(roster, self);
        const bool elsewhere = published.code() == Code::unavailable;
        if (elsewhere) log_warning("job-not-on-record", {{"name", roster.name}, {"incarnation", incarnation}, {"why", published}});
        else remembered = std::move(published);
        joining_.erase(incarnation);
        joined_.notify_all();
        // unavailable would say that this daemon is about to end, and the client would look for another.
        if (remembered.code() == Code::unavailable) remembered = Status(Code::io_error, remembered.text());
        if (!remembered.ok()) co_return std::move(remembered).within("job " + roster.name);
        known_[incarnation] = {roster, self, !elsewhere};
    }
    Status joined = node_.join(std::make_shared<const Roster>(std::move(roster)), self);
    if (joined.ok()) co_await flush_orphans(incarnation);
    co_return joined;
}

bool Jobs::coordinates(Id128 incarnation) const {
    const auto known = known_.find(incarnation);
    return known != known_.end() && known->second.self == coordinator_of(known->second.roster);
}

std::optional<std::uint64_t> Jobs::epoch_of(Id128 incarnation) const {
    const auto known = known_.find(incarnation);
    return known == known_.end() ? std::nullopt : std::optional(known->second.roster.epoch);
}

Task<Status> Jobs::remember(Roster roster) {
    const Bytes bytes = encode_roster(roster);
    const std::string path = scratch_.job(roster.incarnation);
    std::function<Status()> work = [path, bytes] { return write_private_file(path, bytes); };
    const Nanos deadline = world_.clock.in(io_wait_);
    Status kept = co_await call_blocking(workers_, world_.clock, std::move(work), deadline);
    co_return kept;
}

// unavailable: persistent is another file system for the moment, or has no room for the node's address. Without its roster no job is: what `cairn gc` may take
// is known by it.
Task<Status> Jobs::publish(Roster roster, NodeIndex self) {
    const Id128 incarnation = roster.incarnation;
    const Bytes bytes = encode_roster(roster);
    const Nanos deadline = world_.clock.in(io_wait_);
    Status on_record = co_await check_on_record(world_, layout_, roster.name, roster.epoch, incarnation, deadline);
    if (!on_record.ok()) co_return on_record;
    Status made = co_await make_directories(world_, layout_, layout_.job(incarnation), deadline);
    if (!made.ok()) co_return made;
    Status published = co_await publish_once(layout_.job_roster(incarnation), bytes);
    if (!published.ok()) co_return published;
    NodeRecord record;
    record.incarnation = incarnation;
    record.node = self;
    record.address = world_.network.self();
    Status replaced = co_await replace(layout_.job_node(incarnation, self), encode_node_record(record));
    // Only who is started again asks for it, and there is the address of the open.
    if (replaced.code() == Code::out_of_space) replaced = Status(Code::unavailable, replaced.text());
    if (self != coordinator_of(roster)) co_return replaced;
    const Status kept = co_await keep_reserve(world_, layout_, deadline);  // now that all that an open writes is written
    if (kept.code() == Code::corrupt && !std::exchange(told_of_reserve_, true)) log_warning("no-reserve", {{"why", kept}});
    co_return replaced;
}

Task<void> Jobs::publish_late(std::function<bool()> over) {
    while (!over()) {
        co_await world_.clock.sleep(try_again);
        std::vector<std::pair<Roster, NodeIndex>> late;
        for (const auto& [incarnation, known] : known_)
            if (!known.published) late.emplace_back(known.roster, known.self);
        for (const auto& [roster, self] : late) {
            const Status published = co_await publish(roster, self);
            const auto known = known_.find(roster.incarnation);
            if (published.ok() && known != known_.end()) known->second.published = true;
        }
    }
}

// The first one stays.
Task<Status> Jobs::publish_once(std::string path, Bytes bytes) {
    const Nanos deadline = world_.clock.in(io_wait_);
    Status published = co_await publish_small_file(world_, layout_, std::move(path), std::move(bytes), 0600, deadline);
    if (published.code() == Code::already_exists) co_return Status();
    co_return published;
}

// For a moment there is none: who reads then asks again.
Task<Status> Jobs::replace(std::string path, Bytes bytes) {
    const Nanos deadline = world_.clock.in(io_wait_);
    Status removed = co_await world_.storage.remove(path, deadline);
    if (!removed.ok() && removed.code() != Code::not_found) co_return removed;
    Status published = co_await publish_once(std::move(path), std::move(bytes));
    co_return published;
}

}  // namespace cairn
