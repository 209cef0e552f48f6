// Fuzz target: what every codec makes of any bytes, whatever it is told of them and with any base, comes back.
//
// The first two bytes of an input say which codec, what is told, and how far the base differs.
#include "codec/codec_fuzzing.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace cairn;
    constexpr std::size_t head_bytes = 2;
    if (size <= head_bytes) return 0;
    const Codec codec = fuzzing::codec_in(data[0]);
    const bool has_base = (data[0] & 0x80) != 0;
    const ByteView raw = std::as_bytes(std::span(data, size)).subspan(head_bytes);
    Bytes older, stored(2 * raw.size() + 4096), into(raw.size());
    if (has_base) older.assign(raw.begin(), raw.end());
    for (std::size_t i = data[1] % 7; i < older.size(); i += data[1] + 1) older[i] ^= std::byte(1);
    Base base{older};
    stored.resize(encode(codec, raw, fuzzing::some_array(raw.size(), data[1]), stored, has_base ? &base : nullptr));
    if (stored.empty() || codec == Codec::none) return 0;
    fuzzing::expect(decode(codec, stored, into, older).ok(), "what was encoded can not be decoded");
    fuzzing::expect(std::equal(into.begin(), into.end(), raw.begin(), raw.end()), "what was encoded comes back otherwise");
    return 0;
}
