// The search of `cairn tune --codecs`: which codec, how images are merged and how long blocks are, one after the other, each with the best of what came before (coordinate descent). What a combination makes of
// the data is another's to say, so that this is a pure function of its answers.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/config_edit.hpp"
#include "cli/codec_trials.hpp"

namespace cairn::cli {

// Settings that go together. merge_ranks 1: each image has its own runs, and merge_bytes says nothing.
struct Combination {
    std::string codec;  // of flush.codec
    Method method;      // what that comes to
    std::uint32_t merge_ranks = 1;
    std::uint64_t merge_bytes = 0, block_bytes = 0;
    std::uint32_t images = 1;  // that share a run then, at most: as many as there is room for
};
struct Tried {
    Combination combination;
    CodecTrial trial;
};

struct SearchInput {
    Settings::Flush present;
    double storage_bytes_per_s = 0;  // of one node; 0: nobody knows
    unsigned threads = 1;            // that encode
    std::uint32_t images = 1;        // that can share runs
};
using TryIt = std::function<Result<CodecTrial>(const Combination& combination)>;

struct SearchReport {
    std::vector<Tried> codecs, merged, blocks;  // in the order in which they were tried
    // The best values, those of today among them.
    std::string codec;
    std::uint32_t merge_ranks = 0;
    std::uint64_t merge_bytes = 0, block_bytes = 0;
    Combination best;                   // what of those that were tried this comes to; where nobody knows the rate of storage auto is not tried, and fast stands for it
    double gain = 1;                    // reached() today by reached() then
    bool is_refuted = false;            // another seemed better, and was not when both were tried again: all stays as it is set
    std::vector<ConfigChange> changes;  // of what is set today
};

// What is not worth 2 % stays as it is, and what daemons find out by themselves (auto, 0) goes before what is fixed. Without a rate of storage the codec is auto, but where nothing gets a sixteenth
// shorter, and turns and blocks are those that make what fast stores shortest.
// Whoever is best of many by time was also lucky, so with a rate of storage the best and what is set are tried again, by turns, and only that counts in the end.
Result<SearchReport> search_codecs(const SearchInput& input, const TryIt& try_it);
// As many trials as that may take.
std::uint64_t trials_most(const SearchInput& input);

// The value of flush.codec, as cairn.toml has it.
std::string codec_text(const Settings::Flush& flush);

// Seconds until all that was tried is durable; where nobody knows the rate of storage, bytes. Less is better.
double reached(const SearchInput& input, const CodecTrial& trial);

}  // namespace cairn::cli
