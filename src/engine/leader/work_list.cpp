#include "engine/leader/work_list.hpp"

#include <algorithm>
#include <map>

#include "base/units.hpp"

namespace cairn::engine {

WorkList::WorkList(const Share& share, NodeIndex self, const WorkPolicy& policy) : block_bytes_(policy.block_bytes) {
    const bool whole = policy.placement == Placement::append;
    std::uint64_t received = 0;
    for (const NodeSources& node : share.nodes) {
        std::deque<Piece> pieces;
        std::uint64_t& position = node.node == self ? local_end_ : received;
        for (const Source& source : node.sources)
            for (std::uint64_t at = 0; at < source.length;) {
                const std::uint64_t length = whole ? source.length : std::min(policy.chunk_bytes_max, source.length - at);
                pieces.push_back({node.node, {source.rank, source.image_offset + at, length}, 0, position});
                position += round_up(length, block_bytes_);
                at += length;
            }
        if (node.node == self) local_.insert(local_.end(), pieces.begin(), pieces.end());
        else remote_.push_back(std::move(pieces));
    }
    if (policy.local_split == LocalSplit::files) deal_out(policy.writers);
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
    std::vector<std::deque<Piece>> regions(writers);
    for (const auto& pieces : remote_)
        for (const Piece& piece : pieces) regions[std::min<std::uint64_t>(writers - 1, piece.position * writers / received_bytes)].push_back(piece);
    remote_ = std::move(regions);
}

Piece WorkList::take_front(std::deque<Piece>& pieces, std::deque<Piece>::iterator piece, std::uint64_t bytes_max) const {
    Piece taken = *piece;
    const std::uint64_t length = taken.source.length = std::min(bytes_max, piece->source.length);
    piece->source.image_offset += length;
    piece->source.length -= length;
    piece->position += round_up(length, block_bytes_);
    if (piece->source.length == 0) pieces.erase(piece);
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
        if (!remote_[turn].empty()) return Remote{take_front(remote_[turn], remote_[turn].begin(), bytes_max), static_cast<std::uint32_t>(turn)};
    }
    return std::nullopt;
}

bool WorkList::has_remote() const noexcept {
    return std::any_of(remote_.begin(), remote_.end(), [](const auto& pieces) { return !pieces.empty(); });
}

std::uint64_t WorkList::unstarted_bytes() const noexcept {
    std::uint64_t sum = 0;
    for (const Piece& piece : local_) sum += piece.source.length;
    for (const auto& pieces : remote_)
        for (const Piece& piece : pieces) sum += piece.source.length;
    return sum;
}

void WorkList::give_end(std::deque<Piece>& pieces, std::uint64_t& blocks, std::vector<Piece>& given) const {
    while (blocks > 0 && !pieces.empty()) {
        Piece& last = pieces.back();
        const std::uint64_t of_piece = div_up(last.source.length, block_bytes_), count = std::min(of_piece, blocks);
        const std::uint64_t keep = (of_piece - count) * block_bytes_;
        Piece piece = last;
        piece.source.image_offset += keep;
        piece.source.length -= keep;
        given.push_back(piece);
        last.source.length = keep;
        blocks -= count;
        if (keep == 0) pieces.pop_back();
    }
}

std::vector<Piece> WorkList::give_remote(std::optional<NodeIndex> of, std::uint64_t& blocks) {
    std::vector<Piece> given;
    for (auto& pieces : remote_)
        if (!of || (!pieces.empty() && pieces.back().node == *of)) give_end(pieces, blocks, given);
    return given;
}

std::vector<Piece> WorkList::give_local(std::uint64_t& blocks) {
    std::vector<Piece> given;
    give_end(local_, blocks, given);
    return given;
}

}  // namespace cairn::engine
