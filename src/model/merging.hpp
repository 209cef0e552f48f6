// Merging: images of one node share runs by turns, so that what is alike in them lies near each other where a codec looks at it (sc12, Section III-B: blocks that are interleaved). Pure.
//
// Each image gives so many bytes, then the next one; a run takes as many rounds of these turns as fit. What is longer in one image than in all others is that image's alone. Runs are cut off the
// front of a group when they are wanted, and never listed: of a large share there are millions of turns.
#pragma once

#include <cstdint>
#include <vector>

#include "model/space.hpp"

namespace cairn {

struct MergePolicy {
    std::uint32_t ranks = 1;         // images that share runs; 1: none does
    std::uint64_t turn_bytes = 0;    // whole blocks
    std::uint64_t run_bytes = 0;     // of a run at most: a round of turns fits
    bool operator==(const MergePolicy&) const = default;
};

inline constexpr std::uint32_t merge_ranks_most = 64;
inline constexpr std::uint64_t merged_run_bytes_max = 4 << 20;  // whoever wants one of the images alone decodes all of it

// What is asked for, as far as a run has room for it: turns of whole blocks, shorter ones where all images would not fit otherwise, and then fewer images.
MergePolicy fitting(std::uint32_t ranks, std::uint64_t turn_bytes, std::uint64_t run_bytes, std::uint64_t block_bytes);

// Takes the sources that share runs out of a node's, so many of them together: those that are not small enough to be packed. What stays is as it was, in its order.
std::vector<Pack> take_merged(NodeSources& node, const SpacePolicy& space, const MergePolicy& policy);

// The next run of a group of two or more, of at most so many bytes but for one round, off its front. Where one source is left, it is the caller's alone.
Pack cut_run(Pack& group, const MergePolicy& policy, std::uint64_t bytes_max);

// Up to `blocks` blocks off the end of a group, in whole turns; nothing, where so few are none. Both what stays and what is given may be of fewer sources.
Pack split_end(Pack& group, const MergePolicy& policy, std::uint64_t blocks, std::uint64_t block_bytes);

}  // namespace cairn
