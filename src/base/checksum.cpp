// XXH3 from xxHash's own header, compiled in here: Debian's library is built for the least of all x86 processors, and half as fast on data
// that comes from memory. Twice, so that processors with AVX2 get it; which one is asked once.
#define XXH_INLINE_ALL
#include "base/checksum.hpp"

#include <xxhash.h>

#include "base/checksum_running.hpp"

namespace cairn {

#ifdef CAIRN_CHECKSUM_AVX2
// checksum_avx2.cpp
std::uint64_t checksum_avx2(ByteView bytes) noexcept;
void add_avx2(void* state, ByteView bytes, std::byte* to, bool once) noexcept;
std::uint64_t digest_avx2(const void* state) noexcept;

namespace {

bool has_avx2() noexcept {
    static const bool has = __builtin_cpu_supports("avx2");
    return has;
}

}  // namespace

std::uint64_t checksum(ByteView bytes) noexcept { return has_avx2() ? checksum_avx2(bytes) : checksum_portable(bytes); }
#else
namespace {

constexpr bool has_avx2() noexcept { return false; }
void add_avx2(void*, ByteView, std::byte*, bool) noexcept {}
std::uint64_t digest_avx2(const void*) noexcept { return 0; }

}  // namespace

std::uint64_t checksum(ByteView bytes) noexcept { return checksum_portable(bytes); }
#endif

std::uint64_t checksum_portable(ByteView bytes) noexcept { return XXH3_64bits(bytes.data(), bytes.size()); }

RunningChecksum::RunningChecksum(bool portable) noexcept : wide_(!portable && has_avx2()) {
    static_assert(sizeof(XXH3_state_t) <= state_bytes && alignof(XXH3_state_t) <= 64);
    XXH3_64bits_reset(new (state_) XXH3_state_t);
}

void RunningChecksum::add(ByteView bytes, std::byte* to) noexcept {
    if (wide_) add_avx2(state_, bytes, to, false);
    else add_and_copy(state_, bytes, to, copy_plainly);
}

void RunningChecksum::add_once(ByteView bytes, std::byte* to) noexcept {
    if (wide_) add_avx2(state_, bytes, to, true);
    else add_once_and_copy(state_, bytes, to, copy_plainly);
}

std::uint64_t RunningChecksum::take() noexcept {
    auto* const state = reinterpret_cast<XXH3_state_t*>(state_);
    const std::uint64_t sum = wide_ ? digest_avx2(state) : XXH3_64bits_digest(state);
    XXH3_64bits_reset(state);
    return sum;
}

}  // namespace cairn
