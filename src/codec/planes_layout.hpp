// How the bytes of a run are dealt out by predict-planes-zstd: which of them make a stretch, and what is left, the rest.
//
// Arrays that are alike (NumberArray::key) and short come together in one stretch, as mcrEngine (SC12, Section III-B, "aware" merging) puts the same variable of several processes side by side: a plane of
// each alone is too short for a codec to learn from. Of these each stretch has those that look alike, too: where noise begins, and whether anything moves. Long ones are cut. What is nobody's, or too little, is the rest. FORMAT.md ("Codecs") says how it is stored.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "base/status.hpp"
#include "model/number_array.hpp"

namespace cairn {

inline constexpr std::size_t stretch_bytes = 256 << 10;  // at most; so that all of it stays in a core's cache

struct RunPiece {
    std::size_t offset = 0, length = 0;  // in the run, bytes
    std::uint32_t stretch = 0;
    bool operator==(const RunPiece&) const = default;
};

struct RunLayout {
    std::vector<RunPiece> pieces;  // by offset, none over another
    std::uint32_t stretches = 0;   // each has a piece
    // The pieces stretch by stretch, each in their order in the run.
    std::vector<RunPiece> by_stretch() const;
};

// `arrays`: believed in nothing; what makes no sense is the rest. `kinds`: of each stretch, what its numbers are; offset and length mean nothing.
RunLayout lay_out(ByteView run, std::span<const NumberArray> arrays, std::vector<NumberArray>& kinds);

// How many bytes of `into` it takes; 0: there is no room.
std::size_t put_layout(const RunLayout& layout, std::span<std::byte> into);
// Cuts what it has read from `stored`. corrupt: it is none of a run of so many bytes.
Result<RunLayout> get_layout(ByteView& stored, std::size_t run_bytes);

}  // namespace cairn
