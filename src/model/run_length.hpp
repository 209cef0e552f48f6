// How long a chunk is that a leader takes next, and so a run that is encoded. A pure function of sizes, so that whoever tries settings offline (`cairn tune --codecs`) cuts runs as a flush would.
#pragma once

#include <cstdint>

namespace cairn {

struct ChunkLimits {
    std::uint64_t block_bytes = 0;
    std::uint64_t chunk_bytes_max = 0;          // chunk_bytes() of the share
    std::uint64_t encoded_chunk_bytes_max = 0;  // of a run that is encoded; 0: none is
    std::uint64_t least_chunk_bytes = 0;
};

// `writer_bytes`: what one writer may have begun by the pace of storage. `raw_bytes` of runs before this one were stored in `stored_bytes`; 0, 0: nothing is known. Whole blocks, one at least.
std::uint64_t next_chunk_bytes(const ChunkLimits& limits, std::uint64_t writer_bytes, std::uint64_t raw_bytes, std::uint64_t stored_bytes);

}  // namespace cairn
