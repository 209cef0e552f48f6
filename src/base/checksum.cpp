// XXH3 from xxHash's own header, compiled in here: Debian's library is built for the least of all x86 processors, and half as fast on data
// that comes from memory. Twice, so that processors with AVX2 get it; which one is asked once.
#define XXH_INLINE_ALL
#include "base/checksum.hpp"

#include <xxhash.h>

namespace cairn {

#ifdef CAIRN_CHECKSUM_AVX2
std::uint64_t checksum_avx2(ByteView bytes) noexcept;  // checksum_avx2.cpp

std::uint64_t checksum(ByteView bytes) noexcept {
    static const bool avx2 = __builtin_cpu_supports("avx2");
    return avx2 ? checksum_avx2(bytes) : checksum_portable(bytes);
}
#else
std::uint64_t checksum(ByteView bytes) noexcept { return checksum_portable(bytes); }
#endif

std::uint64_t checksum_portable(ByteView bytes) noexcept { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace cairn
