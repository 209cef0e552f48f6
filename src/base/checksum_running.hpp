// The pass of RunningChecksum, compiled once for each kind of processor: a piece is checksummed, then copied while it is in the first cache. To be included behind xxHash's header, by those two alone.
#pragma once

#include <algorithm>
#include <cstring>

#include "base/bytes.hpp"

namespace cairn {
namespace {

constexpr std::size_t pass_bytes = 4096;

// `copy(to, piece)`: all pieces but the first begin where `to` is a multiple of a cache line.
template <class Copy>
inline void add_and_copy(void* state, ByteView bytes, std::byte* to, const Copy& copy) noexcept {
    auto* const xxh3 = static_cast<XXH3_state_t*>(state);
    if (to == nullptr) {
        XXH3_64bits_update(xxh3, bytes.data(), bytes.size());
        return;
    }
    std::size_t next = pass_bytes - (reinterpret_cast<std::uintptr_t>(to) & 63);
    while (!bytes.empty()) {
        const ByteView piece = bytes.first(std::min(next, bytes.size()));
        XXH3_64bits_update(xxh3, piece.data(), piece.size());
        copy(to, piece);
        to += piece.size();
        bytes = bytes.subspan(piece.size());
        next = pass_bytes;
    }
}

}  // namespace
}  // namespace cairn
