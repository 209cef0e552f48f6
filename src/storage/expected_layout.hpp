// What a version of a job would look like on its storage, with the settings as they are: how many files, how evenly they fill the targets, and what would fill them
// better. The arithmetic is that of a flush (placement.hpp, target_map.hpp), for nodes that hold equally many ranks and ranks that hold equally many bytes. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/types.hpp"

namespace cairn {

struct LayoutQuestion {
    FileLayout layout = FileLayout::parts;
    std::uint32_t files = 0;  // the setting: 0 is one a node
    std::uint32_t nodes = 1, ranks = 1;
    std::uint32_t targets = 0;  // 0: nobody can choose
    bool spans = false;         // a file can lie on several of them
    std::uint64_t bytes = 0;    // of all images
    std::uint64_t block_bytes = 1 << 20;
};

struct ExpectedLayout {
    std::uint32_t files = 0;
    std::uint32_t stripes = 1;  // of each
    std::string why;  // there are so many
    std::uint32_t targets_filled = 0;
    std::uint64_t fullest_bytes = 0, mean_bytes = 0;  // of one target; the mean of all that there are
    std::vector<std::string> hints;                   // what would be more even
};

ExpectedLayout expected_layout(const LayoutQuestion& question);

}  // namespace cairn
