#include "engine/leader/stored_runs.hpp"

#include <algorithm>
#include <optional>

#include "model/checksum_units.hpp"

namespace cairn::engine {

namespace {

bool is_plain(const StoredRun& run) { return run.codec == 0 && run.pieces.size() == 1; }

bool goes_on(const StoredRun& before, const StoredRun& run) {
    if (!is_plain(before) || !is_plain(run)) return false;
    const StoredPiece &a = before.pieces.front(), &b = run.pieces.front();
    return a.rank == b.rank && a.image_offset + a.length == b.image_offset && before.part_offset + before.stored_bytes == run.part_offset;
}

// The front of a plain run, of at most so many units and whole blocks, taken off it: the part is written in pages, and none is divided. Nothing, where the run
// ends before that many.
std::optional<StoredRun> cut_front(StoredRun& run, std::uint64_t units_max, std::uint64_t block_bytes) {
    StoredPiece& piece = run.pieces.front();
    const std::vector<std::uint64_t> ends = unit_ends({block_bytes, piece.image_offset, piece.cuts}, piece.length);
    std::size_t units = units_max;
    while (units > 0 && (piece.image_offset + ends[units - 1]) % block_bytes != 0) --units;
    if (units == 0)  // more cuts in one block than a message is to hold
        while (units < ends.size() && (units == 0 || (piece.image_offset + ends[units - 1]) % block_bytes != 0)) ++units;
    if (units == ends.size()) return std::nullopt;
    const std::uint64_t bytes = ends[units - 1];
    const auto end = piece.checksums.begin() + static_cast<std::ptrdiff_t>(units);
    StoredRun front{run.part_offset, bytes, 0, 0, {{piece.rank, piece.image_offset, bytes, 0, {piece.checksums.begin(), end}, cuts_within(piece.cuts, piece.image_offset, bytes)}}};
    piece.checksums.erase(piece.checksums.begin(), end);
    piece.cuts = cuts_within(piece.cuts, piece.image_offset + bytes, piece.length - bytes);
    piece.image_offset += bytes;
    piece.length -= bytes;
    run.part_offset += bytes;
    run.stored_bytes -= bytes;
    return front;
}

std::uint64_t numbers_in(const StoredRun& run) {
    std::uint64_t sum = 0;
    for (const StoredPiece& piece : run.pieces) sum += piece.checksums.size() + piece.cuts.size();
    return sum;
}

}  // namespace

void join_runs(std::vector<StoredRun>& runs, std::uint64_t block_bytes) {
    std::sort(runs.begin(), runs.end(), [](const StoredRun& a, const StoredRun& b) { return a.part_offset < b.part_offset; });
    std::vector<StoredRun> joined;
    for (StoredRun& run : runs) {
        if (joined.empty() || !goes_on(joined.back(), run)) {
            joined.push_back(std::move(run));
            continue;
        }
        StoredRun& before = joined.back();
        StoredPiece &into = before.pieces.front(), &from = run.pieces.front();
        before.stored_bytes += run.stored_bytes;
        into.length += from.length;
        into.checksums.insert(into.checksums.end(), from.checksums.begin(), from.checksums.end());
        append_cuts(into.cuts, from.image_offset, from.cuts, block_bytes);
    }
    runs = std::move(joined);
}

std::vector<std::vector<StoredRun>> cut_for_messages(std::vector<StoredRun> runs, std::uint64_t block_bytes, const FlushLimits& limits) {
    std::vector<std::vector<StoredRun>> messages(1);
    std::uint64_t numbers = 0, pieces = 0;
    const auto begin_next = [&] {
        messages.emplace_back();
        numbers = pieces = 0;
    };
    for (StoredRun& run : runs) {
        while (is_plain(run) && run.pieces.front().checksums.size() > limits.message_units) {
            std::optional<StoredRun> front = cut_front(run, limits.message_units, block_bytes);
            if (!front) break;
            if (!messages.back().empty()) begin_next();
            messages.back().push_back(std::move(*front));
            begin_next();
        }
        const std::uint64_t count = numbers_in(run);
        if (!messages.back().empty() && (numbers + count > limits.message_units || pieces + run.pieces.size() > limits.message_pieces)) begin_next();
        numbers += count;
        pieces += run.pieces.size();
        messages.back().push_back(std::move(run));
    }
    return messages;
}

}  // namespace cairn::engine
