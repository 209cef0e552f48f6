// The one checksum of Cairn: XXH3, 64 bits, seed 0 (xxHash's own specification). FORMAT.md fixes what it covers.
#pragma once

#include "base/bytes.hpp"

namespace cairn {

std::uint64_t checksum(ByteView bytes) noexcept;
// The same without any instructions that not every processor has: what checksum() is on others, and what it is tested against.
std::uint64_t checksum_portable(ByteView bytes) noexcept;

}  // namespace cairn
