// Pieces sorted by rank and image offset meet covers in the same order, so one pass is enough. That no two pieces overlap is told before a checksum is
// copied: what unpacks is no more than what came.
#include "format/covers.hpp"

#include <algorithm>

#include "format/check.hpp"

namespace cairn {

using check::refuse;

namespace {

// Those with bytes, by rank and image offset.
template <class Runs>
auto sorted_pieces(Runs& runs) {
    std::vector<decltype(&runs.front().pieces.front())> pieces;
    for (auto& run : runs)
        for (auto& piece : run.pieces)
            if (piece.length > 0) pieces.push_back(&piece);
    std::sort(pieces.begin(), pieces.end(), [](const StoredPiece* a, const StoredPiece* b) {
        return a->rank != b->rank ? a->rank < b->rank : a->image_offset < b->image_offset;
    });
    return pieces;
}

std::string name_of(Rank rank, std::uint64_t image_offset) { return "rank " + std::to_string(rank) + " at " + std::to_string(image_offset) + " of its image"; }

}  // namespace

std::vector<Cover> covers_of(const std::vector<StoredRun>& runs, std::uint64_t block_bytes) {
    std::vector<Cover> covers;
    for (const StoredPiece* piece : sorted_pieces(runs)) {
        Cover* before = covers.empty() ? nullptr : &covers.back();
        const bool goes_on = before && before->rank == piece->rank && before->image_offset + before->length == piece->image_offset && before->length % block_bytes == 0;
        if (!goes_on) {
            covers.push_back({piece->rank, piece->image_offset, piece->length, piece->checksums});
            continue;
        }
        before->length += piece->length;
        before->checksums.insert(before->checksums.end(), piece->checksums.begin(), piece->checksums.end());
    }
    return covers;
}

Status check_pieces_apart(const std::vector<StoredRun>& runs) {
    const std::vector<const StoredPiece*> pieces = sorted_pieces(runs);
    for (std::size_t i = 1; i < pieces.size(); ++i) {
        const StoredPiece &before = *pieces[i - 1], &piece = *pieces[i];
        if (piece.rank == before.rank && piece.image_offset - before.image_offset < before.length)
            return refuse(name_of(piece.rank, piece.image_offset), ": another run holds these bytes, too");
    }
    return {};
}

Status give_checksums(std::vector<StoredRun>& runs, const std::vector<Cover>& covers, std::uint64_t block_bytes) {
    TRY(check_pieces_apart(runs));
    std::size_t at = 0;
    std::uint64_t taken = 0;  // of covers[at], blocks
    const auto whole = [&](const Cover& cover) { return taken == cover.checksums.size(); };
    for (StoredPiece* piece : sorted_pieces(runs)) {
        if (at < covers.size() && whole(covers[at])) ++at, taken = 0;
        if (piece->length > bytes_max) return refuse(name_of(piece->rank, piece->image_offset), ": ", piece->length, " bytes");
        const std::uint64_t blocks = div_up(piece->length, block_bytes);
        if (at == covers.size()) return refuse(name_of(piece->rank, piece->image_offset), ": no checksums");
        const Cover& cover = covers[at];
        if (cover.rank != piece->rank || cover.image_offset > bytes_max || cover.image_offset + taken * block_bytes != piece->image_offset)
            return refuse(name_of(piece->rank, piece->image_offset), ": its checksums are of ", name_of(cover.rank, cover.image_offset + taken * block_bytes));
        if (cover.length > bytes_max || taken * block_bytes + piece->length > cover.length || blocks > cover.checksums.size() - taken)
            return refuse(name_of(piece->rank, piece->image_offset), ": has ", cover.checksums.size() - taken, " checksums for ", blocks, " blocks");
        const auto first = cover.checksums.begin() + static_cast<std::ptrdiff_t>(taken);
        piece->checksums.assign(first, first + static_cast<std::ptrdiff_t>(blocks));
        taken += blocks;
        if (taken == cover.checksums.size() && (taken - blocks) * block_bytes + piece->length != cover.length)
            return refuse(name_of(cover.rank, cover.image_offset), ": ", cover.length, " bytes have checksums, and other ones are stored");
    }
    if (at + 1 < covers.size() || (at < covers.size() && !whole(covers[at]))) return refuse("checksums of bytes that no run holds");
    return {};
}

}  // namespace cairn
