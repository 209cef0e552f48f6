// Memory: how much this node has for us, how much of it the buffers may take, how much this process holds (rule 9).
#pragma once

#include <cstdint>
#include <string>

#include "base/status.hpp"

namespace cairn {

// The smallest of the machine's memory and the limits of our control groups. `root` holds proc/ and sys/; tests make
// their own.
Result<std::uint64_t> node_memory_bytes(const std::string& root = "");
// What of it could be taken now without taking it from a program: page cache counts as free.
Result<std::uint64_t> available_memory_bytes(const std::string& root = "");

// The largest ring of buffers within `share` of `memory_bytes`: first fewer buffers, down to 2, then smaller ones, down
// to a block.
struct Ring {
    std::uint32_t buffers = 0;
    std::uint64_t buffer_bytes = 0;
    bool operator==(const Ring&) const = default;
};
Ring fit_ring(Ring wanted, std::uint64_t block_bytes, std::uint64_t memory_bytes, double share);

// What of a ring's memory is for buffers, and what for codecs to work in: `thread_bytes` for each thread that encodes, and `encode_buffers` of a follower that does. All of it together takes no more than the ring
// would, but that there are two buffers (or as many as the ring has), and one thread.
struct RingUse {
    std::uint32_t buffers = 0, encode_buffers = 0;
    unsigned threads = 0;  // at most as many as half of the memory is enough for
    bool operator==(const RingUse&) const = default;
};
RingUse divide_ring(Ring ring, std::uint64_t thread_bytes, unsigned threads, std::uint32_t encode_buffers);

// Anonymous memory of this process now, and the most seen by any call so far.
struct AnonymousMemory {
    std::uint64_t now_bytes = 0;
    std::uint64_t peak_bytes = 0;
};
AnonymousMemory sample_anonymous_memory();

}  // namespace cairn
