// The same checksum with 256-bit registers; built with -mavx2 and called only where the processor has them (checksum.cpp). Includes as
// little as can be: an inline function of a common header that is compiled here must never be the one the linker keeps for all.
#ifdef CAIRN_CHECKSUM_AVX2
#define XXH_INLINE_ALL
#include <immintrin.h>
#include <xxhash.h>

#include "base/checksum_running.hpp"

namespace cairn {

std::uint64_t checksum_avx2(ByteView bytes) noexcept { return XXH3_64bits(bytes.data(), bytes.size()); }

namespace {

constexpr std::size_t line_bytes = 64, few_bytes = 32 << 10;  // of fewer somebody may want them in the cache

// Stores that the processor does not first read the lines for, and that leave what the caches hold where it is.
void copy_past_caches(std::byte* to, ByteView from) noexcept {
    const std::size_t before = std::min<std::size_t>(-reinterpret_cast<std::uintptr_t>(to) & (line_bytes - 1), from.size());
    std::memcpy(to, from.data(), before);
    std::size_t at = before;
    for (; at + line_bytes <= from.size(); at += line_bytes) {
        const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from.data() + at));
        const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from.data() + at + line_bytes / 2));
        _mm256_stream_si256(reinterpret_cast<__m256i*>(to + at), low);
        _mm256_stream_si256(reinterpret_cast<__m256i*>(to + at + line_bytes / 2), high);
    }
    std::memcpy(to + at, from.data() + at, from.size() - at);
}

}  // namespace

void add_avx2(void* state, ByteView bytes, std::byte* to, bool once) noexcept {
    const auto copy = bytes.size() < few_bytes ? copy_plainly : copy_past_caches;
    if (once) add_once_and_copy(state, bytes, to, copy);
    else add_and_copy(state, bytes, to, copy);
    if (to != nullptr) _mm_sfence();  // other threads are to see them as they see any other store
}

std::uint64_t digest_avx2(const void* state) noexcept { return XXH3_64bits_digest(static_cast<const XXH3_state_t*>(state)); }

}  // namespace cairn
#endif
