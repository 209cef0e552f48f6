// What comes in finds its flight, and each message its role.
#include "engine/router/router.hpp"

#include <utility>

#include "base/log.hpp"
#include "format/frame.hpp"
#include "format/limits.hpp"
#include "format/message.hpp"

namespace cairn {

using namespace engine;

Node::Impl::Impl(World w, Layout l, FlushSettings s)
    : common(w, std::move(l), s, gate), coordinator(common), leader(common),
      follower(common, [this](Flight& flight) { return leader.watch_send(flight); }), io_node(common, *this), gate(common.world.clock) {
    common.end = [this](Flight& flight, const message::Ended& ended) { end(flight, ended); };
    gate.spawn(dispatch_network());
    gate.spawn(dispatch_local());
}

Node::Impl::~Impl() {
    for (const auto& [key, flight] : flights) leader.let_go(*flight);  // a flight and the attempt that it leads hold each other
}

FlightPtr Node::Impl::flight_of(const VersionKey& key) {
    const auto job = jobs.find(key.incarnation);
    if (job == jobs.end() || job->second->roster->name != key.name) return nullptr;
    if (const auto known = flights.find(key); known != flights.end()) return known->second;
    const FlightPtr flight = std::make_shared<Flight>(common.world, key, job->second);  // held here, so it is not the one that is forgotten
    flights.emplace(key, flight);
    order.push_back(key);
    forget_old(key.incarnation);
    return flight;
}

Flight* Node::Impl::find(const VersionKey& key) const {
    const auto found = flights.find(key);
    return found == flights.end() ? nullptr : found->second.get();
}

Task<void> Node::Impl::dispatch_network() {
    for (;;) {
        Result<Bytes> bytes = co_await common.world.network.inbox().receive();
        if (!bytes.ok()) co_return;
        hear(*bytes);
    }
}

// What is not ours is dropped: datagrams. So is what another version of the format says, told once: its words may mean something else, and nothing that we
// answer would be understood. Of a newer one not even the sender is known; its daemon can read us, and names this node.
void Node::Impl::hear(ByteView bytes) {
    Result<message::Message> message = decode_message(bytes);
    if (message.code() == Code::unsupported && !std::exchange(newer_told, true))
        log_warning("newer-daemon-not-understood", {{"why", message.status()}, {"do", "run the newest release on all nodes"}});
    if (!message.ok()) return;
    const std::uint32_t version = frame_version(bytes);
    if (version == format_version) handle(std::move(message).value());
    else refuse_older(*message, version);
}

void Node::Impl::refuse_older(const message::Message& message, std::uint32_t version) {
    Job* const job = job_of(message);
    if (!job) return;
    const auto [known, is_new] = job->older.try_emplace(message.from, version);
    known->second = version;
    if (!is_new) return;
    log_warning("older-daemon-not-heard", {{"name", job->roster->name},
                                           {"incarnation", message.key.incarnation},
                                           {"node", job->roster->members[message.from].node},
                                           {"format", version},
                                           {"format_here", format_version},
                                           {"format_of_job", job->roster->format},
                                           {"do", "update Cairn there and end that daemon (cairn stop)"}});
}

Job* Node::Impl::job_of(const message::Message& message) const {
    const auto found = jobs.find(message.key.incarnation);
    if (found == jobs.end()) return nullptr;
    Job& job = *found->second;
    return message.secret == job.roster->secret && message.from < job.nodes() && message.key.name == job.roster->name ? &job : nullptr;
}

Task<void> Node::Impl::dispatch_local() {
    for (;;) {
        Result<message::Message> message = co_await common.outbox.to_self().receive();
        if (!message.ok()) co_return;
        handle(std::move(message).value());
    }
}

namespace {

template <class Body, class Variant>
constexpr bool is_one_of = false;
template <class Body, class... Bodies>
constexpr bool is_one_of<Body, std::variant<Bodies...>> = (std::is_same_v<Body, Bodies> || ...);

}  // namespace

template <class Body>
void Node::Impl::route(const message::Message& message, const JobPtr& job, Body& body) {
    const NodeIndex from = message.from;
    if constexpr (is_one_of<Body, message::ForCoordinatorAhead>) {
        coordinator.hear_ahead(job, message.key.version, from, std::move(body));
    } else {
        const FlightPtr flight = flight_of(message.key);
        if (from == job->coordinator()) flight->coordinator_heard = common.world.clock.now();
        hand(flight, from, message.address, body);
    }
}

// Noted is for the node when the coordinator says it, and for the coordinator when a node does.
template <class Body>
void Node::Impl::hand(const FlightPtr& flight, NodeIndex from, const Address& address, Body& body) {
    if constexpr (std::is_same_v<Body, message::Ended>) {
        end(*flight, body);
    } else if constexpr (std::is_same_v<Body, message::Noted>) {
        if (from == flight->job->coordinator()) follower.hear(flight, from, address, std::move(body));
        else coordinator.hear(flight, from, std::move(body));
    } else if constexpr (is_one_of<Body, message::ForCoordinator>) {
        coordinator.hear(flight, from, std::move(body));
    } else if constexpr (is_one_of<Body, message::ForLeader>) {
        leader.hear(flight, from, std::move(body));
    } else {
        follower.hear(flight, from, address, std::move(body));
    }
}

void Node::Impl::handle(message::Message message) {
    if (!jobs.count(message.key.incarnation)) return io_node.on_stranger(std::move(message));
    if (!job_of(message)) return;
    const JobPtr job = jobs.at(message.key.incarnation);
    job->older.erase(message.from);
    job->heard[message.from] = common.world.clock.now();
    job->addresses.set(message.from, message.address);
    std::visit([&](auto& body) { route(message, job, body); }, message.body);
}

// The coordinator's word on a version. Not final: its failure is told to waiters, and the flush is tried again.
void Node::Impl::end(Flight& flight, const message::Ended& ended) {
    if (flight.state.final) return;
    const VersionKey& key = flight.key;
    if (ended.code == Code::ok) {
        flight.state.level = Level::committed;
        flight.state.failure = Status();
        ++common.counters.versions_committed;
        if (key.version > flight.job->committed) {
            flight.job->committed = key.version;
            flight.job->committed_at = common.world.clock.now();
            const auto base = flights.find({key.name, ended.base, key.incarnation});
            flight.job->base = ended.base;
            flight.job->base_flight = base == flights.end() ? nullptr : base->second;
        }
        log_info("version-committed", {{"name", key.name},
                                       {"version", key.version},
                                       {"incarnation", key.incarnation},
                                       {"node_bytes", flight.state.bytes}});
    } else {
        const Status failure(ended.code, ended.text);
        const LogLevel level = ended.code == Code::cancelled ? LogLevel::info : LogLevel::warning;
        if (ended.final || failure.to_string() != flight.state.failure.to_string())  // the word is repeated to whoever asks again
            log_event(level, ended.final ? "version-given-up" : "version-not-committed",
                      {{"name", key.name}, {"version", key.version}, {"incarnation", key.incarnation}, {"why", failure}});
        flight.fail(failure);
    }
    flight.state.final = ended.final;
    if (ended.final) {
        leader.on_end(flight);
        follower.on_end(flight);
    }
    common.pace.wake();  // nobody waits to serve it any more
    common.update(flight);
}

}  // namespace cairn
