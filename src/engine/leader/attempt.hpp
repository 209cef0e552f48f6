// An attempt to write this node's shares of a version, as its leader sees it: plain state of the attempt, of each of its parts, and of what is on its way.
//
// An Attempt lives as long as its lead() coroutine. Coroutines in a part's gate refer to it by reference: lead() outlives them.
#pragma once

#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "engine/flight.hpp"
#include "engine/ring.hpp"
#include "engine/leader/equal_pages.hpp"
#include "engine/leader/slots.hpp"
#include "engine/leader/work_list.hpp"
#include "engine/pace.hpp"
#include "model/card.hpp"
#include "model/messages.hpp"
#include "model/tensor_places.hpp"

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

// A range of a part that one leader fills front to back. What is not begun of it can be given away, from its end.
struct Range {
    std::uint64_t next = 0, end = 0;
};

// A chunk on its way into a part.
struct PendingChunk {
    // Space in its part that was asked for and not used yet (rooms.hpp).
    struct AskedRoom {
        std::uint32_t number = 0;
        Nanos again = 0;  // to be asked for once more then
    };
    Source source;
    std::vector<StoredPiece> packed;  // of several small sources that become one run, instead of source and checksums
    std::uint32_t range = 0;
    std::uint64_t position = 0;
    std::uint32_t region = 0;  // writer it belongs to, placement contiguous
    Slice data;
    BufferRing::Use use;  // received: of the buffer
    std::vector<std::uint64_t> checksums, cuts;
    bool received = false;
    bool may_come_encoded = false;  // its follower is asked to
    std::uint32_t codec = 0;        // received: 1: with that of the attempt
    std::uint64_t checksum = 0;     // then: of `data`
    bool needs_base = false;        // then
    std::vector<NumberArray> arrays;  // received raw: that its followers told, with offsets in `data`, in any order
    std::optional<AskedRoom> room;
    std::optional<std::size_t> kept_as;  // its place in EqualPages
    void let_go() {  // the buffer is a credit again, unless it is in quarantine
        data = {};
        use = {};
    }
    std::uint64_t bytes() const { return packed.empty() ? source.length : packed.back().at + packed.back().length; }
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

// How long anything was under way.
class BusySpan {
  public:
    void begin(Nanos now) {
        if (under_way_++ == 0) since_ = now;
    }
    void end(Nanos now) {
        if (--under_way_ == 0) busy_ += now - since_;
    }
    Nanos busy() const { return busy_; }  // but for what is under way now
  private:
    std::uint32_t under_way_ = 0;
    Nanos since_ = 0, busy_ = 0;
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
    std::string root, path;  // where it lies, by the plan; for the first leader as the driver said that made it
    std::uint64_t chunk_bytes_max = 0;
    std::uint64_t encoded_chunk_bytes_max = 0;  // with a codec, also where so much is more than one writer's turn: runs that are encoded must not be short
    std::uint64_t least_chunk_bytes = 0;        // where equal pages are looked for: of what is shorter there are too many
    std::uint32_t writers = 1;
    std::uint32_t first_writer = 0;  // of this part, among the leader's: for its times
    std::vector<Range> ranges;  // the share's own, then those taken over
    std::optional<TensorPlaces> places;  // of a safetensors file

    // Where space is handed out, instead of the ranges (rooms.hpp). First leader: where the next run goes, and what it gave whom. Another leader: what it asked for and got.
    std::uint64_t rooms_end = 0;
    std::map<std::pair<NodeIndex, std::uint32_t>, std::uint64_t> rooms_given;
    std::uint32_t rooms_asked = 0;
    std::map<std::uint32_t, std::uint64_t> rooms_got;  // by number, until it is used
    std::set<std::uint32_t> rooms_done;                // answered: an answer may come twice

    // What is not begun (Algorithm 4's shared structure). One loop runs all writers and the receiver, so its critical section is free of locks.
    WorkList work;

    // WQ by writer (one for all unless placement is contiguous)
    std::uint32_t fetching = 0;
    bool receiver_done = false;
    std::vector<std::deque<PendingChunk>> write_queue;

    // What is begun and not yet written is bounded by what is written in half a second, so that there is something to give away.
    std::uint64_t ahead_bytes = 0;    // being fetched, or received and not written yet
    std::uint64_t writing_bytes = 0;  // received or local
    std::uint64_t local_bytes = 0;    // the local ones among them
    std::uint64_t written_bytes = 0;
    std::uint64_t encoded_raw_bytes = 0, encoded_stored_bytes = 0;  // of the runs that were encoded
    RateMeter rate;

    // Algorithm 5: where everything went, and for interleaved the passes of each writer
    std::vector<std::uint64_t> passes;
    std::vector<StoredRun> runs;
    std::optional<EqualPages> equal_pages;  // of what this leader holds itself; none: nobody looks for them
    std::vector<Rank> empty_ranks;  // without bytes, that have their place here

    // First leader: what the others wrote, by leader and piece. Another leader: the pieces that the first one has.
    struct Gathered {
        std::uint32_t pieces = 0;  // 0: nothing came yet
        std::map<std::uint32_t, std::vector<StoredRun>> runs;
        std::vector<Rank> empty_ranks;
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
    std::uint64_t coverage = 0;    // first leader: of all pieces in it
    bool needs_base = false;       // first leader: some run in it does

    // Its storage failed, here or at another of its leaders: nothing is written to it any more, and what was counts no more (replacing.cpp).
    bool dropped = false;
    Status why;            // here; ok: at another leader
    bool why_told = false;
    bool settled = false;  // the coordinator knows, and a first leader has the plan of the file that takes its place
    Gate gate;  // last: its coroutines refer to all of the above

    std::uint64_t begun_bytes() const { return ahead_bytes + local_bytes; }
    std::uint64_t window_bytes(std::uint64_t block_bytes, Nanos now) const;
    std::uint64_t next_chunk_bytes(std::uint64_t block_bytes, Nanos now) const;
};

// What a codec is to be tried on: bytes of one of this node's images.
struct Tried {
    Codec codec = Codec::none;
    Rank rank = 0;
    Slice raw;
    FindArrays arrays;
};

// One attempt to write this node's shares of a version.
struct Attempt {
    Attempt(World& world, FlightPtr f, message::Lead l);
    FlightPtr flight;
    message::Lead lead;
    Codec codec = Codec::none;
    std::shared_ptr<const KeyEfforts> keys;  // null: the arrays of all keys alike
    std::optional<Codec> trial;       // to be tried, until that is begun
    std::optional<Tried> tried;       // with it
    bool trial_begun = false;
    std::uint64_t offered_bytes = 0;  // to a trial
    BusySpan storage;                 // its writes and syncs
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
    std::uint64_t progress_sequence = 0;
    bool idle_told = false;         // that there is nothing to begin in any part
    std::size_t idle_parts_told = 0;
    Nanos busy = 0;  // when it last had work to begin, or had heard that none will come
    std::map<std::uint32_t, message::Given> given;  // by move
    Portions portions;  // of its own data
    CardUse card;
    std::uint32_t writers_each = 1;  // of each part
    Slots slots;  // of its parts, by their place among `parts`
    std::set<std::uint32_t> taken;
    Nanos started = 0;
    Nanos last_write = 0;  // when this leader's own last write ended
    std::vector<WriterTimes> times;
    std::map<std::uint64_t, std::shared_ptr<Credit>> credits;
    std::list<PartPlan> replacements;  // of parts that were dropped
    std::vector<std::unique_ptr<PartState>> parts;

    bool over() const { return left || !failure.ok(); }
    bool over(const PartState& part) const { return over() || part.dropped; }
    // What this node sends while it writes; true: all of the last portion has gone.
    void begin_send(Nanos now);
    bool end_send(Nanos now, std::uint64_t bytes, std::uint64_t raw_bytes);
    void fail(Status status, std::optional<NodeIndex> node = std::nullopt);
    // Of this part only, where another file can take its place.
    void fail_part(Status status, PartState& part);
    void drop(PartState& part);
    bool can_replace(const PartState& part) const { return lead.may_replace && !part.plan.target.empty(); }
    bool all_done() const;  // all that this leader has to do in its parts
    PartState* part(std::uint32_t number) const;
    std::size_t idle_parts() const;  // with nothing to begin
    Nanos busy_span() const;  // from its start until its own data were written, and then until they were durable; not the wait for others in between
};

// What a leader remembers of a version.
struct LeaderSide {
    std::shared_ptr<Attempt> leading;
    std::optional<Id128> reported;  // the attempt of which this leader said last that its parts are done
    std::set<std::pair<Id128, std::uint32_t>> opened;  // parts whose first leader said so, perhaps before our Lead arrived

    bool leads(Id128 attempt_id) const { return leading && leading->lead.attempt_id == attempt_id; }
};

}  // namespace cairn::engine
