// Space: how much of a part sources take, and which of them share a run. Pure functions of the sizes, so that whoever plans a share and whoever fills it come to
// the same.
//
// A large source has a place of its own, from a multiple of part_alignment on, and loses less than that at its end. Small ones, of whichever images and nodes, are
// packed: laid end to end in one run. So a part takes little more than its bytes, however small the images are, and no write is smaller for it.
#pragma once

#include <cstdint>
#include <vector>

#include "model/plan.hpp"

namespace cairn {

struct SpacePolicy {
    std::uint64_t block_bytes = 0;
    std::uint64_t pack_bytes = 0;  // of a packed run at most; 0: nothing is packed, and every source takes whole blocks
};

struct NodeSource {
    NodeIndex node = 0;
    Source source;
    bool operator==(const NodeSource&) const = default;
};

// What becomes one run: one source, or several small ones.
using Pack = std::vector<NodeSource>;

// In the order of the nodes and of their sources; those without bytes are left out. Sources of less than half a pack are packed, so that a full pack is more than
// half full.
std::vector<Pack> packs_of(const std::vector<NodeSources>& nodes, const SpacePolicy& policy);

std::uint64_t bytes_of(const Pack& pack);
std::uint64_t space_of(std::uint64_t bytes, const SpacePolicy& policy);            // of a run
std::uint64_t space_of(const std::vector<NodeSources>& nodes, const SpacePolicy& policy);  // of all their packs

// Raw bytes of the next chunk that is to be encoded, by what became of those before it (0, 0: nothing is known). A run begins at a multiple of part_alignment, and so
// loses half of that on average: a run that is encoded should be long enough for that to be less than a hundredth of it.
std::uint64_t encoded_chunk_bytes(std::uint64_t raw_bytes, std::uint64_t stored_bytes);

}  // namespace cairn
