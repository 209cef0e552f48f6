#include "engine/coordinator/gatherer.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "base/trace.hpp"
#include "catalog/io_nodes.hpp"

namespace cairn::engine {

Gatherer::Gatherer(Common& c) : CoordinatorRole(c) {}

namespace {
// Its ranks did not seal this version and sealed a newer one, which is committed: it says so, for as long as a daemon that was started again there might need to
// find out otherwise, and never said that it had sealed it. One that is away or cut off says nothing.
bool went_past(const Flight& flight, const CoordinatorSide& own, NodeIndex node, Nanos now, Nanos peer_wait) {
    const Nanos since = std::max(flight.job->committed_at, flight.since) + peer_wait;
    if (own.once_sealed.count(node) != 0) return false;
    if (node == flight.job->self) return !flight.all_local_sealed() && now > since;
    const auto lacking = own.lacking.find(node);
    return lacking != own.lacking.end() && lacking->second.second > std::max(since, lacking->second.first + peer_wait);
}
}  // namespace

// One that stood still for long may have a successor, which told where it is before it took anything from scratch: what this one lacks that one may hold,
// and hears of it from the others.
Task<Status> Gatherer::check_still_serves(FlightPtr flight) {
    const NodeIndex self = flight->job->self;
    const Result<Address> address = co_await address_on_record(common, flight, self);
    if (address.code() == Code::not_found || address.code() == Code::corrupt) co_return Status();  // it names no other
    if (!address.ok()) co_return address.status();
    if (*address != world.network.self()) co_return unavailable("another daemon serves " + flight->job->node_name(self) + " now");
    co_return Status();
}

std::string Gatherer::missing_text(const Flight& flight) const {
    std::string text;
    const auto& ahead = experience(*flight.job).ahead;
    const auto known = ahead.find(flight.key.version);
    for (const NodeIndex node : side(flight).missing(*flight.job)) {
        text += (text.empty() ? "" : ", ") + flight.job->node_name(node);
        if (known != ahead.end() && known->second.begun.count(node)) text += " (all of them have begun)";
    }
    return text;
}

// Nodes that were not heard of may not know where this coordinator is now: every message carries its address.
void Gatherer::tell_missing(Flight& flight) {
    const message::Noted here{side(flight).first_missing(*flight.job)};
    for (const NodeIndex node : side(flight).missing(*flight.job)) send(flight, node, here);
}

// Why a version will not become complete; nothing while it may.
std::optional<std::string> Gatherer::why_never(const Flight& flight) const {
    if (flight.state.final) return "its images left scratch before it was committed";
    const std::vector<NodeIndex> missing = side(flight).missing(*flight.job);
    if (missing.empty()) return std::nullopt;
    const Job& job = *flight.job;
    const Nanos now = world.clock.now();
    const bool has_unseen = common.has_unseen_images(flight.key.incarnation);
    const auto went_past_it = [&](NodeIndex node) { return !(node == job.self && has_unseen) && went_past(flight, side(flight), node, now, settings.peer_wait); };
    if (job.committed > flight.key.version && std::all_of(missing.begin(), missing.end(), went_past_it))
        return "given up: not sealed by " + missing_text(flight) + ", and version " + std::to_string(job.committed) + " was committed meanwhile";
    const Nanos forgotten = std::max(settings.version_wait, settings.peer_wait);
    if (now - side(flight).sealed_heard > forgotten) return "given up: not sealed by " + missing_text(flight) + ", and nobody else holds it any more";
    return std::nullopt;
}

void Gatherer::tell_all(Flight& flight, const message::Ended& ended) {
    side(flight).ended = ended;
    for (NodeIndex node = 0; node < flight.job->nodes(); ++node) send(flight, node, ended);
}

void Gatherer::on_noted(Flight& flight, NodeIndex from) {
    Job& job = *flight.job;
    if (!job.coordinates()) return;
    if (job.has_ranks(from)) {
        const Nanos now = world.clock.now();
        side(flight).lacking.try_emplace(from, now, now).first->second.second = now;
        return;
    }
    experience(job).absent.erase(from);
    flight.news.notify_all();
}

// True when all nodes' images are there, or are again within peer_wait.
Task<bool> Gatherer::wait_for_the_lost(FlightPtr flight) {
    CoordinatorSide& own = side(*flight);
    const Nanos give_up = world.clock.in(settings.peer_wait);
    while (!own.complete(*flight->job) && !own.cancel && !flight->state.final && world.clock.now() < give_up) {
        tell_missing(*flight);
        const Nanos next = std::min(give_up, world.clock.in(settings.heartbeat));
        while (!own.complete(*flight->job) && !own.cancel && !flight->state.final && world.clock.now() < next) co_await flight->news.wait(next);
    }
    co_return own.complete(*flight->job);
}

// True when every node has said that it sealed the version; false when it was cancelled meanwhile, or can not be committed any more.
Task<bool> Gatherer::gather(FlightPtr flight) {
    CoordinatorSide& own = side(*flight);
    const TraceSpan span(world.clock, "coordinator", "gather");
    const Nanos begun = world.clock.now(), give_up = world.clock.in(settings.version_wait);
    call_io_nodes(flight);
    while (!own.complete(*flight->job)) {
        if (own.cancel || why_never(*flight)) co_return false;
        if (world.clock.now() >= give_up && (!own.ended || own.ended->code != Code::deadline)) {
            message::Ended ended{Code::deadline,
                                 version_text(flight->key) + ": abandoned: not sealed in time, or lost, on " + missing_text(*flight), false, 0};
            tell_all(*flight, ended);
        }
        if (!own.ended || flight->job->committed > flight->key.version) tell_missing(*flight);
        const Nanos next = world.clock.in(settings.peer_wait / 2);
        while (!own.complete(*flight->job) && !own.cancel && !flight->state.final && world.clock.now() < next) co_await flight->news.wait(next);
        // A job that is suspended as a whole (SIGSTOP, a batch system) says nothing either, and holds all that it held.
        own.sealed_heard = std::min(own.sealed_heard + stood_still(world.clock.now() - next, settings), world.clock.now());
    }
    co_await hear_io_nodes(flight, begun);
    own.ended.reset();
    message::Noted all;
    for (NodeIndex node = 0; node < flight->job->nodes(); ++node)
        if (flight->job->has_ranks(node)) send(*flight, node, all);
    co_return !own.cancel && !flight->state.final;
}

void Gatherer::call_io_nodes(FlightPtr flight) {
    const message::Noted call{side(*flight).first_missing(*flight->job)};
    for (const NodeIndex node : flight->job->io_nodes()) {
        send(*flight, node, call);
        if (experience(*flight->job).absent.count(node)) gate.spawn(read_io_address(flight, node));  // it may be elsewhere now
    }
}

Task<void> Gatherer::read_io_address(FlightPtr flight, NodeIndex node) {
    const std::string name = flight->job->roster->members[node].node;
    Result<IoNodeRecord> record = co_await read_io_node(world, layout, name, world.clock.in(settings.peer_wait));
    if (!record.ok() || record->address == flight->job->addresses.of(node)) co_return;
    flight->job->addresses.set(node, record->address);
    send(*flight, node, message::Noted{side(*flight).first_missing(*flight->job)});
}

// Who did not answer since then, and is not known to be absent, has one heartbeat more.
Task<void> Gatherer::hear_io_nodes(FlightPtr flight, Nanos since) {
    Job& job = *flight->job;
    const auto silent = [&] {
        std::vector<NodeIndex> found;
        for (const NodeIndex node : job.io_nodes())
            if (job.last_heard(node) < since && !experience(job).absent.count(node)) found.push_back(node);
        return found;
    };
    const Nanos give_up = world.clock.in(settings.heartbeat);
    while (world.clock.now() < give_up && !side(*flight).cancel && !flight->state.final) {
        const std::vector<NodeIndex> called = silent();
        if (called.empty()) co_return;
        for (const NodeIndex node : called) send(*flight, node, message::Noted{side(*flight).first_missing(*flight->job)});
        const Nanos next = std::min(give_up, world.clock.in(settings.heartbeat / 4));
        while (world.clock.now() < next && !silent().empty()) co_await flight->news.wait(next);
    }
    for (const NodeIndex node : silent()) {
        experience(job).absent.insert(node);
        log_warning("io-node-absent", {{"name", job.roster->name}, {"node", job.roster->members[node].node}});
    }
}

}  // namespace cairn::engine
