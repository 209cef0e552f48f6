// The table of codecs, and the one that leaves out zeros.
#include "codec/codec.hpp"

#include <algorithm>
#include <cstring>

#include "base/checksum.hpp"
#include "codec/integers.hpp"
#include "codec/numbers.hpp"
#include "codec/planes.hpp"

namespace cairn {

namespace {

struct Row {
    Codec codec;
    std::string_view name;
    std::uint64_t workspace_bytes;  // most of it zstd's contexts; measured (codec_test.cpp), with a third to spare for what it takes while it looks
};
constexpr Row rows[] = {{Codec::none, "none", 0},
                        {Codec::zero_runs, "zero-runs", 0},
                        {Codec::numbers, "delta-shuffle-zstd", 4 << 20},
                        {Codec::planes, "predict-planes-zstd", 4 << 20},
                        {Codec::planes_small, "predict-planes-small", 11 << 20}};

// ---- zero-runs: pairs of (bytes that follow, zeros after them), each a u32, and then those bytes ----

constexpr std::size_t pair_bytes = 8;
constexpr std::size_t zeros_min = 64;  // fewer are not worth a pair, nor the search for their end
constexpr std::size_t count_max = 1u << 30;

// How many zeros there are from here on.
std::size_t zeros_at(ByteView raw, std::size_t from) {
    static constexpr std::byte zeros[4096] = {};
    std::size_t at = from;
    while (raw.size() - at >= sizeof zeros && std::memcmp(raw.data() + at, zeros, sizeof zeros) == 0) at += sizeof zeros;
    while (at < raw.size() && raw[at] == std::byte{}) ++at;
    return at - from;
}

// Where the next run of zeros_min zeros begins, or the end. Steps of zeros_min bytes: a run that long holds a last byte of one of them.
std::size_t next_zeros(ByteView raw, std::size_t from) {
    for (std::size_t probe = from + zeros_min - 1; probe < raw.size(); probe += zeros_min) {
        if (raw[probe] != std::byte{}) continue;
        std::size_t begin = probe;
        while (begin > from && raw[begin - 1] == std::byte{}) --begin;
        if (raw.size() - begin >= zeros_min && zeros_at(raw.subspan(begin, zeros_min), 0) == zeros_min) return begin;
    }
    return raw.size();
}

std::uint64_t encode_zero_runs(ByteView raw, std::span<std::byte> into) {
    std::size_t at = 0, out = 0;
    while (at < raw.size()) {
        const std::size_t literal = std::min(next_zeros(raw, at) - at, count_max);
        const std::size_t zeros = std::min(zeros_at(raw, at + literal), count_max);
        if (into.size() - out < pair_bytes + literal) return 0;
        put_count(&into[out], literal);
        put_count(&into[out + 4], zeros);
        std::memcpy(&into[out] + pair_bytes, raw.data() + at, literal);
        out += pair_bytes + literal;
        at += literal + zeros;
    }
    return out;
}

Status decode_zero_runs(ByteView stored, std::span<std::byte> into) {
    std::size_t at = 0, out = 0;
    while (at < stored.size()) {
        if (stored.size() - at < pair_bytes) return corrupt("zero-runs: cut short");
        const std::size_t literal = get_count(&stored[at]), zeros = get_count(&stored[at + 4]);
        at += pair_bytes;
        if (literal > stored.size() - at) return corrupt("zero-runs: cut short");
        if (literal > into.size() - out || zeros > into.size() - out - literal) return corrupt("zero-runs: more bytes than its pieces have");
        std::memcpy(into.data() + out, stored.data() + at, literal);
        std::memset(into.data() + out + literal, 0, zeros);
        at += literal;
        out += literal + zeros;
    }
    return out == into.size() ? Status() : corrupt("zero-runs: fewer bytes than its pieces have");
}

}  // namespace

std::string_view codec_name(Codec codec) noexcept { return rows[static_cast<std::size_t>(codec)].name; }

std::uint64_t workspace_bytes(Codec codec) noexcept { return rows[static_cast<std::size_t>(codec)].workspace_bytes; }

std::optional<Codec> codec_of(std::string_view name, std::string_view parameters) noexcept {
    for (const Row& row : rows)
        if (row.codec != Codec::none && row.name == name && parameters.empty()) return row.codec;
    return std::nullopt;
}

// A block of zeros has a checksum that is known beforehand. Zeros that fill no block are left as they are, and so are few among many others: what is encoded must
// be a sixteenth shorter to be worth it. Of numbers checksums tell nothing.
bool may_shrink(Codec codec, const std::vector<std::uint64_t>& checksums, std::uint64_t bytes, std::uint64_t block_bytes) {
    if (codec == Codec::numbers) return bytes >= numbers_bytes_min;
    if (wants_arrays(codec)) return bytes >= planes_bytes_min;
    if (codec == Codec::none || bytes < block_bytes) return false;
    static thread_local std::uint64_t known_bytes = 0, known = 0;
    if (known_bytes != block_bytes) {
        known_bytes = block_bytes;
        known = checksum(Bytes(block_bytes));
    }
    const auto zeros = static_cast<std::uint64_t>(std::count(checksums.begin(), checksums.end(), known));
    return zeros * block_bytes > bytes / 16;
}

bool wants_arrays(Codec codec) noexcept { return codec == Codec::planes || codec == Codec::planes_small; }

std::optional<Effort> effort_of(Codec codec) noexcept {
    if (codec == Codec::planes) return Effort::fast;
    return codec == Codec::planes_small ? std::optional(Effort::small) : std::nullopt;
}

bool takes_base(Codec codec) noexcept { return wants_arrays(codec); }

std::uint64_t encode(Codec codec, ByteView raw, std::span<const NumberArray> arrays, std::span<std::byte> into, Base* base, ByKey* keys) {
    if (codec == Codec::zero_runs) return encode_zero_runs(raw, into);
    if (codec == Codec::numbers) return encode_numbers(raw, into);
    if (codec == Codec::planes) return encode_planes(raw, arrays, into, Effort::fast, base, keys);
    if (codec == Codec::planes_small) return encode_planes(raw, arrays, into, Effort::small, base, keys);
    if (raw.size() > into.size()) return 0;
    std::copy(raw.begin(), raw.end(), into.begin());
    return raw.size();
}

Status decode(Codec codec, ByteView stored, std::span<std::byte> into, ByteView base) {
    if (codec != Codec::none && into.empty()) return stored.empty() ? Status() : corrupt("more bytes than its pieces have");  // no decoder need think of memory that is not there
    if (codec == Codec::zero_runs) return decode_zero_runs(stored, into);
    if (codec == Codec::numbers) return decode_numbers(stored, into);
    if (codec == Codec::planes || codec == Codec::planes_small) return decode_planes(stored, into, base);
    return {Code::internal, "nothing is encoded with codec none"};
}

}  // namespace cairn
