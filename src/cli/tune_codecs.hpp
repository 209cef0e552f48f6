// `cairn tune --codecs FILES`: which flush.codec suits these files, how their images are merged, and how long blocks should be (SC12, Section VI-B: the best is found offline, on a sample of an application's own
// data). Files are mapped; of a sample of any size it takes memory for three runs (flush_runs.hpp), which is some 200 MiB, what a codec takes, and up to 3 MB an image for what is known of its arrays.
#pragma once

#include "base/config.hpp"
#include "base/config_edit.hpp"
#include "cli/command.hpp"

namespace cairn::cli {

inline constexpr std::uint64_t sample_bytes_default = 1ull << 30;

// The changes to make; nothing to change is no error.
Result<std::vector<ConfigChange>> tune_codecs(Console& console, const Arguments& arguments, const Settings& settings);

}  // namespace cairn::cli
