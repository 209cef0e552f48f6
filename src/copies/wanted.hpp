// Wanted: which bytes of an image somebody asked for. Asked once for each unit and each region of an image, so an answer costs a search and not a
// look at all ranges.
#pragma once

#include <cstdint>
#include <vector>

#include "model/checksum_units.hpp"

namespace cairn {

// A run of an image.
struct ImageRange {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    bool operator==(const ImageRange&) const = default;
};

class Wanted {
  public:
    // In any order, overlapping or not. None at all: the whole image.
    explicit Wanted(std::vector<ImageRange> ranges);
    bool touches(std::uint64_t offset, std::uint64_t length) const;
    // The wanted units of a run of the image, of `length` bytes: what lies with wanted bytes in a unit is part of it. Increasing runs, each of at most `bytes_max`,
    // a multiple of the block size; of those that meet all but the first begin on a block.
    std::vector<ImageRange> units_in(const Units& units, std::uint64_t length, std::uint64_t bytes_max) const;

    const std::vector<ImageRange>& runs() const noexcept { return runs_; }

  private:
    bool all_;
    std::vector<ImageRange> runs_;  // increasing, what touches joined
};

}  // namespace cairn
