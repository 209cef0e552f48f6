// Pieces sorted by rank and image offset meet covers in the same order, so one pass is enough. That no two pieces overlap is told before a checksum is
// copied: what unpacks is no more than what came.
#include "format/covers.hpp"

#include <algorithm>
#include <optional>

#include "format/check.hpp"
#include "model/checksum_units.hpp"

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
        const bool goes_on = before && before->rank == piece->rank && before->image_offset + before->length == piece->image_offset;
        if (!goes_on) {
            covers.push_back({piece->rank, piece->image_offset, piece->length, piece->checksums, piece->cuts});
            continue;
        }
        before->length += piece->length;
        before->checksums.insert(before->checksums.end(), piece->checksums.begin(), piece->checksums.end());
        append_cuts(before->cuts, piece->image_offset, piece->cuts, block_bytes);
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

namespace {

// A cover whose units pieces take, front to back.
class Taken {
  public:
    Taken(const Cover& cover, std::uint64_t block_bytes) : cover_(cover), ends_(unit_ends({block_bytes, cover.image_offset, cover.cuts}, cover.length)) {}

    bool is_whole() const { return units_ == ends_.size(); }
    std::uint64_t image_offset() const { return cover_.image_offset + bytes(); }

    Status give(StoredPiece& piece) {
        const auto end = std::lower_bound(ends_.begin(), ends_.end(), bytes() + piece.length);
        if (cover_.rank != piece.rank || image_offset() != piece.image_offset)
            return refuse(name_of(piece.rank, piece.image_offset), ": its checksums are of ", name_of(cover_.rank, image_offset()));
        if (end == ends_.end() || *end != bytes() + piece.length)
            return refuse(name_of(piece.rank, piece.image_offset), ": ", piece.length, " bytes are no whole units with checksums");
        const auto next = static_cast<std::size_t>(end - ends_.begin()) + 1;
        piece.checksums.assign(cover_.checksums.begin() + static_cast<std::ptrdiff_t>(units_), cover_.checksums.begin() + static_cast<std::ptrdiff_t>(next));
        piece.cuts = cuts_within(cover_.cuts, piece.image_offset, piece.length);
        units_ = next;
        return {};
    }

  private:
    std::uint64_t bytes() const { return units_ == 0 ? 0 : ends_[units_ - 1]; }

    const Cover& cover_;
    std::vector<std::uint64_t> ends_;
    std::size_t units_ = 0;
};

// Before anything is made for it: what it takes is no more than the checksums that came.
Status check_cover(const Cover& cover, std::uint64_t block_bytes) {
    const std::string of = name_of(cover.rank, cover.image_offset);
    if (cover.length == 0 || cover.length > bytes_max || cover.image_offset > bytes_max) return refuse(of, ": checksums of ", cover.length, " bytes");
    if (!cuts_valid(cover.cuts, cover.image_offset, cover.length, block_bytes)) return refuse(of, ": its units can not be cut so");
    const std::uint64_t units = unit_count(block_bytes, cover.image_offset, cover.cuts, cover.length);
    if (cover.checksums.size() != units) return refuse(of, ": has ", cover.checksums.size(), " checksums for ", units, " units");
    return {};
}

}  // namespace

Status give_checksums(std::vector<StoredRun>& runs, const std::vector<Cover>& covers, std::uint64_t block_bytes) {
    TRY(check_pieces_apart(runs));
    std::size_t begun = 0;
    std::optional<Taken> taken;
    for (StoredPiece* piece : sorted_pieces(runs)) {
        if (piece->length > bytes_max) return refuse(name_of(piece->rank, piece->image_offset), ": ", piece->length, " bytes");
        if (!taken || taken->is_whole()) {
            if (begun == covers.size()) return refuse(name_of(piece->rank, piece->image_offset), ": no checksums");
            TRY(check_cover(covers[begun], block_bytes));
            taken.emplace(covers[begun++], block_bytes);
        }
        TRY(taken->give(*piece));
    }
    if (begun < covers.size() || (taken && !taken->is_whole())) return refuse("checksums of bytes that no run holds");
    return {};
}

}  // namespace cairn
