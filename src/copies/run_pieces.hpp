// Which bytes of a run a rank takes that another rank of its node has read: its pieces, one behind the other; or all of it, where that is less. Of this room alone.
#pragma once

#include <vector>

#include "copies/encoded_runs.hpp"
#include "copies/shared_runs.hpp"

namespace cairn {

struct RunPieces {
    struct Stretch {
        std::uint64_t from = 0, to = 0, length = 0;  // in the run, in memory
    };
    std::vector<Stretch> stretches;  // of the run, each a read
    std::map<std::uint32_t, std::uint64_t> places;  // as RunBytes has them
    std::uint64_t bytes = 0;

    // `pieces`: increasing. They may have bytes in common (flush.equal_pages): one rank may want many times as many as the run has.
    RunPieces(const StoredRun& run, const std::vector<std::uint32_t>& pieces, bool is_whole) {
        std::uint64_t of_pieces = 0;
        for (const std::uint32_t index : pieces) of_pieces += run.pieces[index].length;
        if (is_whole || of_pieces > raw_bytes(run)) {
            stretches.push_back({0, 0, bytes = raw_bytes(run)});
            return;
        }
        for (const std::uint32_t index : pieces) {
            const StoredPiece& piece = run.pieces[index];
            places.emplace(index, bytes);
            if (!stretches.empty() && stretches.back().from + stretches.back().length == piece.at) stretches.back().length += piece.length;
            else stretches.push_back({piece.at, bytes, piece.length});
            bytes += piece.length;
        }
    }
};

// Not ok: they are not there any more. Nothing of them was looked at yet.
inline Task<Status> take_pieces(SharedRuns& node, const SharedRuns::Shared& run, const RunPieces& pieces, Slice memory) {
    for (const RunPieces::Stretch& each : pieces.stretches) {
        Slice into = memory.part(each.to, each.length);
        Status taken = co_await node.take(run, each.from, std::move(into));
        if (!taken.ok()) co_return taken;
    }
    co_return Status();
}

}  // namespace cairn
