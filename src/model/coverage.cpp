#include "model/coverage.hpp"

namespace cairn {

namespace {

// The finisher of splitmix64: every bit of the result depends on every bit of `x`.
std::uint64_t mix(std::uint64_t x) {
    x += 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

}  // namespace

std::uint64_t coverage(Rank rank, std::uint64_t image_offset, std::uint64_t length) {
    const std::uint64_t of_rank = mix(rank);
    return mix(of_rank ^ (image_offset + length)) - mix(of_rank ^ image_offset);
}

}  // namespace cairn
