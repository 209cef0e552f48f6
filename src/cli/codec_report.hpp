// What `cairn tune --codecs` says of a search (codec_search.hpp): tables for people, and JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/codec_search.hpp"

namespace cairn::cli {

// What was looked at.
struct SampleFacts {
    std::uint64_t files = 0, files_left_out = 0;
    std::uint64_t file_bytes = 0, bytes = 0, described_bytes = 0;  // all; of these, looked at; of these, described
    std::uint64_t images = 0;                                      // 1: all files together
    bool are_ranks = false;                                        // each file is an image
    std::string unmerged;                                          // why nothing was merged, where it was asked for
};

std::string codecs_text(const SampleFacts& sample, const SearchInput& input, const SearchReport& report);
nlohmann::ordered_json codecs_json(const SampleFacts& sample, const SearchInput& input, const SearchReport& report);

}  // namespace cairn::cli
