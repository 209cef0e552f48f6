// Runs of images of one node as a leader cuts them that writes all of them into one part: the engine's own list of work, and its own lengths, without a cluster around it.
#pragma once

#include <vector>

#include "base/config.hpp"
#include "cli/codec_trials.hpp"
#include "model/merging.hpp"

namespace cairn::cli {

// What decides how runs are cut.
struct RunSettings {
    std::uint64_t block_bytes = 1 << 20, buffer_bytes = 64 << 20;
    std::uint32_t writers = 8;
    std::uint64_t share_bytes = 0;         // of all images, of which the ones at hand may be a sample
    double storage_bytes_per_s = 0;        // 0: as fast as one likes
    MergePolicy merge = {};
};
// With a codec, and nothing merged. `image_bytes` in all.
RunSettings run_settings(const Settings::Flush& flush, std::uint64_t image_bytes, double storage_bytes_per_s);
// As many images together as there may be, at most `ranks`, with turns of at most so many bytes, in blocks of block_bytes; nothing where fewer than two fit.
MergePolicy merge_policy(const RunSettings& settings, std::uint32_t ranks, std::uint64_t merge_bytes);

// The longest run that is tried, whatever the settings allow: memory for three of them is needed.
inline constexpr std::uint64_t tried_run_bytes_max = 64 << 20;

// `images`: bytes of each. Of one version; ends when all of them are taken.
NextRun flush_runs(const std::vector<std::uint64_t>& images, const RunSettings& settings);

}  // namespace cairn::cli
