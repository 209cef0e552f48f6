// Work list: what of one part a leader has not begun with: which pieces of which images, from which nodes, in which order, for which writer. A plain value:
// a policy makes it from the share; writers and the receiver take from its front, and what changes hands goes from its end, or is added behind.
//
// Local images pass it like all others. Policies (ispdc23): with append a piece is a whole source, cut when it is taken, as long as its target takes much at a
// time; with interleaved and contiguous, whose offsets are fixed beforehand, pieces are a chunk long. Remote pieces stand in a queue for each follower, by
// turns (fgcs24, Algorithm 3), or in one for each writer's region (contiguous). Local ones are anybody's (fgcs24, Algorithm 4), or dealt out to writers by
// image (ispdc23, Section III-A). Packs of small images stand in queues of their own among the remote ones, also where some of them lie on this node: they are
// gathered in a buffer. Those with any image of this node are given away as local data are. So are images of this node that share runs (model/merging.hpp); of another
// node they stand in its queue. Runs of those are cut off when they are taken.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "engine/settings.hpp"
#include "model/merging.hpp"

namespace cairn::engine {

inline constexpr std::uint32_t any_writer = UINT32_MAX;

struct Piece {
    NodeIndex node = 0;
    Source source;
    Pack packed;                 // several small sources that become one run, of whichever nodes; then node and source are the first one's
    bool merged = false;         // they are long ones of one node, which share runs; of what is taken it is one of these runs, and this is false
    std::uint32_t range = 0;     // of the leader's in the part: where it goes
    std::uint64_t position = 0;  // in the received (or local) data laid end to end in blocks, where placement is not append
    std::uint32_t writer = any_writer;  // local data: whose it is
    std::uint64_t bytes() const { return packed.empty() ? source.length : bytes_of(packed); }
    bool operator==(const Piece&) const = default;
};

struct WorkPolicy {
    Placement placement = Placement::append;
    LocalSplit local_split = LocalSplit::chunks;
    std::uint32_t writers = 1;
    std::uint64_t block_bytes = 0;
    std::uint64_t chunk_bytes_max = 0;
    std::uint64_t pack_bytes = 0;
    MergePolicy merge = {};
    bool merges_own_only = false;  // what comes from other nodes is encoded there, image by image
};

class WorkList {
  public:
    WorkList() = default;
    WorkList(const Share& share, NodeIndex self, const WorkPolicy& policy);

    // The next piece for this writer, no longer than that; bytes in whole blocks but for an image's end.
    std::optional<Piece> take_local(std::uint32_t writer, std::uint64_t bytes_max);
    // By turns of the queues. Which one it came from decides on whose write queue it goes.
    struct Remote {
        Piece piece;
        std::uint32_t queue = 0;
    };
    std::optional<Remote> take_remote(std::uint64_t bytes_max);

    bool has_local() const noexcept { return !local_.empty(); }
    bool has_remote() const noexcept;
    std::uint64_t unstarted_bytes() const noexcept;
    // Of all local data that the share began with, in whole blocks; where placement is not append.
    std::uint64_t local_end() const noexcept { return local_end_; }

    // What was taken over from another leader, for this range.
    void add(const std::vector<NodeSources>& nodes, std::uint32_t range);

    // Up to `blocks` blocks off the end, packs whole; what is left of them stays in `blocks`. Remote: of this node's queue, or of all.
    std::vector<Piece> give_remote(std::optional<NodeIndex> of, std::uint64_t& blocks);
    std::vector<Piece> give_local(std::uint64_t& blocks);

  private:
    struct Queue {
        NodeIndex node = 0;  // whose pieces these are, where they are a node's
        bool packs = false;
        bool own = false;  // packs: in each is an image of this node
        std::deque<Piece> pieces;
    };
    void lay_in_chunks(const Share& share, const WorkPolicy& policy);
    void add_alone(const NodeSource& source, std::uint32_t range);
    void add_merged(NodeSources& node, std::uint32_t range);
    Queue& queue_of(NodeIndex node, bool packs, bool own);
    Piece take_front(std::deque<Piece>& pieces, std::deque<Piece>::iterator piece, std::uint64_t bytes_max) const;
    Piece take_merged_run(Queue& queue, std::uint64_t bytes_max);
    bool give_merged_end(std::deque<Piece>& pieces, std::uint64_t& blocks, std::vector<Piece>& given) const;
    void give_end(std::deque<Piece>& pieces, std::uint64_t& blocks, std::vector<Piece>& given) const;
    void deal_out(std::uint32_t writers);
    void sort_by_region(std::uint32_t writers, std::uint64_t received_bytes);

    NodeIndex self_ = 0;
    std::uint64_t block_bytes_ = 0, pack_bytes_ = 0, local_end_ = 0;
    MergePolicy merge_;
    bool merges_own_only_ = false;
    std::deque<Piece> local_;
    std::vector<Queue> remote_;
    std::size_t turn_ = 0;
};

}  // namespace cairn::engine
