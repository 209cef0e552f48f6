// Node: what comes in (jobs, sealed images, messages) finds its flight; what goes out is signed with the job's secret.
#include "engine/node.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "base/units.hpp"
#include "engine/internal.hpp"
#include "format/message.hpp"

namespace cairn {

namespace engine {

const Address& AddressBook::of(NodeIndex node) const {
    const auto found = moved.find(node);
    return found == moved.end() ? roster->members[node].address : found->second;
}

void AddressBook::set(NodeIndex node, Address address) {
    if (address == roster->members[node].address) moved.erase(node);
    else moved[node] = std::move(address);
}

Job::Job(World& world, std::shared_ptr<const Roster> r, NodeIndex s)
    : roster(std::move(r)), self(s), addresses{roster, {}}, began(world.clock.now()), turn(world.clock, 1), placement_turn(roster->incarnation.low) {
    turn.try_send(0);
}

const std::vector<NodeIndex>& Job::io_nodes() const {
    if (io_nodes_) return *io_nodes_;
    io_nodes_.emplace();
    for (NodeIndex node = 0; node < nodes(); ++node)
        if (!has_ranks(node)) io_nodes_->push_back(node);
    return *io_nodes_;
}

Nanos Job::last_heard_of_any() const {
    Nanos last = began;
    for (const auto& [node, when] : heard) last = std::max(last, when);
    return last;
}

Nanos Job::last_heard(NodeIndex node) const {
    const auto found = heard.find(node);
    return found == heard.end() ? began : found->second;
}

std::string Job::node_name(NodeIndex node) const { return node_name(node, roster->members[node].ranks); }

std::string Job::node_name(NodeIndex node, const std::vector<Rank>& ranks) const {
    const Member& member = roster->members[node];
    std::string text = "node " + std::to_string(node) + " (" + member.node + (member.ranks.empty() ? ", an I/O node" : "");
    if (!ranks.empty()) {
        text += ranks.size() == 1 ? ", rank " : ", ranks ";
        for (std::size_t i = 0; i < ranks.size(); ++i) text += (i ? " " : "") + std::to_string(ranks[i]);
    }
    return text + ")";
}

Flight::Flight(World& world, VersionKey k, std::shared_ptr<Job> j)
    : key(std::move(k)), job(std::move(j)), news(world.clock), since(world.clock.now()) {
    coordinator_heard = since;
    sealed_heard = since;
}

namespace {
const Share& share_of(const PartPlan& plan, NodeIndex leader) {
    const auto found = std::find_if(plan.shares.begin(), plan.shares.end(), [&](const Share& share) { return share.leader == leader; });
    return found == plan.shares.end() ? plan.shares.front() : *found;
}
}  // namespace

PartState::PartState(World& world, const PartPlan& p, NodeIndex self)
    : plan(p), share(share_of(p, self)), first(p.first_leader() == self), gate(world.clock) {
    ranges.push_back({share.offset, share.offset + share.bytes});
}

Attempt::Attempt(World& world, FlightPtr f, message::Lead l) : flight(std::move(f)), lead(std::move(l)), work(world.clock) {
    started = world.clock.now();
    for (const auto& entry : lead.addresses) addresses[entry.node] = entry.address;
    for (ImageInfo& image : lead.images) images.emplace(image.rank, std::move(image));
    lead.images.clear();
    for (const PartPlan& plan : lead.parts) parts.push_back(std::make_unique<PartState>(world, plan, flight->job->self));
}

void Attempt::begin_send(Nanos now) {
    card.sending(static_cast<double>(now) / second, +1);
    portions.sending(written_bytes);
}

bool Attempt::end_send(Nanos now, std::uint64_t bytes) {
    card.sending(static_cast<double>(now) / second, -1);
    card.sent(bytes);
    return portions.sent(bytes, written_bytes) && !over();
}

void Attempt::fail(Status status, std::optional<NodeIndex> node) {
    if (over()) return;
    failure = std::move(status);
    lost = node;
    work.notify_all();
    for (auto& [tag, credit] : credits) credit->answered.notify_all();
    if (pace) pace->wake();
}

std::vector<NodeIndex> Flight::missing() const {
    std::vector<NodeIndex> found;
    for (NodeIndex node = 0; node < job->nodes(); ++node)
        if (job->has_ranks(node) && !sealed.count(node)) found.push_back(node);
    return found;
}

std::vector<NodeIndex> Flight::first_missing() {
    NodeIndex& node = none_missing_below;
    while (node < job->nodes() && (!job->has_ranks(node) || sealed.count(node))) ++node;
    if (node == job->nodes()) return {};
    return {node};
}

void Flight::lose(NodeIndex node) {
    sealed.erase(node);
    none_missing_below = std::min(none_missing_below, node);
}

bool Flight::leads(Id128 attempt_id) const { return leading && leading->lead.attempt_id == attempt_id; }

Nanos Attempt::busy_span() const {
    const Nanos wrote = std::max(last_write, started);
    Nanos synced = 0;
    for (const auto& part : parts) synced = std::max(synced, part->sync_ended - std::max(part->sync_begun, wrote));
    return wrote - started + synced;
}

void Attempt::fail_part(Status status, const PartState& part) {
    if (over()) return;
    if (!part.blameless) failed_part = part.plan.part;
    fail(std::move(status).within(part.path));
}

PartState* Attempt::part(std::uint32_t number) const {
    for (const auto& part : parts)
        if (part->plan.part == number) return part.get();
    return nullptr;
}

std::size_t Attempt::idle_parts() const {
    return static_cast<std::size_t>(std::count_if(parts.begin(), parts.end(), [](const auto& part) { return part->unstarted_bytes() == 0; }));
}

}  // namespace engine

using namespace engine;

Node::Impl::Impl(World w, Layout l, FlushSettings s)
    : world(w), layout(std::move(l)), settings(s), ring(world.clock, world.storage, s.buffers, s.buffer_bytes), pace(world.clock, s.io_wait / 2), changed(world.clock),
      attempts_seen(4096), local(world.clock, 4096), next_tag(world.random.next() & 0xFFFFFFFFFFFFull), gate(world.clock) {}

Node::Node(World world, Layout layout, FlushSettings settings)
    : impl_(std::make_unique<Impl>(world, std::move(layout), settings)) {
    impl_->gate.spawn(impl_->dispatch_network());
    impl_->gate.spawn(impl_->dispatch_local());
}
Node::~Node() {
    // A flight and the attempt it leads hold each other.
    for (const auto& [key, flight] : impl_->flights) flight->leading.reset();
}

Status Node::join(std::shared_ptr<const Roster> roster, NodeIndex self) {
    if (self >= roster->members.size())
        return invalid_argument("node " + std::to_string(self) + " is not in the roster of " + roster->name + " (" +
                                std::to_string(roster->members.size()) + " nodes)");
    auto& job = impl_->jobs[roster->incarnation];
    if (!job) {
        job = std::make_shared<Job>(impl_->world, std::move(roster), self);
        return {};
    }
    if (job->self != self || job->roster->members.size() != roster->members.size())
        return invalid_argument("another roster is known for this incarnation of " + roster->name);
    if (*roster == *job->roster) return {};
    // Said again by a rank that lost its connection it is what was known at the open; what was heard since is newer.
    Roster renewed = *job->roster;
    for (NodeIndex node = 0; node < job->nodes(); ++node) {
        Address& said_before = renewed.members[node].address;
        if (roster->members[node].address == said_before) continue;
        said_before = roster->members[node].address;
        job->addresses.moved.erase(node);
    }
    renewed.parent = roster->parent;
    job->roster = job->addresses.roster = std::make_shared<const Roster>(std::move(renewed));
    return {};
}

void Node::set_targets(std::shared_ptr<const PlacementTargets> targets) { impl_->targets = std::move(targets); }
const PlacementTargets& Node::targets() const { return *impl_->targets; }

void Node::set_unseen_images(std::function<bool(Id128)> has_unseen) { impl_->has_unseen_images = std::move(has_unseen); }

bool Node::knows(Id128 incarnation) const { return impl_->jobs.count(incarnation) != 0; }

FlightPtr Node::Impl::flight_of(const VersionKey& key) {
    const auto job = jobs.find(key.incarnation);
    if (job == jobs.end() || job->second->roster->name != key.name) return nullptr;
    if (const auto known = flights.find(key); known != flights.end()) return known->second;
    const FlightPtr flight = std::make_shared<Flight>(world, key, job->second);  // held here, so it is not the one that is forgotten
    flights.emplace(key, flight);
    order.push_back(key);
    forget_old(key.incarnation);
    return flight;
}

Status Node::add_image(LocalImage image) {
    const ImageHeader& header = image.header;
    const FlightPtr flight = impl_->flight_of(header.key);
    const std::string what = header.key.name + " version " + std::to_string(header.key.version) + " rank " + std::to_string(header.rank);
    if (!flight) return not_found(what + ": its job is not known on this node");
    if (impl_->stopping) return unavailable(what + ": this daemon is stopping; the next one takes the image from scratch");
    const auto& ranks = flight->job->roster->members[flight->job->self].ranks;
    if (std::find(ranks.begin(), ranks.end(), header.rank) == ranks.end())
        return invalid_argument(what + ": this rank is not one of " + flight->job->node_name(flight->job->self));
    if (header.block_bytes > impl_->ring.buffer_bytes())
        return invalid_argument(what + ": its blocks of " + format_bytes(header.block_bytes) +
                                " (flush.block_bytes) do not fit this daemon's buffers of " + format_bytes(impl_->ring.buffer_bytes()) +
                                " (flush.buffer_bytes when it was started, less where flush.memory_share says so): `cairn stop`, and " +
                                "the next one starts with this job's settings; or ask for smaller blocks");
    if (const auto held = flight->images.find(header.rank); held != flight->images.end()) {
        if (held->second.image.path == image.path) return {};  // said twice
        return {Code::already_exists, what + ": was captured before, although its client may not have heard so; take a higher version"};
    }
    HeldImage held;
    const std::size_t blocks = div_up(header.image.bytes, header.block_bytes);
    const bool made = image.checksums.size() == blocks;
    held.checksums = made ? std::move(image.checksums) : std::vector<std::uint64_t>(blocks);
    held.known.assign(blocks, made);
    held.unknown = made ? 0 : blocks;
    image.checksums.clear();
    const Rank rank = header.rank;
    flight->state.bytes += header.image.bytes;
    impl_->counters.captured_bytes += header.image.bytes;
    held.image = std::move(image);
    flight->images.emplace(rank, std::move(held));
    flight->state.level = std::max(flight->state.level, Level::captured);
    if (!flight->announcing) {
        flight->announcing = true;
        impl_->gate.spawn(impl_->announce(flight));
    }
    impl_->update(*flight);
    return {};
}

Status Node::drop_image(const VersionKey& key, Rank rank) {
    const auto found = impl_->flights.find(key);
    if (found == impl_->flights.end()) return {};
    Flight& flight = *found->second;
    const auto image = flight.images.find(rank);
    if (image == flight.images.end()) return {};
    const bool being_flushed = !flight.state.final && flight.state.failure.ok();
    if (being_flushed || image->second.users > 0)
        return {Code::already_exists, key.name + " version " + std::to_string(key.version) + " is being flushed"};
    flight.images.erase(image);
    if (!flight.state.final) impl_->end(flight, {Code::superseded, "its images left scratch before it was committed", true});
    impl_->update(flight);
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
    return found == impl_->flights.end() ? VersionState{} : found->second->state;
}

std::string Node::unsealed_by(const VersionKey& key) const {
    const auto found = impl_->flights.find(key);
    if (found == impl_->flights.end()) return "";
    const Flight& flight = *found->second;
    const Job& job = *flight.job;
    if (flight.state.final || !flight.state.failure.ok() || flight.state.level >= Level::sealed || flight.images.empty()) return "";
    std::vector<Rank> here;
    for (const Rank rank : job.roster->members[job.self].ranks)
        if (!flight.images.count(rank)) here.push_back(rank);
    if (!here.empty()) return job.node_name(job.self, here);
    return flight.unsealed ? job.node_name(*flight.unsealed) : "";
}

std::vector<VersionKey> Node::versions() const { return impl_->order; }

const LocalImage* Node::image(const VersionKey& key, Rank rank) const {
    const auto found = impl_->flights.find(key);
    if (found == impl_->flights.end()) return nullptr;
    const auto image = found->second->images.find(rank);
    return image == found->second->images.end() ? nullptr : &image->second.image;
}

Event& Node::changed() { return impl_->changed; }
const NodeCounters& Node::counters() const { return impl_->counters; }
Pace& Node::pace() { return impl_->pace; }

Task<Status> Node::wait(VersionKey key, Level level, Nanos deadline, std::uint64_t failures_told) {
    Impl& impl = *impl_;
    const std::string what = key.name + " version " + std::to_string(key.version);
    for (;;) {
        const VersionState state = this->state(key);
        if (state.level >= level) co_return Status();
        if (!state.failure.ok() && (state.final || state.failures > failures_told)) co_return state.failure;
        if (state.final) co_return Status(Code::superseded, what + ": ended before it was committed");
        if (impl.world.clock.now() >= deadline)
            co_return deadline_passed(what + (state.level == Level::none ? ": nothing of it was sealed on this node"
                                              : state.level == Level::captured ? ": not sealed by every rank yet"
                                                                               : ": still being flushed"));
        co_await impl.changed.wait(deadline);
    }
}

Task<Status> Node::cancel(VersionKey key, Nanos deadline) {
    const FlightPtr flight = impl_->flight_of(key);
    if (!flight) co_return not_found(key.name + ": its job is not known on this node");
    Impl& impl = *impl_;
    while (!flight->state.final) {
        const message::Cancel cancel;
        impl.send(*flight, 0, cancel);
        if (impl.world.clock.now() >= deadline) co_return deadline_passed("the coordinator did not answer the cancellation");
        const Nanos again = std::min(deadline, impl.world.clock.in(impl.settings.heartbeat));
        // News that is not the end, our own request's among it, is no reason to ask again.
        while (!flight->state.final && impl.world.clock.now() < again) co_await flight->news.wait(again);
    }
    if (flight->state.level == Level::committed) co_return Status(Code::already_exists, "committed before it could be cancelled");
    co_return Status();
}

bool Node::idle() const {
    return std::all_of(impl_->flights.begin(), impl_->flights.end(), [](const auto& entry) {
        const Flight& flight = *entry.second;
        return flight.state.final || !flight.state.failure.ok() || (flight.images.empty() && !flight.leading);
    });
}

// Whether a daemon that is to stop since then waits for it. One whose attempt failed may commit yet, as long as all that it needs is there: what failed may be
// full, or away, for a while only. One that ranks never sealed will not; a daemon that went away has as long to come back as any that falls silent.
static bool is_waited_for(const Flight& flight, Nanos stopping_since, Nanos now, Nanos peer_wait) {
    if (flight.state.final || (flight.images.empty() && !flight.leading)) return false;
    if (flight.state.failure.ok()) return true;
    if (!flight.all_local_sealed()) return false;
    const bool coordinates = flight.job->self == 0;
    const bool seen_whole = coordinates ? flight.complete() : flight.state.level >= Level::sealed;
    if (flight.state.failure.code() == Code::deadline && !seen_whole) return false;  // else an operation's own
    return (coordinates && seen_whole) || now - std::max(stopping_since, coordinates ? 0 : flight.coordinator_heard) <= peer_wait;
}

Task<std::vector<VersionKey>> Node::stop(Nanos deadline) {
    Impl& impl = *impl_;
    if (!impl.stopping) impl.stopping = impl.world.clock.now();
    for (const auto& [key, flight] : impl.flights) flight->news.notify_all();  // what waits for its next attempt begins it now
    const auto any_waited_for = [&impl] {
        return std::any_of(impl.flights.begin(), impl.flights.end(), [&impl](const auto& entry) {
            return is_waited_for(*entry.second, *impl.stopping, impl.world.clock.now(), impl.settings.peer_wait);
        });
    };
    while (any_waited_for() && impl.world.clock.now() < deadline)
        co_await impl.changed.wait(std::min(deadline, impl.world.clock.in(impl.settings.heartbeat)));
    std::vector<VersionKey> unfinished;
    for (const VersionKey& key : impl.order) {
        const Flight& flight = *impl.flights.at(key);
        if (!flight.state.final && !flight.images.empty()) unfinished.push_back(key);
    }
    co_return unfinished;
}

// ---- messages ----

Task<void> Node::Impl::dispatch_network() {
    for (;;) {
        Result<Bytes> bytes = co_await world.network.inbox().receive();
        if (!bytes.ok()) co_return;
        Result<message::Message> message = decode_message(*bytes);
        if (message.ok()) handle(std::move(message).value());  // what is not ours is dropped: datagrams
    }
}

Task<void> Node::Impl::dispatch_local() {
    for (;;) {
        Result<message::Message> message = co_await local.receive();
        if (!message.ok()) co_return;
        handle(std::move(message).value());
    }
}

void Node::Impl::handle(message::Message message) {
    const auto found = jobs.find(message.key.incarnation);
    if (found == jobs.end()) return on_stranger(std::move(message));
    Job& job = *found->second;
    if (message.secret != job.roster->secret || message.from >= job.nodes() || message.key.name != job.roster->name) return;
    job.heard[message.from] = world.clock.now();
    job.addresses.set(message.from, message.address);
    const FlightPtr flight = flight_of(message.key);
    const NodeIndex from = message.from;
    if (from == 0) flight->coordinator_heard = world.clock.now();
    const auto hear = [&](auto& body) { hear_body(flight, from, message.address, body); };
    std::visit(hear, message.body);
}

// Each body to its step: seal and elect, flush, move, part, ship.
template <class Body>
void Node::Impl::hear_body(const FlightPtr& flight, NodeIndex from, const Address& address, Body& body) {
    using namespace cairn::message;
    if constexpr (std::is_same_v<Body, Sealed>) on_sealed(flight, from, std::move(body));
    else if constexpr (std::is_same_v<Body, Noted>) on_noted(flight, from, body);
    else if constexpr (std::is_same_v<Body, Cancel>) on_cancel(flight, from);
    else if constexpr (std::is_same_v<Body, Ended>) end(*flight, body);
    else if constexpr (std::is_same_v<Body, Lead>) on_lead(flight, std::move(body));
    else if constexpr (std::is_same_v<Body, Progress>) on_progress(*flight, from, body);
    else if constexpr (std::is_same_v<Body, PartsDone>) on_parts_done(*flight, from, std::move(body));
    else if constexpr (std::is_same_v<Body, Acknowledged>) on_acknowledged(*flight, body);
    else if constexpr (std::is_same_v<Body, Leave>) on_leave(*flight, body);
    else if constexpr (std::is_same_v<Body, Shed>) on_shed(*flight, body);
    else if constexpr (std::is_same_v<Body, Given>) on_given(*flight, from, std::move(body));
    else if constexpr (std::is_same_v<Body, Take>) on_take(*flight, std::move(body));
    else if constexpr (std::is_same_v<Body, Taken>) on_taken(*flight, body);
    else if constexpr (std::is_same_v<Body, Complete>) on_complete(*flight, std::move(body));
    else if constexpr (std::is_same_v<Body, Opened>) on_opened(*flight, body);
    else if constexpr (std::is_same_v<Body, ShareDone>) on_share_done(*flight, from, std::move(body));
    else if constexpr (std::is_same_v<Body, ShareKept>) on_share_kept(*flight, body);
    else if constexpr (std::is_same_v<Body, Want>) on_want(flight, from, address, std::move(body));
    else on_chunk(*flight, std::move(body));
}

void Node::Impl::send(Flight& flight, NodeIndex to, message::Body body) {
    send_to(flight, to, flight.job->addresses.of(to), std::move(body));
}

void Node::Impl::send_to(Flight& flight, NodeIndex to, Address address, message::Body body) {
    message::Message message{flight.job->roster->secret, flight.key, flight.job->self, world.network.self(), std::move(body)};
    if (to == flight.job->self) {
        local.try_send(std::move(message));  // full: lost, like any datagram
        return;
    }
    Bytes bytes = encode(message);
    if (bytes.size() > Network::message_bytes_max && flight.contest && !flight.contest->unsendable)  // it never will be sent: asking again is no use
        flight.contest->unsendable = to;
    gate.spawn(transmit(std::move(address), std::move(bytes)));
}

Task<void> Node::Impl::transmit(Address address, Bytes bytes) {
    // A failed send is a lost datagram: whoever needs an answer asks again.
    const std::size_t size = bytes.size();
    const Status sent = co_await world.network.send(std::move(address), std::move(bytes), world.clock.in(settings.peer_wait));
    if (sent.code() == Code::invalid_argument) log_error("message-can-not-be-sent", {{"bytes", size}, {"why", sent}});  // too large: it never will be
}

// One that is said again is no new one.
void Node::Impl::fail(Flight& flight, Status failure) {
    if (failure.to_string() != flight.state.failure.to_string()) ++flight.state.failures;
    flight.state.failure = std::move(failure);
}

// The coordinator's word on a version. Not final: its failure is told to waiters, and the flush is tried again.
void Node::Impl::end(Flight& flight, const message::Ended& ended) {
    if (flight.state.final) return;
    const VersionKey& key = flight.key;
    if (ended.code == Code::ok) {
        flight.state.level = Level::committed;
        flight.state.failure = Status();
        ++counters.versions_committed;
        if (key.version > flight.job->committed) {
            flight.job->committed = key.version;
            flight.job->committed_at = world.clock.now();
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
        fail(flight, failure);
    }
    flight.state.final = ended.final;
    if (ended.final && flight.leading) {
        flight.leading->fail({Code::superseded, "the version has ended"});
        flight.leading->left = true;
        flight.leading->work.notify_all();
    }
    if (ended.final) {  // remembered for a while yet, but not what it took
        flight.served.clear();
        flight.served_order.clear();
        flight.opened.clear();
    }
    pace.wake();  // nobody waits to serve it any more
    update(flight);
}

}  // namespace cairn
