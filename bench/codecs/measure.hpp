// What each pipeline makes of a set, merged in each way: sizes, seconds of the processor, and whether all comes back.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "codecs/set.hpp"

namespace cairn::bench {

struct Plan {
    std::vector<std::uint64_t> block_bytes = {512, 4 << 10, 32 << 10, 256 << 10, 1 << 20};
    std::vector<std::uint32_t> groups = {1, 2, 4, 8, 16, 32, 64};
    std::uint64_t middle_block_bytes = 32 << 10;  // with smaller groups than all ranks, and unless all is wanted, this one alone
    bool is_all = false;
    int repeats = 1;                              // the median counts, with all ranks in one group
    std::vector<std::string> only;                // names of pipelines; empty: all
    bool is_largest_group_alone = false;          // one group of all ranks, and no padding
    Options options;
    bool is_damaged = false;                      // for tests: one byte of what was stored is changed, which must not go unnoticed
};

nlohmann::ordered_json facts_of(const Set& set);
// A row for each pipeline, one and two passes. Throws std::runtime_error where something does not come back as it was.
nlohmann::ordered_json rows_of(const Set& set, const Plan& plan);
// For programs in other languages: all arrays of a key one behind the other, in NAME.bin, and where and what they are, in NAME.json.
void export_set(const Set& set, const std::string& folder);

}  // namespace cairn::bench
