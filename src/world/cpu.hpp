// Cpu: work that burns cycles, away from the event loop. Randomness: where every random number comes from.
#pragma once

#include <vector>

#include "world/buffer.hpp"
#include "world/task.hpp"

namespace cairn {

class Cpu {
  public:
    virtual ~Cpu() = default;
    // One checksum for each block of `data`, the last one of what is left; none for an empty slice. The only place where checksums of
    // image data are made.
    virtual Task<std::vector<std::uint64_t>> checksums(Slice data, std::uint64_t block_bytes) = 0;
};

class Randomness {
  public:
    virtual ~Randomness() = default;
    virtual std::uint64_t next() = 0;

    Id128 id() {
        Id128 id;
        while (!id) id = {next(), next()};
        return id;
    }
};

}  // namespace cairn
