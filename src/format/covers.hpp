// Covers: which raw bytes of which images a part holds, with their checksums, apart from the runs in which they are stored. On disk and in messages a cover
// joins what lies side by side in an image, in whatever runs it is; in memory each piece of a run has its own checksums.
#pragma once

#include <vector>

#include "base/status.hpp"
#include "model/types.hpp"

namespace cairn {

// Raw bytes of one image: whole units (model/checksum_units.hpp).
struct Cover {
    Rank rank = 0;
    std::uint64_t image_offset = 0;
    std::uint64_t length = 0;
    std::vector<std::uint64_t> checksums;  // one a unit
    std::vector<std::uint64_t> cuts;       // where units end besides blocks: in the image, within the cover
};

// Of all pieces, by rank and image offset. What is side by side is one.
std::vector<Cover> covers_of(const std::vector<StoredRun>& runs, std::uint64_t block_bytes);

// The reverse: gives each piece its checksums and cuts. corrupt where covers and pieces are not of the same bytes, each once, or a piece is no whole units. Pieces without bytes have none.
Status give_checksums(std::vector<StoredRun>& runs, const std::vector<Cover>& covers, std::uint64_t block_bytes);

// Whether no byte of an image is in two pieces.
Status check_pieces_apart(const std::vector<StoredRun>& runs);

}  // namespace cairn
