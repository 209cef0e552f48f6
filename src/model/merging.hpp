// Merging: images of one node share runs by turns, so that what is alike in them lies near each other where a codec looks at it (sc12, Section III-B: blocks that are interleaved); and whether
// versions are merged, by what trials made of the same bytes by turns and apart. Pure.
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
inline constexpr std::uint32_t merge_ranks_chosen = 16;  // where nobody says how many: a set dealt out to more gets hardly shorter, and who wants one of them decodes all
inline constexpr std::uint64_t merged_run_bytes_max = 4 << 20;  // whoever wants one of the images alone decodes all of it

// What is asked for, as far as a run has room for it: turns of whole blocks, shorter ones where all images would not fit otherwise, and then fewer images.
MergePolicy fitting(std::uint32_t ranks, std::uint64_t turn_bytes, std::uint64_t run_bytes, std::uint64_t block_bytes);

// What was chosen elsewhere, as far as a run has room for it here: the same turns, of fewer images. Turns are not made shorter, since footers have room for as many as were counted.
MergePolicy as_chosen(std::uint32_t ranks, std::uint64_t turn_bytes, std::uint64_t run_bytes, std::uint64_t block_bytes);

// Takes the sources that share runs out of a node's, so many of them together: those that are not small enough to be packed. What stays is as it was, in its order.
std::vector<Pack> take_merged(NodeSources& node, const SpacePolicy& space, const MergePolicy& policy);

// The next run of a group of two or more, of at most so many bytes but for one round, off its front. Where one source is left, it is the caller's alone.
Pack cut_run(Pack& group, const MergePolicy& policy, std::uint64_t bytes_max);

// Up to `blocks` blocks off the end of a group, in whole turns; nothing, where so few are none. What is given may be of fewer sources; what stays is of all of them, or nothing.
Pack split_end(Pack& group, const MergePolicy& policy, std::uint64_t blocks, std::uint64_t block_bytes);

// What a version's leaders were asked for and told: of trials since the version before, since one may be over when its own version is reported.
struct MergeTried {
    bool is_asked = false;                     // to try it with this version
    double apart_bytes = 0, merged_bytes = 0;  // what the same bytes of several images are stored in, image by image and by turns; 0: nothing was told
    double raw_bytes = 0;                      // how many they are
};

// Whether versions are merged, from version to version: a trial must promise enough to pay for what merging costs a reader, and the next one, of another place, must say the same. So it is given
// up again.
class MergeChoice {
  public:
    bool merges() const { return merges_; }                // the next version
    bool tries() const { return versions_ >= trial_due_; }  // the next version should have a trial
    double shorter() const { return shorter_; }             // apart by merged, in the last trial; 1: there was none
    void record(const MergeTried& tried);  // of each version that was committed

  private:
    bool merges_ = false;
    double shorter_ = 1;
    std::uint32_t against_ = 0;  // trials in a row that say otherwise
    std::uint64_t versions_ = 0, trial_due_ = 0, trials_apart_ = 1;
};

}  // namespace cairn
