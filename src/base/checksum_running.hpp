// The pass of RunningChecksum, compiled once for each kind of processor: a piece is checksummed, then copied while it is in the first cache. To be included behind xxHash's header, by those two alone.
#pragma once

#include <algorithm>
#include <cstring>

#include "base/bytes.hpp"

namespace cairn {
namespace {

constexpr std::size_t pass_bytes = 4096;

// `each(to, piece)`: all pieces but the first begin where `to` is a multiple of a cache line.
template <class Each>
inline void pass(ByteView bytes, std::byte* to, const Each& each) noexcept {
    std::size_t next = pass_bytes - (reinterpret_cast<std::uintptr_t>(to) & 63);
    while (!bytes.empty()) {
        const ByteView piece = bytes.first(std::min(next, bytes.size()));
        each(to, piece);
        to += piece.size();
        bytes = bytes.subspan(piece.size());
        next = pass_bytes;
    }
}

template <class Copy>
inline void add_and_copy(void* state, ByteView bytes, std::byte* to, const Copy& copy) noexcept {
    auto* const xxh3 = static_cast<XXH3_state_t*>(state);
    if (to == nullptr) {
        XXH3_64bits_update(xxh3, bytes.data(), bytes.size());
        return;
    }
    pass(bytes, to, [&](std::byte* into, ByteView piece) {
        XXH3_64bits_update(xxh3, piece.data(), piece.size());
        copy(into, piece);
    });
}

template <class Copy>
inline void add_once_and_copy(void* state, ByteView bytes, std::byte* to, const Copy& copy) noexcept {
    alignas(64) std::byte read[pass_bytes];
    pass(bytes, to, [&](std::byte* into, ByteView piece) {
        std::memcpy(read, piece.data(), piece.size());
        XXH3_64bits_update(static_cast<XXH3_state_t*>(state), read, piece.size());
        copy(into, ByteView(read, piece.size()));
    });
}

inline void copy_plainly(std::byte* into, ByteView piece) noexcept { std::memcpy(into, piece.data(), piece.size()); }

}  // namespace
}  // namespace cairn
