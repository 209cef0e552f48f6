// Elect, first half: every node says that its images of a version are sealed; the coordinator (node 0) gathers all sizes. The election
// itself is a pure function of them: elect() and make_plan() in model/plan (fgcs24, Algorithm 1; the paper's all-gather within a group is
// one message per node here, answered with the plan).
//
// Nobody waits for ever: a version that some rank does not seal within version_wait is abandoned by name; its images stay in scratch, and
// when the missing ones turn up after all (a daemon that was started again), the flush begins anew. Once a newer version is committed
// scratch lets them go; the coordinator then gives the version up for all nodes. So it does with one that ranks went past: a newer one is
// committed, and their nodes say that they lack this one; and with one that nobody has said for version_wait that he holds.
#include <algorithm>

#include "base/trace.hpp"
#include "catalog/catalog.hpp"
#include "engine/internal.hpp"
#include "format/roster.hpp"

namespace cairn {

using namespace engine;

namespace {
// Of this node.
std::string unsealed_ranks(const Flight& flight) {
    std::string text;
    for (const Rank rank : flight.job->roster->members[flight.job->self].ranks)
        if (!flight.images.count(rank)) text += (text.empty() ? "" : " ") + std::to_string(rank);
    return text;
}

// Its ranks did not seal this version and sealed a newer one, which is committed: it says so, for as long as a daemon that was started again there might need to
// find out otherwise, and never said that it had sealed it. One that is away or cut off says nothing.
bool went_past(const Flight& flight, NodeIndex node, Nanos now, Nanos peer_wait) {
    const Nanos since = std::max(flight.job->committed_at, flight.since) + peer_wait;
    if (flight.once_sealed.count(node) != 0) return false;
    if (node == flight.job->self) return !flight.all_local_sealed() && now > since;
    const auto lacking = flight.lacking.find(node);
    return lacking != flight.lacking.end() && lacking->second.second > std::max(since, lacking->second.first + peer_wait);
}

// Silent for as long as a version may take the coordinator is gone, or has forgotten the job: where a newer version is committed, scratch need not wait for it
// any more.
std::optional<Status> silence_to_tell(const Flight& flight, Nanos silent, const FlushSettings& settings) {
    const Status& told = flight.state.failure;
    const std::string coordinator = version_text(flight.key) + ": the coordinator, " + flight.job->node_name(0) + ", can not be reached";
    if (silent > settings.version_wait && told.code() != Code::deadline)
        return Status(Code::deadline, coordinator + " for " + std::to_string(settings.version_wait / second) +
                                          " s (deadlines.version_ms): abandoned; what is sealed stays in scratch until a newer version is committed");
    if (silent > settings.peer_wait && told.ok()) return Status(Code::unavailable, coordinator + "; what is sealed stays in scratch and is retried");
    return std::nullopt;
}

// Of a wait that ended so late: a daemon that stands still (SIGSTOP, a batch system) hears nobody meanwhile.
Nanos stood_still(Nanos late, const FlushSettings& settings) { return late > settings.heartbeat ? late : 0; }

// Beside the job's roster. Where none is, the one of the open stays.
Task<Result<Address>> address_on_record(World& world, std::string path, Id128 incarnation, NodeIndex node, Nanos io_wait) {
    Result<Bytes> bytes = co_await read_file(world.storage, path, 4096, world.clock.in(io_wait));
    if (!bytes.ok()) co_return std::move(bytes).status();
    Result<NodeRecord> record = decode_node_record(*bytes);
    if (!record.ok()) co_return std::move(record).status().within(path);
    if (record->incarnation != incarnation || record->node != node) co_return corrupt(path + ": of another job or node");
    co_return record->address;
}
}  // namespace

// A node's side: from the first sealed image until the coordinator ends the version.
Task<void> Node::Impl::announce(FlightPtr flight) {
    Job& job = *flight->job;
    const Nanos give_up = flight->since + settings.version_wait;
    while (!flight->all_local_sealed() && !flight->state.final) {
        if (world.clock.now() >= give_up && flight->state.failure.code() != Code::deadline) {
            // Images of one that was committed may have left this scratch in part, before the daemon that knew it ended.
            co_await learn_alone(flight);
            if (flight->all_local_sealed() || flight->state.final) break;
            fail(*flight, Status(Code::deadline, version_text(flight->key) + ": abandoned: of " + job.node_name(job.self) +
                                                     " these ranks did not seal it in time: " + unsealed_ranks(*flight)));
            update(*flight);
        }
        const bool told = flight->state.failure.code() == Code::deadline;
        co_await flight->news.wait(told ? never : give_up);
    }
    Nanos pause = settings.heartbeat;
    std::uint32_t asked = 0;
    flight->coordinator_heard = world.clock.now();
    while (!flight->state.final && !flight->images.empty()) {
        message::Sealed sealed;
        for (const auto& [rank, held] : flight->images) {
            sealed.images.push_back(held.image.header.image);
            sealed.block_bytes = held.image.header.block_bytes;
        }
        send(*flight, 0, std::move(sealed));
        const Nanos silent = world.clock.now() - flight->coordinator_heard;
        if (std::optional<Status> failure = silence_to_tell(*flight, silent, settings)) {
            fail(*flight, std::move(*failure));
            update(*flight);
        }
        // Beside the asking: a file system that is slow must not make the coordinator look silent.
        if (silent > 2 * settings.heartbeat && ++asked % 4 == 1) {
            gate.spawn(read_address(flight, 0));
            gate.spawn(learn_alone(flight));
        }
        // Once heard, the coordinator speaks up by itself; asking on is only for lost messages.
        pause = std::min(pause * 2, std::max(settings.heartbeat, settings.peer_wait / 4));
        const Nanos next = world.clock.in(pause);
        while (!flight->state.final && world.clock.now() < next) co_await flight->news.wait(next);
        flight->coordinator_heard = std::min(flight->coordinator_heard + stood_still(world.clock.now() - next, settings), world.clock.now());
    }
}

// A daemon that was started again has another address, and publishes it.
Task<void> Node::Impl::read_address(FlightPtr flight, NodeIndex node) {
    const Result<Address> address = co_await address_on_record(world, layout.job_node(flight->key.incarnation, node), flight->key.incarnation, node, settings.peer_wait);
    if (address.ok()) flight->job->addresses.set(node, *address);
}

// One that stood still for long may have a successor, which told where it is before it took anything from scratch: what this one lacks that one may hold,
// and hears of it from the others.
Task<Status> Node::Impl::check_still_serves(FlightPtr flight) {
    const NodeIndex self = flight->job->self;
    const Result<Address> address = co_await address_on_record(world, layout.job_node(flight->key.incarnation, self), flight->key.incarnation, self, settings.peer_wait);
    if (address.code() == Code::not_found || address.code() == Code::corrupt) co_return Status();  // it names no other
    if (!address.ok()) co_return address.status();
    if (*address != world.network.self()) co_return unavailable("another daemon serves " + flight->job->node_name(self) + " now");
    co_return Status();
}

// What was decided stands in the file system, whether or not the coordinator that published it lives to say so: one that dies then is not
// started again where no rank of its node needs it, or finds nothing left to do.
Task<void> Node::Impl::learn_alone(FlightPtr flight) {
    Result<Manifest> manifest = co_await read_manifest(world, layout, flight->key, world.clock.in(settings.io_wait));
    if (!manifest.ok()) co_return;
    const Status on_record = co_await check_record(flight);
    if (!on_record.ok()) co_return;
    // Whoever published may have died before the name was durable.
    const Status synced = co_await world.storage.fsync_directory(layout.version(flight->key), world.clock.in(settings.io_wait));
    if (!synced.ok()) co_return;
    if (manifest->abandoned) end(*flight, {Code::superseded, version_text(flight->key) + ": was given up", true});
    else end(*flight, {Code::ok, "", true});
}

// ---- coordinator ----

void Node::Impl::on_sealed(FlightPtr flight, NodeIndex from, message::Sealed sealed) {
    if (flight->job->self != 0 || !flight->job->has_ranks(from)) return;
    if (flight->ended && flight->ended->final) { send(*flight, from, *flight->ended); return; }
    bool news = !flight->sealed.count(from);
    flight->sealed[from] = std::move(sealed);
    flight->once_sealed.insert(from);
    flight->lacking.erase(from);
    flight->sealed_heard = world.clock.now();
    if (flight->contest && !flight->contest->restarted && flight->job->addresses.of(from) != flight->contest->addresses.of(from)) {
        flight->contest->restarted = from;
        news = true;
    }
    if (!flight->coordinating) {
        flight->coordinating = true;
        gate.spawn(coordinate(flight));
    }
    if (news) flight->news.notify_all();
    if (flight->ended) { send(*flight, from, *flight->ended); return; }
    message::Noted noted{flight->first_missing()};
    send(*flight, from, std::move(noted));
}

void Node::Impl::on_noted(FlightPtr flight, NodeIndex from, const message::Noted& noted) {
    Job& job = *flight->job;
    if (from != 0) {  // the answer of an I/O node, or of one that lacks images
        if (job.self == 0 && job.has_ranks(from)) {
            const Nanos now = world.clock.now();
            flight->lacking.try_emplace(from, now, now).first->second.second = now;
        } else if (job.self == 0) {
            job.absent.erase(from);
            flight->news.notify_all();
        }
        return;
    }
    const bool lacks = job.has_ranks(job.self) && !flight->all_local_sealed() && flight->state.level != Level::committed;
    const bool certain = lacks && !has_unseen_images(flight->key.incarnation);
    if (job.self != 0 && (certain || !job.has_ranks(job.self))) send(*flight, 0, message::Noted());
    if (flight->state.final || lacks) return;  // what it told its own waiters stands
    flight->unsealed = noted.missing.empty() ? std::nullopt : std::optional(noted.missing.front());
    const bool everywhere = noted.missing.empty() && flight->all_local_sealed();
    if (everywhere && flight->state.level < Level::sealed) flight->state.level = Level::sealed;
    flight->state.failure = Status();  // it is being tried (again)
    update(*flight);
}

std::string Node::Impl::missing_text(const Flight& flight) const {
    std::string text;
    for (const NodeIndex node : flight.missing()) text += (text.empty() ? "" : ", ") + flight.job->node_name(node);
    return text;
}

// Nodes that were not heard of may not know where this coordinator is now: every message carries its address.
void Node::Impl::tell_missing(Flight& flight) {
    const message::Noted here{flight.first_missing()};
    for (const NodeIndex node : flight.missing()) send(flight, node, here);
}

// Why a version will not become complete; nothing while it may.
std::optional<std::string> Node::Impl::why_never(const Flight& flight) const {
    if (flight.state.final) return "its images left scratch before it was committed";
    const std::vector<NodeIndex> missing = flight.missing();
    if (missing.empty()) return std::nullopt;
    const Job& job = *flight.job;
    const Nanos now = world.clock.now();
    const bool has_unseen = has_unseen_images(flight.key.incarnation);
    const auto went_past_it = [&](NodeIndex node) { return !(node == job.self && has_unseen) && went_past(flight, node, now, settings.peer_wait); };
    if (job.committed > flight.key.version && std::all_of(missing.begin(), missing.end(), went_past_it))
        return "given up: not sealed by " + missing_text(flight) + ", and version " + std::to_string(job.committed) + " was committed meanwhile";
    const Nanos forgotten = std::max(settings.version_wait, settings.peer_wait);
    if (now - flight.sealed_heard > forgotten) return "given up: not sealed by " + missing_text(flight) + ", and nobody else holds it any more";
    return std::nullopt;
}

// True when every node has said that it sealed the version; false when it was cancelled meanwhile, or can not be committed any more.
Task<bool> Node::Impl::gather(FlightPtr flight) {
    const TraceSpan span(world.clock, "coordinator", "gather");
    const Nanos begun = world.clock.now(), give_up = world.clock.in(settings.version_wait);
    call_io_nodes(flight);
    while (!flight->complete()) {
        if (flight->cancel || why_never(*flight)) co_return false;
        if (world.clock.now() >= give_up && (!flight->ended || flight->ended->code != Code::deadline)) {
            message::Ended ended{Code::deadline,
                                 version_text(flight->key) + ": abandoned: not sealed in time, or lost, on " + missing_text(*flight), false};
            tell_all(*flight, ended);
        }
        if (!flight->ended || flight->job->committed > flight->key.version) tell_missing(*flight);
        const Nanos next = world.clock.in(settings.peer_wait / 2);
        while (!flight->complete() && !flight->cancel && !flight->state.final && world.clock.now() < next) co_await flight->news.wait(next);
        // A job that is suspended as a whole (SIGSTOP, a batch system) says nothing either, and holds all that it held.
        flight->sealed_heard = std::min(flight->sealed_heard + stood_still(world.clock.now() - next, settings), world.clock.now());
    }
    co_await hear_io_nodes(flight, begun);
    flight->ended.reset();
    message::Noted all;
    for (NodeIndex node = 0; node < flight->job->nodes(); ++node)
        if (flight->job->has_ranks(node)) send(*flight, node, all);
    co_return !flight->cancel && !flight->state.final;
}

}  // namespace cairn
