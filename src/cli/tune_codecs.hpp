// `cairn tune --codecs FILES`: which flush.codec suits these files, and what it makes of them (SC12, Section VI-B: the best is found offline, on a sample of an application's own data).
#pragma once

#include "base/config.hpp"
#include "base/config_edit.hpp"
#include "cli/codec_trials.hpp"
#include "cli/command.hpp"

namespace cairn::cli {

// What was tried: a value of flush.codec, and what it makes of the files.
struct TriedSetting {
    std::string value;
    CodecTrial trial;
};

// The value that makes the files durable soonest where storage takes so many bytes a second of one node, and so many threads of it encode. storage_bytes_per_s 0: nobody knows, so the daemons
// find out ("auto"), but where nothing gets a sixteenth shorter. What stores them as they are wins where no other is worth 2 %.
std::string best_setting(const std::vector<TriedSetting>& tried, double storage_bytes_per_s, unsigned threads);

// The change to make; nothing to change is no error.
Result<std::vector<ConfigChange>> tune_codecs(Console& console, const Arguments& arguments, const Settings& settings);

}  // namespace cairn::cli
