#include "engine/leader/work_list.hpp"

#include <algorithm>
#include <map>

#include "base/units.hpp"

namespace cairn::engine {

WorkList::WorkList(const Share& share, NodeIndex self, const WorkPolicy& policy)
    : self_(self), block_bytes_(policy.block_bytes), pack_bytes_(policy.pack_bytes), merge_(policy.merge), merges_own_only_(policy.merges_own_only) {
    if (policy.placement == Placement::append) add(share.nodes, 0);
    else lay_in_chunks(share, policy);
    if (policy.local_split == LocalSplit::files) deal_out(policy.writers);
}

WorkList::Queue& WorkList::queue_of(NodeIndex node, bool packs, bool own) {
    const auto queue = std::find_if(remote_.begin(), remote_.end(), [&](const Queue& each) { return each.packs == packs && each.own == own && (packs || each.node == node); });
    return queue != remote_.end() ? *queue : remote_.emplace_back(Queue{node, packs, own, {}});
}

void WorkList::add_alone(const NodeSource& source, std::uint32_t range) {
    auto& pieces = source.node == self_ ? local_ : queue_of(source.node, false, false).pieces;
    pieces.push_back({source.node, source.source, {}, false, range, 0});
}

void WorkList::add_merged(NodeSources& node, std::uint32_t range) {
    const bool own = node.node == self_;
    if (merges_own_only_ && !own) return;
    for (Pack& group : take_merged(node, {block_bytes_, pack_bytes_}, merge_)) {
        Piece piece{node.node, group.front().source, {}, true, range, 0};
        piece.packed = std::move(group);
        queue_of(node.node, false, own).pieces.push_back(std::move(piece));
    }
}

// A follower's pieces go behind those that it has in its queue; packs have a queue of their own.
void WorkList::add(const std::vector<NodeSources>& nodes, std::uint32_t range) {
    std::vector<NodeSources> others = nodes;
    for (NodeSources& node : others) add_merged(node, range);
    for (Pack& pack : packs_of(others, {block_bytes_, pack_bytes_})) {
        if (pack.size() == 1) {
            add_alone(pack.front(), range);
            continue;
        }
        Piece piece{pack.front().node, pack.front().source, {}, false, range, 0};
        const bool own = std::any_of(pack.begin(), pack.end(), [&](const NodeSource& each) { return each.node == self_; });
        piece.packed = std::move(pack);
        queue_of(piece.node, true, own).pieces.push_back(std::move(piece));
    }
}

// Offsets are fixed beforehand: each chunk has a position of its own, in whole blocks.
void WorkList::lay_in_chunks(const Share& share, const WorkPolicy& policy) {
    std::uint64_t received = 0;
    for (const NodeSources& node : share.nodes) {
        std::deque<Piece> pieces;
        std::uint64_t& position = node.node == self_ ? local_end_ : received;
        for (const Source& source : node.sources)
            for (std::uint64_t at = 0; at < source.length;) {
                const std::uint64_t length = std::min(policy.chunk_bytes_max, source.length - at);
                pieces.push_back({node.node, {source.rank, source.image_offset + at, length}, {}, false, 0, position});
                position += round_up(length, block_bytes_);
                at += length;
            }
        if (node.node == self_) local_.insert(local_.end(), pieces.begin(), pieces.end());
        else remote_.push_back({node.node, false, false, std::move(pieces)});
    }
    if (policy.placement == Placement::contiguous) sort_by_region(policy.writers, received);
}

// ispdc23, Section III-A: the images of this node are dealt out to the writers, the largest first, so that each gets about as much.
void WorkList::deal_out(std::uint32_t writers) {
    std::map<Rank, std::uint64_t> bytes;
    for (const Piece& piece : local_) bytes[piece.source.rank] += piece.source.length;
    std::vector<Rank> ranks;
    for (const auto& [rank, length] : bytes) ranks.push_back(rank);
    std::stable_sort(ranks.begin(), ranks.end(), [&](Rank a, Rank b) { return bytes[a] > bytes[b]; });
    std::map<Rank, std::uint32_t> writer_of;
    for (std::uint32_t i = 0; i < ranks.size(); ++i) writer_of[ranks[i]] = i % writers;
    for (Piece& piece : local_) piece.writer = writer_of[piece.source.rank];
}

void WorkList::sort_by_region(std::uint32_t writers, std::uint64_t received_bytes) {
    std::vector<Queue> regions(writers);
    for (const Queue& queue : remote_)
        for (const Piece& piece : queue.pieces) regions[std::min<std::uint64_t>(writers - 1, piece.position * writers / received_bytes)].pieces.push_back(piece);
    remote_ = std::move(regions);
}

Piece WorkList::take_front(std::deque<Piece>& pieces, std::deque<Piece>::iterator piece, std::uint64_t bytes_max) const {
    Piece taken = *piece;
    if (!taken.packed.empty()) {  // as it is: its space was counted for all of it
        pieces.erase(piece);
        return taken;
    }
    const std::uint64_t length = taken.source.length = std::min(bytes_max, piece->source.length);
    piece->source.image_offset += length;
    piece->source.length -= length;
    piece->position += round_up(length, block_bytes_);
    if (piece->source.length == 0) pieces.erase(piece);
    return taken;
}

// What is left of one image alone is as if it had never been merged.
Piece WorkList::take_merged_run(Queue& queue, std::uint64_t bytes_max) {
    Piece& group = queue.pieces.front();
    Piece taken{group.node, {}, cut_run(group.packed, merge_, bytes_max), false, group.range, 0};
    taken.source = taken.packed.front().source;
    if (group.packed.size() > 1) {
        group.source = group.packed.front().source;
        return taken;
    }
    const Pack left = std::move(group.packed);
    const std::uint32_t range = group.range;
    queue.pieces.pop_front();
    if (!left.empty()) add_alone(left.front(), range);
    return taken;
}

std::optional<Piece> WorkList::take_local(std::uint32_t writer, std::uint64_t bytes_max) {
    const auto next = std::find_if(local_.begin(), local_.end(), [&](const Piece& piece) { return piece.writer == any_writer || piece.writer == writer; });
    if (next == local_.end()) return std::nullopt;
    return take_front(local_, next, bytes_max);
}

std::optional<WorkList::Remote> WorkList::take_remote(std::uint64_t bytes_max) {
    for (std::size_t i = 0; i < remote_.size(); ++i) {
        const std::size_t turn = turn_++ % remote_.size();
        std::deque<Piece>& pieces = remote_[turn].pieces;
        if (pieces.empty()) continue;
        return Remote{pieces.front().merged ? take_merged_run(remote_[turn], bytes_max) : take_front(pieces, pieces.begin(), bytes_max), static_cast<std::uint32_t>(turn)};
    }
    return std::nullopt;
}

bool WorkList::has_remote() const noexcept {
    return std::any_of(remote_.begin(), remote_.end(), [](const Queue& queue) { return !queue.pieces.empty(); });
}

std::uint64_t WorkList::unstarted_bytes() const noexcept {
    std::uint64_t sum = 0;
    for (const Piece& piece : local_) sum += piece.bytes();
    for (const Queue& queue : remote_)
        for (const Piece& piece : queue.pieces) sum += piece.bytes();
    return sum;
}

// Off the end of a group, which may be the end of it. False: no more of it for so few blocks.
bool WorkList::give_merged_end(std::deque<Piece>& pieces, std::uint64_t& blocks, std::vector<Piece>& given) const {
    Piece& last = pieces.back();
    const auto as_piece = [&](Pack sources) {
        Piece piece{last.node, sources.front().source, {}, sources.size() > 1, last.range, 0};
        if (piece.merged) piece.packed = std::move(sources);
        return piece;
    };
    Pack end = split_end(last.packed, merge_, blocks, block_bytes_);
    if (end.empty()) return false;
    for (const NodeSource& each : end) blocks -= div_up(each.source.length, block_bytes_);
    given.push_back(as_piece(std::move(end)));
    if (last.packed.empty()) pieces.pop_back();
    else last.source = last.packed.front().source;
    return true;
}

void WorkList::give_end(std::deque<Piece>& pieces, std::uint64_t& blocks, std::vector<Piece>& given) const {
    while (blocks > 0 && !pieces.empty()) {
        Piece& last = pieces.back();
        if (last.merged) {
            if (!give_merged_end(pieces, blocks, given)) return;
            continue;
        }
        const std::uint64_t of_piece = div_up(last.bytes(), block_bytes_), count = std::min(of_piece, blocks);
        const bool packed = !last.packed.empty();
        if (packed && count < of_piece) return;
        const std::uint64_t keep = packed ? 0 : (of_piece - count) * block_bytes_;
        Piece piece = last;
        piece.source.image_offset += keep;
        piece.source.length -= keep;
        given.push_back(std::move(piece));
        last.source.length = keep;
        blocks -= count;
        if (keep == 0) pieces.pop_back();
    }
}

std::vector<Piece> WorkList::give_remote(std::optional<NodeIndex> of, std::uint64_t& blocks) {
    std::vector<Piece> given;
    for (Queue& queue : remote_)
        if (!queue.own && (!of || (!queue.packs && queue.node == *of))) give_end(queue.pieces, blocks, given);
    return given;
}

std::vector<Piece> WorkList::give_local(std::uint64_t& blocks) {
    std::vector<Piece> given;
    give_end(local_, blocks, given);
    for (Queue& queue : remote_)
        if (queue.own) give_end(queue.pieces, blocks, given);
    return given;
}

}  // namespace cairn::engine
