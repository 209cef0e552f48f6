// Wanted: which bytes of an image somebody asked for. Asked once for each block and each region of an image, so an answer costs a search and not a
// look at all ranges.
#pragma once

#include <cstdint>
#include <vector>

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
    // The wanted blocks of [offset, offset + length), counted from offset, as increasing runs with gaps between them: what lies with wanted bytes in a block is
    // part of it.
    std::vector<ImageRange> blocks_in(std::uint64_t offset, std::uint64_t length, std::uint64_t block_bytes) const;

    const std::vector<ImageRange>& runs() const noexcept { return runs_; }

  private:
    bool all_;
    std::vector<ImageRange> runs_;  // increasing, what touches joined
};

}  // namespace cairn
