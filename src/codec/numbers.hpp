// delta-shuffle-zstd: arrays of numbers, and records of them. What lies a record apart is alike, so its difference is small: each number loses the one a record before
// it (as integers, whatever they are), the sign goes to the lowest bit, bytes of the same significance come together, and zstd at level 1 takes the rest.
//
// How wide a number is, and how many make a record, is not told: both are found for each MiB, on a sample, by what becomes shortest. A MiB of which no way makes the
// sample a sixteenth shorter is left as it is. FORMAT.md ("Codecs") says what is stored.
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.hpp"
#include "base/status.hpp"

namespace cairn {

constexpr std::uint64_t numbers_bytes_min = 16 << 10;  // less is not worth the look at a sample

// The bytes that `into` holds then; 0: it is best stored as it is, or there was no memory. Of memory each thread that ever encodes keeps 2 MiB, and what zstd needs.
std::uint64_t encode_numbers(ByteView raw, std::span<std::byte> into);
// corrupt: `stored` makes other than so many bytes. out_of_space: no memory for a workspace of 1 MiB.
Status decode_numbers(ByteView stored, std::span<std::byte> into);

}  // namespace cairn
