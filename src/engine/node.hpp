// Node: the flush side of one daemon. Hears of sealed images, takes part in the flush of each version (as coordinator, leader and
// follower, in any mix), and knows how far each version is. The order of a flush is in flush.cpp; one step a file beside it.
//
// Single-threaded: everything is called from the world's loop. Nothing here blocks.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "catalog/layout.hpp"
#include "engine/pace.hpp"
#include "copies/scratch.hpp"
#include "model/messages.hpp"
#include "storage/targets.hpp"
#include "world/world.hpp"

namespace cairn {

enum class Placement : std::uint8_t { append, interleaved, contiguous };  // ispdc23, Section III-B
// How a leader's writers share its local data: chunk by chunk, whoever is free (fgcs24, Algorithm 4), or whole images, dealt out to writers
// beforehand (ispdc23, Section III-A).
enum class LocalSplit : std::uint8_t { chunks, files };

// How much is remembered, or said at once: bounds of memory and of messages that nobody needs to set. The simulated world makes them small, so that
// they are met.
struct FlushLimits {
    std::size_t versions = 64;                  // of a job, that ended and whose images have left scratch
    std::size_t answers = 4096;                 // to requests for data, of a version
    std::size_t piece_blocks = 512u << 10;      // of what a leader tells of its share, in one message of a few MiB
    std::size_t piece_extents = 64u << 10;
    std::size_t guests = 1024;                  // I/O node: jobs; the one longest silent is forgotten, and learned again when it speaks
    std::size_t strangers = 1024;               // I/O node: jobs that were looked for
};

struct FlushSettings {
    std::uint32_t writers = 8;
    std::uint64_t buffer_bytes = 64ull << 20;
    std::uint32_t buffers = 8;                   // the ring of one leader; shared by its parts
    Placement placement = Placement::append;
    LocalSplit local_split = LocalSplit::chunks;
    std::uint32_t leaders = 0;                   // nodes that write; 0: as many as were best lately
    bool direct = false;
    std::uint32_t attempts_max = 3;              // in a row, before the version's waiters are told; then again after retry_wait
    Nanos io_wait = 60 * second;                 // one read, write, fsync
    Nanos heartbeat = 500 * millisecond;
    Nanos peer_wait = 10 * second;               // silence after which a peer counts as lost
    Nanos version_wait = 600 * second;           // from the first seal to the last; then abandoned, naming the ranks
    Nanos retry_wait = 5 * second;               // after an attempt failed
    FlushLimits limits;
};

enum class Level : std::uint8_t {
    none,       // not heard of
    captured,   // sealed by some or all ranks of this node
    sealed,     // sealed by every rank of the job
    committed,  // its manifest is durable
};

struct VersionState {
    Level level = Level::none;
    Status failure;              // last failure told to waiters; ok while none. Cleared when the version commits after all.
    bool final = false;          // no more will come: committed, cancelled or superseded
    std::uint64_t failures = 0;  // told so far, the standing one included: what is new to whoever was told of fewer
    bool dead = false;           // given up on this node, since nobody can need it (dead.hpp)
    std::uint64_t bytes = 0;     // of this node's images
    std::uint64_t node_written_bytes = 0;   // written by this node as a leader for this version
    std::uint64_t node_expected_bytes = 0;  // of its parts, 0 until elected
};

// A version of which a node knows something, and not yet how it ends.
struct Undecided {
    VersionKey key;
    std::uint64_t epoch = 0;  // of the open that took it
    Parent parent;
    std::uint32_t ranks = 0;
};

// Sums since the start, for `status` and the benchmark (the paper's Figures 7 to 9).
struct WriterTimes {
    double received_s = 0, local_s = 0;
    std::uint64_t received_bytes = 0, local_bytes = 0;
};
struct NodeCounters {
    std::uint64_t captured_bytes = 0, sent_bytes = 0, received_bytes = 0, written_bytes = 0;
    std::uint64_t taken_over_bytes = 0;  // written here instead of by another leader, or in another part that was behind
    std::uint64_t versions_committed = 0, attempts_failed = 0;
    std::uint32_t leading = 0, sending = 0;  // now: attempts, and answers with data, of versions that ended, too
    std::vector<WriterTimes> writers;  // of the last flush this node led
    double last_flush_s = 0;           // of the last flush this node led: what it took to write its bytes and make them durable, without waits for slower leaders in between
    std::uint64_t last_flush_bytes = 0;
    double last_write_s = 0;           // of that flush, from its start until the last of its writers ended (the time of ispdc23's metric)
};

class Node {
  public:
    Node(World world, Layout layout, FlushSettings settings);
    ~Node();  // kills what runs (task.hpp); a real daemon calls stop() first
    Node(const Node&) = delete;

    // A job opened here, or was found in scratch. Again with the same incarnation: members' addresses are renewed.
    // invalid_argument when `self` is not in the roster.
    Status join(std::shared_ptr<const Roster> roster, NodeIndex self);
    bool knows(Id128 incarnation) const;
    std::uint64_t epoch_of(Id128 incarnation) const;  // 0: not known
    bool is_newest(Id128 incarnation) const;          // no newer open of its series is known here
    // What is known of a job that has ended goes, its versions too, as if this daemon had been started after it: late messages of it are nobody's. Who has
    // need of it joins again. False, and nothing goes, while a version that has not ended has images here or is coordinated here, or anything goes on.
    bool forget(Id128 incarnation);
    // From now on this is a dedicated I/O node of that name: it learns of jobs that have it as a member without ranks when they first speak to
    // it, from the roster under persistent, leads for them, and forgets them when they are over. Once.
    void serve_as_io_node(std::string name);

    // The storage targets of the persistent directory, as soon as they are known; replaces earlier ones. None at first. Never null.
    void set_targets(std::shared_ptr<const PlacementTargets> targets);
    const PlacementTargets& targets() const;

    // Whether scratch may hold images of a job that were not added yet: while it may, this node does not say that it lacks any.
    void set_unseen_images(std::function<bool(Id128 incarnation)> has_unseen);

    // A sealed image of a job that joined. Sealing of all its ranks on this node starts the flush. Twice the same is fine; another image of
    // the same version and rank is already_exists: the first may be on its way. invalid_argument when a block is more than a buffer.
    Status add_image(LocalImage image);
    // Scratch wants the slot back: drops the image and its mapping. Refused (already_exists) while its version is being
    // flushed; always allowed once the version is final.
    Status drop_image(const VersionKey& key, Rank rank);
    // A write of this daemon into the image's slot did not end in time and may still take effect, whenever scratch answers: once it is dropped the
    // file must go, and hold no other image.
    bool may_be_written(const VersionKey& key, Rank rank) const;
    // Of which images are here, or which this node coordinates; neither committed nor given up.
    std::vector<Undecided> undecided() const;
    // Nobody can need it (dead.hpp): its flush ends here, for good. A coordinator gives it up for all nodes.
    void give_up(const VersionKey& key, const Status& why);

    VersionState state(const VersionKey& key) const;
    // Who has not sealed it, for people: ranks of this node, else a node that the coordinator still waits for. Empty: nobody known, or it has
    // failed.
    std::string unsealed_by(const VersionKey& key) const;
    std::vector<VersionKey> versions() const;            // all it knows, oldest first
    const LocalImage* image(const VersionKey& key, Rank rank) const;
    // Ends when the version reached `level` (ok), failed (its failure; one that is not final and that the caller was told of already is no reason to
    // end), or at the deadline.
    Task<Status> wait(VersionKey key, Level level, Nanos deadline, std::uint64_t failures_told = 0);
    // The application gives a version up: its flush stops on all nodes, unless it committed first (then already_exists).
    Task<Status> cancel(VersionKey key, Nanos deadline);
    // Notified whenever any state() may have changed.
    Event& changed();

    bool idle() const;  // nothing sealed is on its way to being committed (failed ones count as idle)
    const NodeCounters& counters() const;
    Pace& pace();  // how fast the flushes of this node may move data; no limits until told
    // Finishes what it can by the deadline, starts nothing new; the keys not committed are returned. What failed is tried again, at once and until then, but for what
    // some rank never sealed, and what needs a node that stays away.
    Task<std::vector<VersionKey>> stop(Nanos deadline);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace cairn
