// A run of which much is there already, as it is, further back than a stretch reaches: what cells that lie apart have looked up in one table. No number is predicted then; long words are looked for. FORMAT.md ("Codecs") says how it is stored.
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.hpp"
#include "base/status.hpp"
#include "codec/plane.hpp"

namespace cairn {

inline constexpr std::size_t words_bytes = 1 << 20;  // of a stretch of words, at most
inline constexpr std::uint8_t flag_words = 64;       // in a stretch's head, with no width

// Of some places of the run the share that continue as an earlier one did, for 32 bytes that do not repeat themselves. Much shorter than a pass over it.
double repetition(ByteView run);

// A run that `into` holds as `made` bytes (0: not at all), as words where that is clearly shorter. How many it holds then. What is stored is decoded and compared before it counts.
std::size_t put_shorter_words(ByteView run, Effort effort, std::size_t made, std::span<std::byte> into);
// Of one stretch of them; corrupt: they are other than so many bytes.
Status get_words(ByteView stored, std::span<std::byte> into);

}  // namespace cairn
