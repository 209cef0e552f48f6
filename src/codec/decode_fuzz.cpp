// Fuzz target: what every codec decodes. Any bytes are refused or fill what they are decoded into, with a base and without.
//
// An input begins with 4 bytes that say which codec decodes the others, with what base, and how many bytes they become. Now and then an input is replaced by what a codec makes of
// its bytes, and is mutated from there: so the fuzzer need not find out what a frame of zstd looks like. That happens between runs, since encoding takes longer than decoding.
#include "codec/codec_fuzzing.hpp"

namespace {

using namespace cairn;

constexpr std::size_t head_bytes = 4;
constexpr std::uint8_t base_flag = 0x80;

// Up to 4 KiB, up to 64 KiB by some inputs and up to 1 MiB by a few: the memory that is filled takes most of a run's time, and what is wrong in a decoder shows in little of it.
std::size_t decoded_bytes(const std::uint8_t* head) {
    const std::size_t little = head[1] | std::size_t(head[2] & 0xF) << 8;
    if (head[3] < 0xF0) return little;
    return head[3] < 0xFE ? little << 4 : little << 8;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < head_bytes) return 0;
    const Codec codec = fuzzing::codec_in(data[0]);
    const ByteView stored = std::as_bytes(std::span(data, size)).subspan(head_bytes);
    Bytes into(decoded_bytes(data)), older((data[0] & base_flag) != 0 ? into.size() : 0);
    for (std::size_t i = data[3] & 0xF; i < older.size(); i += 97) older[i] = std::byte(i);
    const Status decoded = decode(codec, stored, into, older);
    fuzzing::expect(decoded.ok() || decoded.code() == Code::corrupt || codec == Codec::none, "refused with a wrong code");
    return 0;
}

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t size_max);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t size_max, unsigned seed) {
    constexpr unsigned one_in = 64;
    if (size <= head_bytes || size_max < size || seed % one_in != 0) return LLVMFuzzerMutate(data, size, size_max);
    const ByteView raw = std::as_bytes(std::span(data, size)).subspan(head_bytes);
    Bytes stored(std::min(size_max - head_bytes, raw.size() + 64));
    const Bytes older(raw.size(), std::byte(1));
    Base base{older};
    const std::size_t length = encode(fuzzing::codec_in(data[0]), raw, fuzzing::some_array(raw.size(), data[3]), stored, (data[0] & base_flag) != 0 ? &base : nullptr);
    if (length == 0) return LLVMFuzzerMutate(data, size, size_max);
    data[1] = static_cast<std::uint8_t>(raw.size());
    data[2] = static_cast<std::uint8_t>(raw.size() >> 8 & 0xF);
    data[3] = 0;
    std::copy_n(reinterpret_cast<const std::uint8_t*>(stored.data()), length, data + head_bytes);
    return head_bytes + length;
}
