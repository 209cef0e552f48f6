#include "daemon/job_files.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "catalog/catalog.hpp"
#include "catalog/record.hpp"
#include "catalog/reserve.hpp"
#include "daemon/blocking.hpp"
#include "daemon/slot_files.hpp"
#include "format/limits.hpp"
#include "format/roster.hpp"

namespace cairn {

JobFiles::JobFiles(World world, WorkerPool& workers, Layout layout, ScratchLayout scratch, Nanos io_wait)
    : world_(world), workers_(workers), layout_(std::move(layout)), scratch_(std::move(scratch)), io_wait_(io_wait) {}

Task<Status> JobFiles::keep(Roster roster) {
    const Bytes bytes = encode_roster(roster);
    const std::string path = scratch_.job(roster.incarnation);
    std::function<Status()> work = [path, bytes] { return write_private_file(path, bytes); };
    const Nanos deadline = world_.clock.in(io_wait_);
    Status kept = co_await call_blocking(workers_, world_.clock, std::move(work), deadline);
    co_return kept;
}

Task<Status> JobFiles::publish(Roster roster, NodeIndex self) {
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

// The first one stays.
Task<Status> JobFiles::publish_once(std::string path, Bytes bytes) {
    const Nanos deadline = world_.clock.in(io_wait_);
    Status published = co_await publish_small_file(world_, layout_, std::move(path), std::move(bytes), 0600, deadline);
    if (published.code() == Code::already_exists) co_return Status();
    co_return published;
}

// For a moment there is none: who reads then asks again.
Task<Status> JobFiles::replace(std::string path, Bytes bytes) {
    const Nanos deadline = world_.clock.in(io_wait_);
    Status removed = co_await world_.storage.remove(path, deadline);
    if (!removed.ok() && removed.code() != Code::not_found) co_return removed;
    Status published = co_await publish_once(std::move(path), std::move(bytes));
    co_return published;
}

Task<Result<Roster>> JobFiles::read_published(Id128 incarnation) {
    Result<Bytes> bytes = co_await read_record(world_, layout_.job_roster(incarnation), FrameKind::roster, roster_bytes_max,
                                               world_.clock.in(io_wait_));
    if (!bytes.ok()) {
        Status status = co_await unless_root_missing(world_.storage, layout_.persistent, std::move(bytes).status(), world_.clock.in(io_wait_));
        co_return status;
    }
    Result<Roster> roster = decode_roster(*bytes);
    if (roster.ok() && roster->incarnation != incarnation)
        co_return corrupt(layout_.job_roster(incarnation) + ": of another job");
    co_return roster;
}

Task<Result<JobScan>> JobFiles::scan(Nanos deadline) {
    const Nanos left = std::max<Nanos>(deadline - world_.clock.now(), 0);
    Result<JobScan> scan = co_await scan_jobs(world_, scratch_, left);
    co_return scan;
}

Task<void> JobFiles::remove(Roster roster, std::string node, Nanos deadline) {
    const Id128 incarnation = roster.incarnation;
    const Status kept = co_await world_.storage.remove(scratch_.job(incarnation), deadline);
    (void)kept;
    for (NodeIndex at = 0; at < roster.members.size(); ++at) {
        if (roster.members[at].node != node) continue;
        const Status record = co_await world_.storage.remove(layout_.job_node(incarnation, at), deadline);
        (void)record;
        if (at != coordinator_of(roster)) continue;
        const Status removed = co_await world_.storage.remove(layout_.job_roster(incarnation), deadline);
        (void)removed;
    }
    const Status directory = co_await world_.storage.remove_directory(layout_.job(incarnation), deadline);
    (void)directory;
}

}  // namespace cairn
