// Bytes by how often each value occurs: an entropy coder without any search for what repeats (rANS: Duda, "Asymmetric numeral systems", 2013; four of them by turns, as in Giesen, "Interleaved
// entropy coders", 2014). A plane of exponents is no text: what is alike in it is which values it has, and looking for longer words costs most of zstd's time and makes it longer.
//
// Where one value takes nearly all places a code of whole bits spends eight times what there is to say; this one spends fractions.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.hpp"

namespace cairn {

using Histogram = std::array<std::uint32_t, 256>;
Histogram histogram_of(ByteView bytes);
// How many bytes put_symbols() takes for bytes like these, about.
double symbols_bytes(const Histogram& histogram, std::size_t count);

// How many bytes of `into` it takes; 0: there is no room, or `bytes` are none.
std::size_t put_symbols(ByteView bytes, const Histogram& histogram, std::span<std::byte> into);
// False: `stored` is not what so many bytes became.
bool get_symbols(ByteView stored, std::span<std::byte> bytes);

// The same with a table for each of some groups of values that the plane above has in the same place: how large the upper byte of a difference is tells how the next is spread.
inline constexpr std::size_t contexts_max = 16;
struct Contexts {
    std::array<std::uint8_t, 256> of = {};  // which table, for each value above
    std::vector<Histogram> histograms;
    double bytes = 0;  // that put_symbols() takes, about
};
Contexts contexts_of(ByteView bytes, ByteView above);
std::size_t put_symbols(ByteView bytes, ByteView above, const Contexts& contexts, std::span<std::byte> into);
bool get_symbols(ByteView stored, ByteView above, std::span<std::byte> bytes);

// What can stand in the place of the plane above: of each byte how large those before it are, for what is near each other is spread alike. A reader has no more than `stored`.
Bytes before(ByteView bytes);
bool get_symbols_after(ByteView stored, std::span<std::byte> bytes);

}  // namespace cairn
