#include "daemon/adoption.hpp"

#include <set>
#include <utility>

#include "daemon/blocking.hpp"

namespace cairn {

Adoption::Adoption(World world, WorkerPool& workers, Node& node, Slots& slots, JobFiles& files, Jobs& jobs, ScratchLayout scratch, std::string node_name,
                   Layout layout, RetentionRule rule, Nanos io_wait)
    : world_(world),
      node_(node),
      slots_(slots),
      files_(files),
      jobs_(jobs),
      node_name_(std::move(node_name)),
      layout_(std::move(layout)),
      rule_(rule),
      io_wait_(io_wait),
      look_(world, scratch, io_wait),
      doubts_(world, workers, slots, scratch, io_wait),
      unseen_(world, node, slots, jobs, io_wait) {}

Task<Status> Adoption::adopt(std::function<bool()> over) {
    Result<JobScan> rosters = co_await look_.jobs(over);
    if (!rosters.ok()) co_return std::move(rosters).status();
    jobs_.found(std::move(rosters->rosters));
    Result<ScratchScan> scan = co_await look_.images(over);
    if (!scan.ok()) co_return std::move(scan).status();
    has_unread_ = first_passing(scan->unread) != nullptr;
    has_unsupported_ = cairn::has_unsupported(scan->unread);
    for (const Unread& each : scan->unread) slots_.spare(each.path);
    for (const std::string& path : scan->free_slots) slots_.discard(path);
    Status dropped = co_await doubts_.drop_unproved(*scan, std::move(over));
    if (!dropped.ok()) co_return dropped;
    Outcomes outcomes(world_, layout_, rule_, io_wait_);
    for (LocalImage& image : scan->images) {
        LocalImage one = std::move(image);
        co_await adopt_one(std::move(one), outcomes);
    }
    slots_.apply_retention();
    if (!has_unread_ && !has_unsupported_) co_await forget_ended();
    if (!unseen_.has_waiting() && !doubts_.verifying()) jobs_.forget_found();
    knows_images_ = true;
    co_return Status();
}

Task<void> Adoption::adopt_one(LocalImage image, Outcomes& outcomes) {
    const VersionKey key = image.header.key;
    const Code outcome = co_await outcomes.of(key, image.header.rank);
    if (outcome == Code::cancelled) co_return slots_.discard(image.path);
    const bool committed = outcome == Code::ok;
    slots_.adopt(image, committed);
    if (!committed) unseen_.add(image.path, key.incarnation);
    const bool in_doubt = doubts_.take(image, committed);
    if (!in_doubt && !committed) co_await unseen_.give(std::move(image));
}

// Jobs with nothing in scratch; what waits for its job has something.
Task<void> Adoption::forget_ended() {
    std::set<Id128> wanted;
    for (const VersionKey& key : slots_.unfinished()) wanted.insert(key.incarnation);
    std::vector<Roster> ended;
    for (const auto& [incarnation, roster] : jobs_.found())
        if (!node_.knows(incarnation) && !wanted.count(incarnation)) ended.push_back(roster);
    for (const Roster& roster : ended) co_await files_.remove(roster, node_name_, world_.clock.in(io_wait_));
}

Task<void> Adoption::settle(LocalImage image, bool to_be_flushed) {
    if (!to_be_flushed) co_return unseen_.drop(image.path);
    co_await unseen_.give(std::move(image));
}

Task<void> Adoption::go_on(std::function<bool()> over) {
    while (!over() && (doubts_.verifying() || unseen_.has_waiting())) {
        Doubts::Settled settled = [this](LocalImage image, bool to_be_flushed) { return settle(std::move(image), to_be_flushed); };
        co_await doubts_.verify(std::move(settled), over);
        if (over() || (!doubts_.verifying() && !unseen_.has_waiting())) break;
        co_await world_.clock.sleep(try_again);
        co_await unseen_.give_waiting();
    }
    if (!unseen_.has_waiting()) jobs_.forget_found();
}

}  // namespace cairn
