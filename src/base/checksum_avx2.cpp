// The same checksum with 256-bit registers; built with -mavx2 and called only where the processor has them (checksum.cpp). Includes as
// little as can be: an inline function of a common header that is compiled here must never be the one the linker keeps for all.
#ifdef CAIRN_CHECKSUM_AVX2
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/bytes.hpp"

namespace cairn {

std::uint64_t checksum_avx2(ByteView bytes) noexcept { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace cairn
#endif
