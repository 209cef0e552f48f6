// In which order the readers of one reading take its reads: each part front to back, several parts at once. A plain value.
//
// Parts lie on different targets, so who reads one after the other has one target's rate, and all others wait. Whoever is free takes the next read of the part of which the fewest bytes are
// being read, so that a slow target holds only its own reads back; of those the part of which most is left, so that all end together. Nodes whose images lie in different parts begin
// with different ones.
#pragma once

#include <optional>
#include <vector>

#include "copies/restore.hpp"

namespace cairn {

class ReadTurns {
  public:
    // Those of one part follow each other, as plan_part_reads() has them.
    explicit ReadTurns(const std::vector<PartRead>& reads);

    bool is_empty() const noexcept;  // all are taken
    std::optional<std::size_t> take();  // its index
    void ended(std::size_t index);      // of a read that was taken

  private:
    struct Part {
        std::size_t next = 0, end = 0;  // indices of reads
        std::uint64_t left_bytes = 0, reading_bytes = 0;
    };
    std::vector<std::uint64_t> bytes_;   // of each read
    std::vector<std::size_t> part_of_;   // of each read, in parts_
    std::vector<Part> parts_;
};

}  // namespace cairn
