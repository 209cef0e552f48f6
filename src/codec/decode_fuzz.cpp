// Fuzz target: what every codec decodes. Any bytes are refused or fill what they are decoded into; what a codec encoded comes back.
//
// An input begins with 8 bytes that say what is done with the others: which codec (and, in the highest bit, whether they are encoded before), how many bytes they become, and
// which byte of them is changed, by what. With encoded ones the fuzzer need not find out what a frame of zstd looks like.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "codec/codec.hpp"

namespace {

using namespace cairn;

constexpr std::size_t head_bytes = 8, decoded_max = 1 << 20;

void expect(bool condition, const char* what) {
    if (condition) return;
    std::fprintf(stderr, "fuzz: %s\n", what);
    std::abort();
}

// As one array, of numbers of 1 to 8 bytes.
std::vector<NumberArray> some_array(std::size_t bytes, std::uint8_t how) {
    NumberArray array;
    array.width = static_cast<std::uint8_t>(1 << (how & 3));
    array.is_float = (how & 4) != 0 && array.width > 1;
    array.is_swapped = (how & 8) != 0 && array.width > 1;
    array.length = bytes / array.width * array.width;
    array.row = (how & 16) != 0 ? 5 : 0;
    array.plane = (how & 32) != 0 && array.row > 0 ? 15 : 0;
    return array.length > 0 ? std::vector<NumberArray>(1, array) : std::vector<NumberArray>();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < head_bytes) return 0;
    const auto codec = static_cast<Codec>(data[0] % 5);
    const std::size_t bytes = (data[1] | std::size_t(data[2]) << 8 | std::size_t(data[3]) << 16) % (decoded_max + 1), at = data[4] | std::size_t(data[5]) << 8;
    const std::uint8_t change = data[6], array = data[7];
    const ByteView rest = std::as_bytes(std::span(data, size)).subspan(head_bytes);
    const bool is_raw = (data[0] & 0x80) != 0, has_base = (array & 0x40) != 0;
    Bytes stored(rest.begin(), rest.end()), older;
    if (is_raw) {
        stored.resize(2 * rest.size() + 4096);
        if (has_base) older.assign(rest.begin(), rest.end());
        for (std::size_t i = at % 97; i < older.size(); i += 97) older[i] ^= std::byte(data[5] | 1);
        Base base{older};
        stored.resize(encode(codec, rest, some_array(rest.size(), array), stored, has_base ? &base : nullptr));
        if (stored.empty()) return 0;
    }
    if (!stored.empty()) stored[at % stored.size()] ^= std::byte(change);
    Bytes into(is_raw && (array & 0x80) == 0 ? rest.size() : bytes);
    if (has_base) older.resize(into.size());
    const Status decoded = decode(codec, stored, into, older);
    expect(decoded.ok() || decoded.code() == Code::corrupt || codec == Codec::none, "refused with a wrong code");
    if (is_raw && change == 0 && codec != Codec::none && into.size() == rest.size()) {
        expect(decoded.ok(), "what was encoded can not be decoded");
        expect(std::equal(into.begin(), into.end(), rest.begin(), rest.end()), "what was encoded comes back otherwise");
    }
    return 0;
}
