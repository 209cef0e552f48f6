// Bytes: owned and borrowed runs of bytes, and 128-bit identities.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cairn {

using Bytes = std::vector<std::byte>;
using ByteView = std::span<const std::byte>;

inline ByteView as_bytes(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }
inline Bytes to_bytes(std::string_view text) { const auto view = as_bytes(text); return {view.begin(), view.end()}; }
inline std::string_view as_text(ByteView bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}
constexpr std::uint64_t div_up(std::uint64_t value, std::uint64_t divisor) { return (value + divisor - 1) / divisor; }

// A random name that does not repeat: incarnations, attempts, secrets. Zero means none.
struct Id128 {
    std::uint64_t high = 0;
    std::uint64_t low = 0;

    auto operator<=>(const Id128&) const = default;
    explicit operator bool() const noexcept { return high != 0 || low != 0; }
    std::string hex() const;                            // 32 lower-case digits
    static bool parse(std::string_view hex, Id128& id);  // false unless exactly 32 hex digits
};

}  // namespace cairn

template <>
struct std::hash<cairn::Id128> {
    std::size_t operator()(const cairn::Id128& id) const noexcept { return id.high * 0x9E3779B97F4A7C15ull ^ id.low; }
};
