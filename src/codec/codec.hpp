// Codecs: bytes to bytes, and back. A part names those of its runs (FORMAT.md, "Codecs"); here stands which names there are and what each does. Pure: who calls
// them, on which thread and for how long, is the world's matter (Cpu::encode).
//
// A new codec is a number, a row in codec.cpp, and its description in FORMAT.md.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/status.hpp"
#include "codec/base.hpp"
#include "codec/by_key.hpp"
#include "model/number_array.hpp"

namespace cairn {

enum class Codec : std::uint8_t {
    none = 0,       // the bytes as they are
    zero_runs = 1,  // runs of zero bytes are told and not stored
    numbers = 2,    // numbers, and records of them: differences, bytes of one significance together, zstd (numbers.hpp)
    planes = 3,     // arrays of numbers, predicted along the axes that they have; planes of bytes, each by itself (planes.hpp)
    planes_small = 4,  // the same, as short as it gets in some five times the time; decoded as the other is
};

std::string_view codec_name(Codec codec) noexcept;
// Nothing for a name, or parameters, that this Cairn does not know.
std::optional<Codec> codec_of(std::string_view name, std::string_view parameters) noexcept;

// Whether encoding can be worth it for bytes with these checksums, one a unit of at most a block. Costs no look at the bytes.
bool may_shrink(Codec codec, const std::vector<std::uint64_t>& checksums, std::uint64_t bytes, std::uint64_t block_bytes);

// Whether encode() makes use of what is known of the bytes.
bool wants_arrays(Codec codec) noexcept;
// Whether encode() makes use of what the bytes were in an older version.
bool takes_base(Codec codec) noexcept;
// How hard it works on arrays whose key is told of nowhere; nothing for a codec that makes no difference between keys.
std::optional<Effort> effort_of(Codec codec) noexcept;
// What a thread that has encoded with it, and decoded what came of it, keeps to work in.
std::uint64_t workspace_bytes(Codec codec) noexcept;
// The bytes that `into` holds then (with none: a copy); 0: encoded they do not fit, and are best stored as they are. `arrays`: what is known of the bytes, by
// offset, none over another; the result can be decoded without it.
// `base`: what the bytes were in an older version, for codecs that make use of it. `keys`: for those with an effort.
std::uint64_t encode(Codec codec, ByteView raw, std::span<const NumberArray> arrays, std::span<std::byte> into, Base* base = nullptr, ByKey* keys = nullptr);

// All of `into`, from what encode() made, and from the base that it needed. corrupt where it makes other than so many bytes, or needs a base and has none: `stored` is believed in nothing.
Status decode(Codec codec, ByteView stored, std::span<std::byte> into, ByteView base = {});

}  // namespace cairn
