#include "model/run_length.hpp"

#include <algorithm>

#include "model/space.hpp"

namespace cairn {

std::uint64_t next_chunk_bytes(const ChunkLimits& limits, std::uint64_t writer_bytes, std::uint64_t raw_bytes, std::uint64_t stored_bytes) {
    // Who wants a slice of a region decodes the run that it lies in: so long ones are no longer than that, where they can be stored in enough bytes.
    constexpr std::uint64_t encoded_turn_max = 4 << 20;
    const std::uint64_t turn_max = limits.encoded_chunk_bytes_max > 0 ? std::min(limits.chunk_bytes_max, encoded_turn_max) : limits.chunk_bytes_max;
    const std::uint64_t turn = std::min(turn_max, writer_bytes);
    const std::uint64_t encoded = std::min(limits.encoded_chunk_bytes_max, encoded_chunk_bytes(raw_bytes, stored_bytes));
    return std::max(limits.block_bytes, std::max({turn, encoded, limits.least_chunk_bytes}) / limits.block_bytes * limits.block_bytes);
}

}  // namespace cairn
