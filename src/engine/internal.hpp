// The engine's own state: jobs, versions under way, attempts being led. Not for other rooms: they see node.hpp.
//
// Who owns what: Node::Impl owns jobs and flights; a Flight owns what this node knows of one version; an Attempt lives as long as its
// lead() coroutine. Coroutines in a part's gate refer to the attempt by reference: lead() outlives them.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "engine/node.hpp"
#include "engine/ring.hpp"

namespace cairn::engine {

struct Job {
    Job(World& world, Roster r, NodeIndex s);
    Roster roster;
    NodeIndex self;
    std::vector<Address> addresses;  // newest known, by node
    std::vector<Nanos> heard;        // when a node last said anything
    Channel<char> turn;              // one flush of a job at a time: whoever holds the token
    std::uint32_t nodes() const { return static_cast<std::uint32_t>(roster.members.size()); }
    std::string node_name(NodeIndex node) const;  // "node 3 (n3, ranks 6-7)"
};

// An image of this node with what is known of its checksums. They are made once, when its bytes are first read.
struct HeldImage {
    LocalImage image;
    std::vector<std::uint64_t> checksums;
    std::vector<bool> known;
    std::size_t unknown = 0;
    std::uint32_t users = 0;  // reads and writes under way that refer to the mapping
};

// What the coordinator remembers of an attempt.
struct LeaderTrack {
    message::Lead lead;
    Nanos heard = 0;
    bool answered = false;
    std::optional<message::PartsDone> done;
};
struct Contest {
    Id128 attempt_id;
    std::uint32_t attempt = 0;
    std::map<NodeIndex, LeaderTrack> leaders;
};

struct Attempt;

// One version, seen from this node.
struct Flight {
    Flight(World& world, VersionKey k, std::shared_ptr<Job> j);
    VersionKey key;
    std::shared_ptr<Job> job;
    Event news;  // anything below changed

    std::map<Rank, HeldImage> images;
    VersionState state;
    Nanos since = 0;  // first seal seen here
    bool announcing = false;
    Nanos coordinator_heard = 0;

    // coordinator (node 0)
    bool coordinating = false;
    bool cancel = false;
    std::map<NodeIndex, message::Sealed> sealed;
    std::optional<message::Ended> ended;
    std::optional<Contest> contest;
    std::uint32_t attempts = 0;

    // leader
    std::shared_ptr<Attempt> leading;
    std::set<Id128> attempts_seen;

    // follower: credits answered lately, so that a repeated Want does not send its payload twice
    std::map<std::uint64_t, message::Chunk> served;
    std::deque<std::uint64_t> served_order;

    bool complete() const { return sealed.size() == job->roster.members.size(); }
    bool all_local_sealed() const { return images.size() == job->roster.members[job->self].ranks.size(); }
};
using FlightPtr = std::shared_ptr<Flight>;

// A chunk on its way into a part.
struct PendingChunk {
    Source source;
    std::uint64_t position = 0;  // in the received (or local) data laid end to end in blocks
    std::uint32_t region = 0;    // writer it belongs to, placement contiguous
    Slice data;
    std::vector<std::uint64_t> checksums;
    bool received = false;
};

// A credit that is out: what was asked of whom under which tag.
struct Credit {
    explicit Credit(Clock& clock) : since(clock.now()), answered(clock) {}
    NodeIndex node = 0;
    Nanos since;  // when it was asked for
    message::Want want;
    Event answered;
    std::optional<message::Chunk> answer;
};

struct PartState {
    PartState(World& world, const PartPlan& p) : plan(p), gate(world.clock) {}
    const PartPlan& plan;
    FilePtr file;
    std::string path;
    std::uint64_t chunk_bytes = 0;
    std::uint32_t writers = 1;

    // Algorithm 4's shared structure: the next local chunk. One loop runs all writers, so its critical section is free of locks.
    std::vector<Source> local;
    std::size_t local_at = 0;
    std::uint64_t local_offset = 0;
    std::uint64_t local_position = 0;
    std::uint64_t local_end = 0;  // bytes of all local data in whole blocks

    // Algorithm 3: what is still to be asked for, by follower; WQ by writer (one for all unless placement is contiguous)
    std::vector<std::pair<NodeIndex, PendingChunk>> remote;
    std::size_t remote_at = 0;
    std::uint32_t fetching = 0;
    bool receiver_done = false;
    std::vector<std::deque<PendingChunk>> write_queue;

    // Algorithm 5: the remote offset r_o, and where every extent went
    std::uint64_t append_offset = 0;
    std::vector<std::uint64_t> passes;
    std::vector<Extent> extents;
    std::uint64_t data_bytes = 0;

    std::optional<PartInfo> done;
    Gate gate;  // last: its coroutines refer to all of the above
};

// One attempt to write this node's parts of a version.
struct Attempt {
    Attempt(World& world, FlightPtr f, message::Lead l);
    FlightPtr flight;
    message::Lead lead;
    std::map<NodeIndex, Address> addresses;
    Event work;  // something for a writer, or the end
    bool left = false;
    bool acknowledged = false;
    Status failure;
    std::optional<NodeIndex> lost;
    std::uint64_t written_bytes = 0;
    Nanos started = 0;
    std::vector<WriterTimes> times;
    std::map<std::uint64_t, std::shared_ptr<Credit>> credits;
    std::vector<std::unique_ptr<PartState>> parts;

    bool over() const { return left || !failure.ok(); }
    void fail(Status status, std::optional<NodeIndex> node = std::nullopt);
    const ImageInfo* image(Rank rank) const;
};

}  // namespace cairn::engine

namespace cairn {

struct Node::Impl {
    Impl(World w, Layout l, FlushSettings s);

    World world;
    Layout layout;
    FlushSettings settings;
    PlacementTargets targets;
    BufferRing ring;
    Event changed;
    NodeCounters counters;
    std::map<Id128, std::shared_ptr<engine::Job>> jobs;
    std::map<VersionKey, engine::FlightPtr> flights;
    std::vector<VersionKey> order;  // of first sight
    Channel<message::Message> local;  // from this node to itself
    std::uint64_t next_tag;
    bool stopping = false;
    Gate gate;  // last: its coroutines refer to all of the above

    // node.cpp: messages in and out
    Task<void> dispatch_network();
    Task<void> dispatch_local();
    void handle(message::Message message);
    void send(engine::Flight& flight, NodeIndex to, message::Body body);
    void send_to(engine::Flight& flight, NodeIndex to, Address address, message::Body body);
    Task<void> transmit(Address address, Bytes bytes);
    engine::FlightPtr flight_of(const VersionKey& key);
    void update(engine::Flight& flight) { flight.news.notify_all(); changed.notify_all(); }
    void end(engine::Flight& flight, const message::Ended& ended);
    void forget_old(Id128 incarnation);

    // elect.cpp: sealed images become a plan
    Task<void> announce(engine::FlightPtr flight);
    Task<void> read_address(engine::FlightPtr flight, NodeIndex node);
    Task<bool> gather(engine::FlightPtr flight);
    void on_sealed(engine::FlightPtr flight, NodeIndex from, message::Sealed sealed);
    void on_noted(engine::FlightPtr flight, const message::Noted& noted);
    std::string missing_text(const engine::Flight& flight) const;

    // flush.cpp: the order of a flush, coordinator's side and leader's side
    Task<void> coordinate(engine::FlightPtr flight);
    Task<Status> attempt(engine::FlightPtr flight);
    std::optional<Status> contest_state(engine::Flight& flight);
    void on_progress(engine::Flight& flight, NodeIndex from, const message::Progress& progress);
    void on_parts_done(engine::Flight& flight, NodeIndex from, message::PartsDone done);
    void on_lead(engine::FlightPtr flight, message::Lead lead);
    Task<void> lead(std::shared_ptr<engine::Attempt> attempt);
    Task<void> report(std::shared_ptr<engine::Attempt> attempt);
    void tell_all(engine::Flight& flight, const message::Ended& ended);

    // ship.cpp: leader asks, follower answers
    Task<void> receive(engine::Attempt& attempt, engine::PartState& part);
    Task<void> fetch(engine::Attempt& attempt, engine::PartState& part, NodeIndex from, engine::PendingChunk chunk);
    Task<Status> fetch_once(engine::Attempt& attempt, NodeIndex from, engine::PendingChunk& chunk);
    void watch_followers(engine::Attempt& attempt);
    void on_want(engine::FlightPtr flight, NodeIndex from, Address address, message::Want want);
    Task<void> serve(engine::FlightPtr flight, NodeIndex from, Address address, message::Want want);
    Task<Result<std::vector<std::uint64_t>>> checksums_of(engine::FlightPtr flight, Source source);
    Task<void> keep_checksums(engine::FlightPtr flight, Rank rank);

    // write.cpp: chunks become extents of a part
    Task<void> write_part(engine::Attempt& attempt, engine::PartState& part);
    Task<void> write_loop(engine::Attempt& attempt, engine::PartState& part, std::uint32_t writer);
    Task<Status> finish_part(engine::Attempt& attempt, engine::PartState& part);

    // commit.cpp: durable parts become a version
    Task<Status> look(engine::FlightPtr flight);
    Task<Status> publish(engine::FlightPtr flight, Manifest manifest);
    Task<Status> commit(engine::FlightPtr flight);
    Task<Status> check_superseded(engine::FlightPtr flight);
    Task<void> clean_up(engine::FlightPtr flight, Id128 committed_attempt);
    Task<void> remove_attempt(engine::FlightPtr flight, const engine::Contest& contest);
};

}  // namespace cairn
