// MemoryMap: which addresses of this process can be read or written, so that a region that is not mapped is an error
// with a name and not a SIGSEGV. One look at /proc/self/maps serves a whole checkpoint.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.hpp"

namespace cairn {

class MemoryMap {
  public:
    // Of now: memory that another thread unmaps meanwhile is not seen.
    static Result<MemoryMap> read();

    bool readable(const void* data, std::uint64_t bytes) const { return covered(readable_, data, bytes); }
    bool writable(const void* data, std::uint64_t bytes) const { return covered(writable_, data, bytes); }

  private:
    struct Run {
        std::uint64_t begin, end;
    };
    static void add(std::vector<Run>& runs, Run run);
    static bool covered(const std::vector<Run>& runs, const void* data, std::uint64_t bytes);
    std::vector<Run> readable_, writable_;  // increasing, neighbours joined
};

}  // namespace cairn
