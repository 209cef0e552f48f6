// Node: what its users see of the router.
#include "engine/router/node.hpp"

#include <algorithm>

#include "base/units.hpp"
#include "format/check.hpp"
#include "format/limits.hpp"
#include "engine/router/router.hpp"

namespace cairn {

using namespace engine;

Node::Node(World world, Layout layout, FlushSettings settings) : impl_(std::make_unique<Impl>(world, std::move(layout), settings)) {}
Node::~Node() = default;

Status Node::join(std::shared_ptr<const Roster> roster, NodeIndex self) {
    if (self >= roster->members.size())
        return invalid_argument("node " + std::to_string(self) + " is not in the roster of " + roster->name + " (" +
                                std::to_string(roster->members.size()) + " nodes)");
    auto& job = impl_->jobs[roster->incarnation];
    if (!job) {
        job = std::make_shared<Job>(impl_->common.world, impl_->common.layout.persistent, std::move(roster), self);
        return {};
    }
    return job->renew(*roster, self);
}

void Node::serve_as_io_node(std::string name) { impl_->io_node.serve_as(std::move(name)); }

void Node::set_targets(std::shared_ptr<const PlacementTargets> targets) { impl_->common.targets = std::move(targets); }
void Node::set_describers(Describers describers) { impl_->common.describers = std::move(describers); }
const PlacementTargets& Node::targets() const { return *impl_->common.targets; }

void Node::set_unseen_images(std::function<bool(Id128)> has_unseen) { impl_->common.has_unseen_images = std::move(has_unseen); }

bool Node::knows(Id128 incarnation) const { return impl_->jobs.count(incarnation) != 0; }

void Node::begin_image(const VersionKey& key, const BegunImage& image) {
    const auto known = impl_->jobs.find(key.incarnation);
    if (known == impl_->jobs.end() || known->second->roster->name != key.name || impl_->common.stopping) return;
    Job& job = *known->second;
    const Flight* const flight = impl_->find(key);
    if (flight && (flight->state.final || flight->images.count(image.rank))) return;
    const auto& ranks = job.own_ranks();
    if (std::find(ranks.begin(), ranks.end(), image.rank) == ranks.end() || image.bytes > bytes_max || !check::block_bytes_valid(image.block_bytes)) return;
    job.begun[key.version][image.rank] = image;
    impl_->follower.on_begun(job, key, flight ? flight->images : HeldImages());
}

void Node::leave_image(const VersionKey& key, Rank rank) {
    const auto known = impl_->jobs.find(key.incarnation);
    if (known == impl_->jobs.end()) return;
    auto& begun = known->second->begun;
    const auto of_version = begun.find(key.version);
    if (of_version == begun.end()) return;
    of_version->second.erase(rank);
    if (of_version->second.empty()) begun.erase(of_version);
}

std::size_t Node::filling() const {
    std::size_t count = 0;
    for (const auto& [incarnation, job] : impl_->jobs)
        for (const auto& [version, images] : job->begun) count += images.size();
    return count;
}

Status Node::add_image(LocalImage image) {
    const ImageHeader& header = image.header;
    const FlightPtr flight = impl_->flight_of(header.key);
    const std::string what = image_text(header.key, header.rank);
    if (!flight) return not_found(what + ": its job is not known on this node");
    if (impl_->common.stopping) return unavailable(what + ": this daemon is stopping; the next one takes the image from scratch");
    if (image.filled_bytes() != header.image.bytes)
        return invalid_argument(what + ": " + std::to_string(image.filled_bytes()) + " of its " + std::to_string(header.image.bytes) + " bytes are there: seal it when all are");
    const auto& ranks = flight->job->own_ranks();
    if (std::find(ranks.begin(), ranks.end(), header.rank) == ranks.end())
        return invalid_argument(what + ": this rank is not one of " + flight->job->node_name(flight->job->self));
    if (header.block_bytes > impl_->leader.buffer_bytes())
        return invalid_argument(what + ": its blocks of " + format_bytes(header.block_bytes) +
                                " (flush.block_bytes) do not fit this daemon's buffers of " + format_bytes(impl_->leader.buffer_bytes()) +
                                " (flush.buffer_bytes when it was started, less where flush.memory_share says so): `cairn stop`, and " +
                                "the next one starts with this job's settings; or ask for smaller blocks");
    if (const auto held = flight->images.find(header.rank); held != flight->images.end()) {
        if (held->second.image.path == image.path) return {};  // said twice
        return {Code::already_exists, what + ": was captured before, although its client may not have heard so; take a higher version"};
    }
    const Rank rank = header.rank;
    flight->state.bytes += header.image.bytes;
    impl_->common.counters.captured_bytes += header.image.bytes;
    flight->images.emplace(rank, held_image(std::move(image), impl_->common.describers));
    leave_image(flight->key, rank);
    flight->state.level = std::max(flight->state.level, Level::captured);
    impl_->follower.on_image(flight);
    impl_->common.update(*flight);
    return {};
}

Status Node::drop_image(const VersionKey& key, Rank rank) {
    Flight* known = impl_->find(key);
    if (!known) return {};
    Flight& flight = *known;
    const auto image = flight.images.find(rank);
    if (image == flight.images.end()) return {};
    const bool being_flushed = !flight.state.final && flight.state.failure.ok();
    if (being_flushed || image->second.users > 0)
        return {Code::already_exists, version_text(key) + " is being flushed"};
    flight.images.erase(image);
    if (!flight.state.final) impl_->end(flight, {Code::superseded, "its images left scratch before it was committed", true});
    impl_->common.update(flight);
    return {};
}

bool Node::may_be_written(const VersionKey& key, Rank rank) const {
    const auto found = impl_->flights.find(key);
    if (found == impl_->flights.end()) return false;
    const auto image = found->second->images.find(rank);
    return image != found->second->images.end() && image->second.may_be_written;
}

VersionState Node::state(const VersionKey& key) const {
    const auto found = impl_->flights.find(key);
    if (found == impl_->flights.end()) return {};
    VersionState state = found->second->state;
    state.all_here = found->second->all_local_sealed();
    return state;
}

bool Node::is_base(const VersionKey& key) const {
    const auto job = impl_->jobs.find(key.incarnation);
    return job != impl_->jobs.end() && key.version != 0 && job->second->base == key.version;
}

std::string Node::unsealed_by(const VersionKey& key) const {
    const Flight* known = impl_->find(key);
    if (!known) return "";
    const Flight& flight = *known;
    const Job& job = *flight.job;
    if (flight.state.final || !flight.state.failure.ok() || flight.state.level >= Level::sealed || flight.images.empty()) return "";
    std::vector<Rank> here;
    for (const Rank rank : job.roster->members[job.self].ranks)
        if (!flight.images.count(rank)) here.push_back(rank);
    if (!here.empty()) return job.node_name(job.self, here);
    const std::optional<NodeIndex> elsewhere = impl_->follower.unsealed(flight);
    return elsewhere ? job.node_name(*elsewhere) : "";
}

std::vector<VersionKey> Node::versions() const { return impl_->order; }

const LocalImage* Node::image(const VersionKey& key, Rank rank) const {
    const auto found = impl_->flights.find(key);
    if (found == impl_->flights.end()) return nullptr;
    const auto image = found->second->images.find(rank);
    return image == found->second->images.end() ? nullptr : &image->second.image;
}

Event& Node::changed() { return impl_->common.changed; }
const NodeCounters& Node::counters() const { return impl_->common.counters; }
Pace& Node::pace() { return impl_->common.pace; }

Task<Status> Node::wait(VersionKey key, Level level, Nanos deadline, std::uint64_t failures_told) {
    Impl& impl = *impl_;
    const std::string what = version_text(key);
    for (;;) {
        const VersionState state = this->state(key);
        if (state.level >= level) co_return Status();
        if (!state.failure.ok() && (state.final || state.failures > failures_told)) co_return state.failure;
        if (state.final) co_return Status(Code::superseded, what + ": ended before it was committed");
        if (impl.common.world.clock.now() >= deadline)
            co_return deadline_passed(what + (state.level == Level::none ? ": nothing of it was sealed on this node"
                                              : state.level == Level::captured ? ": not sealed by every rank yet"
                                                                               : ": still being flushed"));
        co_await impl.common.changed.wait(deadline);
    }
}

Task<Status> Node::cancel(VersionKey key, Nanos deadline) {
    const FlightPtr flight = impl_->flight_of(key);
    if (!flight) co_return not_found(key.name + ": its job is not known on this node");
    Impl& impl = *impl_;
    while (!flight->state.final) {
        const message::Cancel cancel;
        impl.common.outbox.send(*flight, flight->job->coordinator(), cancel);
        if (impl.common.world.clock.now() >= deadline) co_return deadline_passed("the coordinator did not answer the cancellation");
        const Nanos again = std::min(deadline, impl.common.world.clock.in(impl.common.settings.heartbeat));
        // News that is not the end, our own request's among it, is no reason to ask again.
        while (!flight->state.final && impl.common.world.clock.now() < again) co_await flight->news.wait(again);
    }
    if (flight->state.level == Level::committed) co_return Status(Code::already_exists, "committed before it could be cancelled");
    co_return Status();
}

bool Node::idle() const {
    return std::all_of(impl_->flights.begin(), impl_->flights.end(), [this](const auto& entry) {
        const Flight& flight = *entry.second;
        return flight.state.final || !flight.state.failure.ok() || (flight.images.empty() && !impl_->leader.is_leading(flight));
    });
}

// Whether a daemon that is to stop since then waits for it. One whose attempt failed may commit yet, as long as all that it needs is there: what failed may be
// full, or away, for a while only. One that ranks never sealed will not; a daemon that went away has as long to come back as any that falls silent.
bool Node::is_waited_for(const Impl& impl, const VersionKey& key) {
    const Flight& flight = *impl.flights.at(key);
    if (flight.state.final || (flight.images.empty() && !impl.leader.is_leading(flight))) return false;
    if (flight.state.failure.ok()) return true;
    if (!flight.all_local_sealed()) return false;
    const bool coordinates = flight.job->coordinates();
    const bool seen_whole = coordinates ? impl.coordinator.has_all(flight) : flight.state.level >= Level::sealed;
    if (flight.state.failure.code() == Code::deadline && !seen_whole) return false;  // else an operation's own
    const Nanos heard = std::max(*impl.common.stopping, coordinates ? 0 : flight.coordinator_heard);
    return (coordinates && seen_whole) || impl.common.world.clock.now() - heard <= impl.common.settings.peer_wait;
}

Task<std::vector<VersionKey>> Node::stop(Nanos deadline) {
    Impl& impl = *impl_;
    if (!impl.common.stopping) impl.common.stopping = impl.common.world.clock.now();
    for (const auto& [key, flight] : impl.flights) flight->news.notify_all();  // what waits for its next attempt begins it now
    const auto any_waited_for = [&impl] {
        return std::any_of(impl.order.begin(), impl.order.end(), [&impl](const VersionKey& key) { return is_waited_for(impl, key); });
    };
    while (any_waited_for() && impl.common.world.clock.now() < deadline)
        co_await impl.common.changed.wait(std::min(deadline, impl.common.world.clock.in(impl.common.settings.heartbeat)));
    std::vector<VersionKey> unfinished;
    for (const VersionKey& key : impl.order) {
        const Flight& flight = *impl.flights.at(key);
        if (!flight.state.final && !flight.images.empty()) unfinished.push_back(key);
    }
    co_return unfinished;
}

std::uint64_t Node::epoch_of(Id128 incarnation) const {
    const auto job = impl_->jobs.find(incarnation);
    return job == impl_->jobs.end() ? 0 : job->second->roster->epoch;
}

bool Node::is_newest(Id128 incarnation) const {
    const auto own = impl_->jobs.find(incarnation);
    return own == impl_->jobs.end() || std::none_of(impl_->jobs.begin(), impl_->jobs.end(), [&](const auto& other) {
               return other.second->roster->name == own->second->roster->name && other.second->roster->epoch > own->second->roster->epoch;
           });
}

std::vector<Undecided> Node::undecided() const {
    std::vector<Undecided> found;
    for (const auto& [key, flight] : impl_->flights) {
        const Roster& roster = *flight->job->roster;
        if (!flight->state.final && (!flight->images.empty() || impl_->coordinator.is_coordinating(*flight))) found.push_back({key, roster.epoch, roster.parent, roster.ranks});
    }
    return found;
}

void Node::give_up(const VersionKey& key, const Status& why) {
    const auto found = impl_->flights.find(key);
    if (found == impl_->flights.end() || found->second->state.final) return;
    found->second->state.dead = true;
    impl_->end(*found->second, {why.code(), why.text(), true});
}

}  // namespace cairn
