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
#include <tuple>

#include "engine/node.hpp"
#include "engine/ring.hpp"
#include "model/balance.hpp"
#include "model/card.hpp"

namespace cairn::engine {

// The last ones of many.
class RecentIds {
  public:
    explicit RecentIds(std::size_t most) : most_(most) {}
    bool insert(Id128 id);  // false: it is there
    void erase(Id128 id);

  private:
    std::size_t most_;
    std::set<Id128> ids_;
    std::deque<Id128> order_;
};

// Where the nodes of a job are: as its roster says, but for those that were heard of from elsewhere since.
struct AddressBook {
    std::shared_ptr<const Roster> roster;
    std::map<NodeIndex, Address> moved;
    const Address& of(NodeIndex node) const;
    void set(NodeIndex node, Address address);
};

struct Job {
    Job(World& world, std::shared_ptr<const Roster> r, NodeIndex s);
    std::shared_ptr<const Roster> roster;  // never changed in place: in one process many nodes may hold it
    NodeIndex self;
    AddressBook addresses;             // newest known
    std::map<NodeIndex, Nanos> heard;  // when a node last said anything; none: not since `began`
    Nanos began;
    Channel<char> turn;              // one flush of a job at a time: whoever holds the token
    Version committed = 0;           // the highest, and since when
    Nanos committed_at = 0;
    std::uint64_t placement_turn;    // coordinator: of the targets, one a flush
    std::map<std::string, Nanos> avoided;  // coordinator: targets on which a part failed, and until when
    std::map<NodeIndex, Nanos> unfit;      // coordinator: leaders that failed by themselves, and until when
    std::set<NodeIndex> absent;            // coordinator: I/O nodes that did not answer
    std::uint32_t nodes() const { return static_cast<std::uint32_t>(roster->members.size()); }
    bool has_ranks(NodeIndex node) const { return !roster->members[node].ranks.empty(); }  // else it is an I/O node of this job
    const std::vector<NodeIndex>& io_nodes() const;  // looked for once
    std::uint32_t nodes_with_ranks() const { return nodes() - static_cast<std::uint32_t>(io_nodes().size()); }
    Nanos last_heard(NodeIndex node) const;
    Nanos last_heard_of_any() const;
    std::string node_name(NodeIndex node) const;  // "node 3 (n3, ranks 6 7)"
    std::string node_name(NodeIndex node, const std::vector<Rank>& ranks) const;  // some of its ranks

  private:
    mutable std::optional<std::vector<NodeIndex>> io_nodes_;
};

// An image of this node with what is known of its checksums. They are made once, when its bytes are first read.
struct HeldImage {
    LocalImage image;
    std::vector<std::uint64_t> checksums;
    std::vector<bool> known;
    std::size_t unknown = 0;
    std::uint32_t users = 0;  // reads and writes under way that refer to the mapping
    bool may_be_written = false;  // a write into its slot outlived its deadline
};

// Blocks of an image that are being read for the first time.
struct LocalRead {
    const HeldImage* of = nullptr;
    std::size_t first = 0, end = 0;
    Nanos waited = 0;  // since it was at the front
    std::shared_ptr<Event> ended = nullptr;
    bool covers(const HeldImage& held, std::size_t block) const { return of == &held && block >= first && block < end; }
};

// What the coordinator remembers of an attempt.
struct LeaderTrack {
    message::Lead lead;
    Nanos heard = 0;
    bool answered = false;
    bool declined = false;       // gave nothing when it was asked, and has not told of its progress since
    Nanos again = 0, pause = 0;  // when it is told once more, as long as it did not
    std::optional<message::PartsDone> done;
    message::Progress progress;       // the newest
    bool progress_known = false;      // it tells of all that was given to this leader
    double most_bytes_per_s = 0;      // it ever wrote, all parts together
    std::uint32_t takes = 0;          // moves to it
    std::map<Rank, ImageInfo> images; // that came into parts it is the first leader of, for its Complete
};
// Work on its way from one leader to another.
struct Move {
    NodeIndex from = 0, to = 0;
    std::uint32_t from_part = 0, to_part = 0;
    std::uint64_t bytes = 0;            // asked for
    std::optional<message::Take> take;  // given by `from`, on its way to `to`
};
struct Contest {
    Id128 attempt_id;
    std::uint32_t attempt = 0;
    Nanos begun = 0;
    std::uint64_t block_bytes = 0;
    bool keep_own = false;                // cards decide: each leader writes what it holds
    std::vector<PartPlan> plan;
    std::vector<std::uint32_t> targets;   // of each part, as a number: without targets all are alike
    std::map<NodeIndex, LeaderTrack> leaders;
    std::size_t open = 0;                 // leaders that have not reported
    std::optional<NodeIndex> failed;      // one that reported why it can not
    Nanos looked = 0;                     // when it was last seen to that no leader is silent
    Nanos shifted = 0;                    // when work was last compared
    bool shift_due = false;               // somebody waits to do so
    std::map<std::uint32_t, Move> moves;  // under way, by number
    std::uint32_t moves_begun = 0;
    std::vector<std::uint64_t> part_ends; // of each part: where work from other parts goes next
    std::set<std::uint32_t> full;         // parts that have no room for more of it
    std::map<std::pair<NodeIndex, std::uint32_t>, Nanos> took;  // when a leader last took work into a part
    bool finishing = false;               // no more moves
    bool may_be_published = false;        // from here on its manifest may stand, whatever we are told: its parts stay
    AddressBook addresses;                // the job's when it began
    std::optional<NodeIndex> unsendable;  // what this leader must be told is longer than a message can be
    std::optional<NodeIndex> restarted;   // its daemon was started again since: what it was asked for is forgotten
};

struct Attempt;

// One Lead to every leader: its own shares with their sources; of the others' what it needs to work with them.
void make_leads(Contest& contest, const Job& job, const std::vector<NodeImages>& nodes);

// Whether the footer of each part can tell what the plan puts there: else it would be found out when all is written.
Status check_sizes(const std::vector<PartPlan>& plan, const std::vector<NodeImages>& nodes, std::uint64_t block_bytes);

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
    std::optional<NodeIndex> unsealed;  // a node that it still waited for then

    // coordinator (node 0)
    bool coordinating = false, cancel = false;
    std::map<NodeIndex, message::Sealed> sealed;  // of nodes with ranks
    NodeIndex none_missing_below = 0;
    std::set<NodeIndex> once_sealed;  // it was there, though it may be lost now
    std::map<NodeIndex, std::pair<Nanos, Nanos>> lacking;  // nodes with ranks that say that they have not sealed it: since when, and when they last did
    Nanos sealed_heard = 0;           // when anybody last said that he holds it
    std::optional<message::Ended> ended;
    bool lost_io_node = false;  // the last attempt did, and might have succeeded without it
    std::optional<Contest> contest;
    std::uint32_t attempts = 0;

    // leader
    std::shared_ptr<Attempt> leading;
    std::optional<Id128> reported;  // the attempt of which this leader said last that its parts are done
    std::set<std::pair<Id128, std::uint32_t>> opened;  // parts whose first leader said so, perhaps before our Lead arrived

    // follower: credits answered lately, so that a repeated Want does not send its payload twice
    std::map<std::uint64_t, message::Chunk> served;
    std::deque<std::uint64_t> served_order;

    bool leads(Id128 attempt_id) const;  // this node, in that attempt
    std::vector<NodeIndex> missing() const;  // coordinator: nodes with ranks that did not say that they sealed it
    std::vector<NodeIndex> first_missing();  // one of them, if any, for those who only need to know whether: all of them for each of all would be the square
    bool complete() const { return sealed.size() == job->nodes_with_ranks(); }
    void lose(NodeIndex node);
    bool all_local_sealed() const { return images.size() == job->roster->members[job->self].ranks.size(); }
};
using FlightPtr = std::shared_ptr<Flight>;

// A range of a part that one leader fills front to back. What is not begun of it can be given away, from its end.
struct Range {
    std::uint64_t next = 0, end = 0;
};

// Sources that nobody has begun with: of this node (local data) or of a follower.
inline constexpr std::uint32_t any_writer = UINT32_MAX;
struct Run {
    NodeIndex node = 0;
    Source source;
    std::uint32_t range = 0;     // where it goes
    std::uint64_t position = 0;  // in the received (or local) data laid end to end in blocks, where placement is not append
    std::uint32_t writer = any_writer;  // local data: whose it is
};

// A chunk on its way into a part.
struct PendingChunk {
    Source source;
    std::uint32_t range = 0;
    std::uint64_t position = 0;
    std::uint32_t region = 0;  // writer it belongs to, placement contiguous
    Slice data;
    std::vector<std::uint64_t> checksums;
    bool received = false;
};

// Bytes per second lately, while there was something to write.
class RateMeter {
  public:
    void begin(Nanos now) { since_ = now; }         // a write, when none was under way
    void end(Nanos now, std::uint64_t bytes);       // of a write
    double per_s(Nanos now, bool busy) const;       // 0: not measured yet
  private:
    Nanos since_ = 0, busy_ = 0;
    std::uint64_t bytes_ = 0;
    double per_s_ = 0;
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

// This leader's share of one part, and what it took over for it.
struct PartState {
    PartState(World& world, const PartPlan& p, NodeIndex self);
    const PartPlan& plan;
    const Share& share;  // this leader's
    const bool first;    // this leader creates and sizes the file, gathers what the others wrote, and writes the footer
    FilePtr file;
    std::string path;
    std::uint64_t chunk_bytes_max = 0;
    std::uint32_t writers = 1;
    std::uint32_t first_writer = 0;  // of this part, among the leader's: for its times
    std::vector<Range> ranges;  // the share's own, then those taken over

    // Algorithm 4's shared structure: local data not begun. One loop runs all writers, so its critical section is free of locks.
    std::deque<Run> local;
    std::uint64_t local_end = 0;  // bytes of all local data in whole blocks

    // Algorithm 3: what is still to be asked for, a queue for each follower (each writer when placement is contiguous), in turn; WQ by
    // writer (one for all unless placement is contiguous)
    std::vector<std::deque<Run>> remote;
    std::size_t remote_turn = 0;
    std::uint32_t fetching = 0;
    bool receiver_done = false;
    std::vector<std::deque<PendingChunk>> write_queue;

    // What is begun and not yet written is bounded by what is written in half a second, so that there is something to give away.
    std::uint64_t ahead_bytes = 0;    // being fetched, or received and not written yet
    std::uint64_t writing_bytes = 0;  // received or local
    std::uint64_t local_bytes = 0;    // the local ones among them
    std::uint64_t written_bytes = 0;
    RateMeter rate;

    // Algorithm 5: where every extent went, and for interleaved the passes of each writer
    std::vector<std::uint64_t> passes;
    std::vector<Extent> extents;  // and, with length 0, ranks without bytes that have their place here

    // First leader: what the others wrote, by leader and piece. Another leader: the pieces that the first one has.
    struct Gathered {
        std::uint32_t pieces = 0;  // 0: nothing came yet
        std::map<std::uint32_t, std::vector<Extent>> extents;
        message::Sample sample;
    };
    std::map<NodeIndex, Gathered> gathered;
    std::set<std::uint32_t> kept;
    message::Sample sample;  // another leader: of what it wrote
    bool sampling = false;   // local data are being looked at for it

    std::optional<PartInfo> done;  // first leader: complete and durable
    bool durable = false;          // this leader's share is, and the first leader knows
    Nanos sync_begun = 0, sync_ended = 0;  // of making it so, but for what others had to do for it
    bool blameless = false;        // what failed was a node or an image, and not this part's storage
    Gate gate;  // last: its coroutines refer to all of the above

    std::uint64_t unstarted_bytes() const;
    std::uint64_t begun_bytes() const { return ahead_bytes + local_bytes; }
    std::uint64_t window_bytes(std::uint64_t block_bytes, Nanos now) const;
    std::uint64_t next_chunk_bytes(std::uint64_t block_bytes, Nanos now) const;
};

// One attempt to write this node's shares of a version.
struct Attempt {
    Attempt(World& world, FlightPtr f, message::Lead l);
    FlightPtr flight;
    message::Lead lead;
    std::map<NodeIndex, Address> addresses;
    std::map<Rank, ImageInfo> images;  // first leader: of all ranks in its parts
    Event work;  // something for a writer, or the end
    bool left = false;
    bool reported = false;  // the coordinator may know its parts, and a manifest name them
    bool acknowledged = false;
    bool finishing = false;  // no more work will come
    Status failure;
    std::optional<NodeIndex> lost;
    std::optional<std::uint32_t> failed_part;  // when storage failed, and not a node
    Pace* pace = nullptr;  // whose waits end with this attempt
    std::uint64_t written_bytes = 0;
    std::uint64_t coverage = 0;  // first leader: of all extents in its parts
    std::uint64_t progress_sequence = 0;
    bool idle_told = false;         // that there is nothing to begin in any part
    std::size_t idle_parts_told = 0;
    Nanos busy = 0;  // when it last had work to begin, or had heard that none will come
    std::map<std::uint32_t, message::Given> given;  // by move
    Portions portions;  // of its own data
    CardUse card;
    std::set<std::uint32_t> taken;
    Nanos started = 0;
    Nanos last_write = 0;  // when this leader's own last write ended
    std::vector<WriterTimes> times;
    std::map<std::uint64_t, std::shared_ptr<Credit>> credits;
    std::vector<std::unique_ptr<PartState>> parts;

    bool over() const { return left || !failure.ok(); }
    // What this node sends while it writes; true: all of the last portion has gone.
    void begin_send(Nanos now);
    bool end_send(Nanos now, std::uint64_t bytes);
    void fail(Status status, std::optional<NodeIndex> node = std::nullopt);
    void fail_part(Status status, const PartState& part);
    PartState* part(std::uint32_t number) const;
    std::size_t idle_parts() const;  // with nothing to begin
    Nanos busy_span() const;  // from its start until its own data were written, and then until they were durable; not the wait for others in between
};

}  // namespace cairn::engine

namespace cairn {

struct Node::Impl {
    Impl(World w, Layout l, FlushSettings s);

    World world;
    Layout layout;
    FlushSettings settings;
    std::shared_ptr<const PlacementTargets> targets = std::make_shared<PlacementTargets>();
    std::function<bool(Id128)> has_unseen_images = [](Id128) { return false; };
    BufferRing ring;
    Pace pace;  // before jobs and flights: their coroutines hold passes
    Event changed;
    NodeCounters counters;
    std::map<Id128, std::shared_ptr<engine::Job>> jobs;
    // Coordinator: what numbers of leaders reached, by series, files and nodes; a job that opens again goes on with it.
    std::map<std::tuple<std::string, std::uint32_t, std::uint32_t>, LeaderChoice> leader_choices;
    std::map<VersionKey, engine::FlightPtr> flights;
    std::vector<VersionKey> order;  // of first sight
    engine::RecentIds attempts_seen;          // that this node was asked to lead, or must not: whatever else is forgotten, none is led again
    Channel<message::Message> local;  // from this node to itself
    std::uint64_t next_tag;
    std::map<std::uint64_t, engine::LocalRead> local_reads;  // under way, in the order in which they began
    std::uint64_t local_reads_begun = 0;
    bool local_reads_watched = false;  // by one task: each adds to their waits
    std::string io_node;                  // the name under which this is an I/O node; empty: it is none
    std::map<Id128, Nanos> looked_for;    // jobs that were not known here when something of them came, and when their roster was looked for
    std::uint32_t looking = 0;
    std::optional<Nanos> stopping;  // since when
    Gate gate;  // last: its coroutines refer to all of the above

    // node.cpp: messages in and out
    Task<void> dispatch_network();
    Task<void> dispatch_local();
    void handle(message::Message message);
    template <class Body>
    void hear_body(const engine::FlightPtr& flight, NodeIndex from, const Address& address, Body& body);
    void send(engine::Flight& flight, NodeIndex to, message::Body body);
    void send_to(engine::Flight& flight, NodeIndex to, Address address, message::Body body);
    Task<void> transmit(Address address, Bytes bytes);
    engine::FlightPtr flight_of(const VersionKey& key);
    void update(engine::Flight& flight) { flight.news.notify_all(); changed.notify_all(); pace.wake(); }
    void fail(engine::Flight& flight, Status failure);
    void end(engine::Flight& flight, const message::Ended& ended);
    void forget_old(Id128 incarnation);

    // io_node.cpp: a node without ranks of the job; the coordinator's side, then its own
    void call_io_nodes(engine::FlightPtr flight);
    Task<void> read_io_address(engine::FlightPtr flight, NodeIndex node);
    Task<void> hear_io_nodes(engine::FlightPtr flight, Nanos since);
    void on_stranger(message::Message message);
    Task<void> learn(message::Message message);
    Task<void> forget_ended_jobs();
    bool forget(Id128 incarnation);

    // elect.cpp: sealed images become a plan
    Task<void> announce(engine::FlightPtr flight);
    Task<void> read_address(engine::FlightPtr flight, NodeIndex node);
    Task<Status> check_still_serves(engine::FlightPtr flight);
    Task<void> learn_alone(engine::FlightPtr flight);
    void tell_missing(engine::Flight& flight);
    std::optional<std::string> why_never(const engine::Flight& flight) const;
    Task<bool> gather(engine::FlightPtr flight);
    void on_sealed(engine::FlightPtr flight, NodeIndex from, message::Sealed sealed);
    void on_noted(engine::FlightPtr flight, NodeIndex from, const message::Noted& noted);
    std::string missing_text(const engine::Flight& flight) const;

    // flush.cpp: the order of a flush, coordinator's side and leader's side
    Task<void> coordinate(engine::FlightPtr flight);
    Task<Status> attempt(engine::FlightPtr flight);
    Task<bool> wait_for_the_lost(engine::FlightPtr flight);
    Result<std::vector<NodeImages>> all_images(const engine::Flight& flight, std::uint64_t& block_bytes) const;
    void learn_from_cards(const engine::Flight& flight);
    LeaderChoice& leader_choice(const engine::Job& job) { return leader_choices[{job.roster->name, job.roster->files, job.nodes()}]; }
    std::vector<PartPlan> plan_flush(engine::Job& job, const std::vector<NodeImages>& nodes, const engine::Contest& contest);
    bool avoid_target_of(engine::Flight& flight, std::uint32_t part);
    void learn_from_failures(engine::Flight& flight);
    std::vector<std::string> usable_targets(const engine::Job& job) const;
    void repeat(engine::Flight& flight);
    void lose(engine::Flight& flight, NodeIndex node);
    std::optional<Status> contest_state(engine::Flight& flight);
    std::optional<Status> silent_leader(engine::Flight& flight);
    void on_progress(engine::Flight& flight, NodeIndex from, const message::Progress& progress);
    void on_parts_done(engine::Flight& flight, NodeIndex from, message::PartsDone done);
    void on_lead(engine::FlightPtr flight, message::Lead lead);
    Status check_lead(const engine::Job& job, const message::Lead& lead) const;
    Status check_work(const engine::Job& job, const std::vector<message::Work>& work) const;
    static Result<Slice> local_data(const engine::HeldImage& held, const Source& source);
    Task<void> lead(std::shared_ptr<engine::Attempt> attempt);
    Task<void> report(std::shared_ptr<engine::Attempt> attempt);
    void tell_progress(engine::Attempt& attempt);
    void on_acknowledged(engine::Flight& flight, const message::Acknowledged& acknowledged);
    void on_leave(engine::Flight& flight, const message::Leave& leave);
    void on_cancel(engine::FlightPtr flight, NodeIndex from);
    void tell_all(engine::Flight& flight, const message::Ended& ended);

    // move.cpp: work changes hands; coordinator's side, then leader's
    void shift_soon(engine::Flight& flight);
    Task<void> shift_later(engine::FlightPtr flight, Id128 attempt_id, Nanos when);
    void shift_work(engine::Flight& flight);
    void repeat_moves(engine::Flight& flight);
    void on_given(engine::Flight& flight, NodeIndex from, message::Given given);
    void on_taken(engine::Flight& flight, const message::Taken& taken);
    void finish(engine::Flight& flight);
    void on_shed(engine::Flight& flight, const message::Shed& shed);
    void on_take(engine::Flight& flight, message::Take take);
    void on_complete(engine::Flight& flight, message::Complete finish);

    // ship.cpp: leader asks, follower answers
    Task<void> receive(engine::Attempt& attempt, engine::PartState& part);
    Task<void> fetch(engine::Attempt& attempt, engine::PartState& part, NodeIndex from, engine::PendingChunk chunk);
    Task<Status> fetch_once(engine::Attempt& attempt, NodeIndex from, engine::PendingChunk& chunk);
    void watch_followers(engine::Attempt& attempt);
    void watch_coordinator(engine::Attempt& attempt);
    void on_chunk(engine::Flight& flight, message::Chunk chunk);
    void on_want(engine::FlightPtr flight, NodeIndex from, Address address, message::Want want);
    void answer_want(engine::Flight& flight, NodeIndex from, Address address, message::Chunk chunk);
    Task<void> serve(engine::FlightPtr flight, NodeIndex from, Address address, message::Want want);

    // local.cpp: images of this node, read
    Task<Result<std::vector<std::uint64_t>>> checksums_of(engine::FlightPtr flight, Source source, std::function<bool()> over);
    Task<void> make_checksums(engine::FlightPtr flight, Rank rank, engine::LocalRead read);
    Task<void> watch_local_reads();
    Status check_local_reads(const engine::HeldImage& held, std::size_t first, std::size_t end) const;
    Task<void> keep_checksums(engine::FlightPtr flight, Rank rank);

    // write.cpp: chunks become extents of a part
    Task<Status> write_paced(engine::Attempt& attempt, FilePtr file, std::uint64_t offset, Slice data, bool received);
    Task<void> write_part(engine::Attempt& attempt, engine::PartState& part);
    Task<void> write_loop(engine::Attempt& attempt, engine::PartState& part, std::uint32_t writer);
    Task<Status> write_chunk(engine::Attempt& attempt, engine::PartState& part, std::uint32_t writer, engine::PendingChunk chunk);

    // part.cpp: the leaders of one part between them, from the file's creation to its footer
    Task<Status> open_part(engine::Attempt& attempt, engine::PartState& part);
    Task<Status> check_name(engine::PartState& part, std::string made_as);
    void tell_opened(engine::Attempt& attempt, engine::PartState& part);
    Task<Status> finish_share(engine::Attempt& attempt, engine::PartState& part);
    Task<void> keep_sample(engine::PartState& part, Slice data, std::uint64_t offset);
    Task<void> keep_local_sample(std::shared_ptr<engine::Attempt> attempt, engine::PartState& part, engine::HeldImage& held, Slice data,
                                 std::uint64_t offset);
    Task<Status> report_share(engine::Attempt& attempt, engine::PartState& part);
    Task<Status> gather_shares(engine::Attempt& attempt, engine::PartState& part);
    Task<Status> check_shares(engine::Attempt& attempt, engine::PartState& part);
    Task<Status> write_footer(engine::Attempt& attempt, engine::PartState& part);
    Task<void> remove_parts(engine::Attempt& attempt);
    void on_opened(engine::Flight& flight, const message::Opened& opened);
    void on_share_done(engine::Flight& flight, NodeIndex from, message::ShareDone done);
    void on_share_kept(engine::Flight& flight, const message::ShareKept& kept);

    // commit.cpp: durable parts become a version
    Task<Status> look(engine::FlightPtr flight);
    Task<Status> publish(engine::FlightPtr flight, Manifest manifest);
    Task<Status> commit(engine::FlightPtr flight);
    Task<Status> check_superseded(engine::FlightPtr flight);
    Task<Status> check_record(engine::FlightPtr flight);
    Task<Status> check_parts(engine::FlightPtr flight, const Manifest& manifest, const std::vector<DirectoryEntry>& entries);
    Task<void> clean_up(engine::FlightPtr flight, Id128 committed_attempt);
    Task<void> sweep(engine::FlightPtr flight);
    Task<void> remove_attempt(engine::FlightPtr flight, const engine::Contest& contest);
};

}  // namespace cairn
