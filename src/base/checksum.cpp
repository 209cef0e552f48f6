// XXH3 through libxxhash.
#include "base/checksum.hpp"

#include <xxhash.h>

namespace cairn {

std::uint64_t checksum(ByteView bytes) noexcept { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace cairn
