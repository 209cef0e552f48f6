// One plane of bytes, in whichever way makes it shortest: as it is, as one byte that all are, as a frame of Zstandard, or by how often each value occurs (symbols.hpp). What repeats is
// looked for only where a probe finds that something does: in planes of exponents chance repeats a few bytes everywhere, and to tell them takes more than to tell their values.
#pragma once

#include <cstdint>
#include <memory>

#include "base/bytes.hpp"
#include "base/status.hpp"
#include "model/key_efforts.hpp"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace cairn {

enum class PlaneKind : std::uint8_t { raw = 0, zstd = 1, symbols = 2, same = 3, symbols_below = 4, symbols_after = 5 };

inline constexpr std::size_t plane_head_bytes = 4;  // how many bytes follow (24 bits), and the kind

// A thread's. Planes are at most 2^24 - 1 bytes.
class PlaneCoder {
  public:
    PlaneCoder();
    bool is_whole() const { return words_ && values_ && thorough_ && decompressor_; }
    // How many bytes of `into` it takes; 0: there is no room. `above`: the plane above it; empty: there is none. `estimate`: what its values alone make of it, as a share, by a sample. `is_shared`: of several arrays, one of which may have what another has,
    // so that what looks like noise is looked at.
    std::size_t put(ByteView plane, ByteView above, double estimate, bool is_shared, Effort effort, std::span<std::byte> into) const;
    // Cuts what it has read from `stored`.
    Status get(ByteView& stored, ByteView above, std::span<std::byte> plane) const;

  private:
    struct Free {
        void operator()(ZSTD_CCtx_s* context) const;
        void operator()(ZSTD_DCtx_s* context) const;
    };
    std::size_t put_fast(ByteView plane, double estimate, std::span<std::byte> into, PlaneKind& kind) const;
    std::size_t put_small(ByteView plane, ByteView above, std::span<std::byte> into, PlaneKind& kind) const;

    std::unique_ptr<ZSTD_CCtx_s, Free> words_, values_, thorough_;  // one that looks for what repeats, one that does not, and one that takes its time
    std::unique_ptr<ZSTD_DCtx_s, Free> decompressor_;
};

}  // namespace cairn
