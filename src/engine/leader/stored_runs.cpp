#include "engine/leader/stored_runs.hpp"

#include <algorithm>

namespace cairn::engine {

namespace {

bool is_plain(const StoredRun& run) { return run.codec == 0 && run.pieces.size() == 1; }

bool goes_on(const StoredRun& before, const StoredRun& run, std::uint64_t block_bytes) {
    if (!is_plain(before) || !is_plain(run)) return false;
    const StoredPiece &a = before.pieces.front(), &b = run.pieces.front();
    return a.rank == b.rank && a.length % block_bytes == 0 && a.image_offset + a.length == b.image_offset && before.part_offset + before.stored_bytes == run.part_offset;
}

// The front of a plain run, of so many blocks, taken off it.
StoredRun cut_front(StoredRun& run, std::uint64_t blocks, std::uint64_t block_bytes) {
    StoredPiece& piece = run.pieces.front();
    const std::uint64_t bytes = blocks * block_bytes;
    const auto end = piece.checksums.begin() + static_cast<std::ptrdiff_t>(blocks);
    StoredRun front{run.part_offset, bytes, 0, 0, {{piece.rank, piece.image_offset, bytes, 0, {piece.checksums.begin(), end}}}};
    piece.checksums.erase(piece.checksums.begin(), end);
    piece.image_offset += bytes;
    piece.length -= bytes;
    run.part_offset += bytes;
    run.stored_bytes -= bytes;
    return front;
}

std::uint64_t checksums_in(const StoredRun& run) {
    std::uint64_t sum = 0;
    for (const StoredPiece& piece : run.pieces) sum += piece.checksums.size();
    return sum;
}

}  // namespace

void join_runs(std::vector<StoredRun>& runs, std::uint64_t block_bytes) {
    std::sort(runs.begin(), runs.end(), [](const StoredRun& a, const StoredRun& b) { return a.part_offset < b.part_offset; });
    std::vector<StoredRun> joined;
    for (StoredRun& run : runs) {
        if (joined.empty() || !goes_on(joined.back(), run, block_bytes)) {
            joined.push_back(std::move(run));
            continue;
        }
        StoredRun& before = joined.back();
        StoredPiece &into = before.pieces.front(), &from = run.pieces.front();
        before.stored_bytes += run.stored_bytes;
        into.length += from.length;
        into.checksums.insert(into.checksums.end(), from.checksums.begin(), from.checksums.end());
    }
    runs = std::move(joined);
}

std::vector<std::vector<StoredRun>> cut_for_messages(std::vector<StoredRun> runs, std::uint64_t block_bytes, const FlushLimits& limits) {
    std::vector<std::vector<StoredRun>> messages(1);
    std::uint64_t blocks = 0, pieces = 0;
    const auto begin_next = [&] {
        messages.emplace_back();
        blocks = pieces = 0;
    };
    for (StoredRun& run : runs) {
        while (is_plain(run) && run.pieces.front().checksums.size() > limits.message_blocks) {
            if (!messages.back().empty()) begin_next();
            messages.back().push_back(cut_front(run, limits.message_blocks, block_bytes));
            begin_next();
        }
        const std::uint64_t count = checksums_in(run);
        if (!messages.back().empty() && (blocks + count > limits.message_blocks || pieces + run.pieces.size() > limits.message_pieces)) begin_next();
        blocks += count;
        pieces += run.pieces.size();
        messages.back().push_back(std::move(run));
    }
    return messages;
}

}  // namespace cairn::engine
