#include "codec/numbers.hpp"

#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>

#include "codec/comes_back.hpp"
#include "codec/integers.hpp"

namespace cairn {

namespace {

// How numbers lie in a run: their width in bytes, and how many numbers before it the one lies of which the difference is taken; 0: none is.
struct Shape {
    std::uint8_t width = 1, lag = 0;
};

constexpr std::size_t stretch_bytes = 1 << 20;
constexpr std::size_t head_bytes = 6;  // of a stretch: how many bytes follow (u32), width (u8; 0: the raw bytes), lag (u8)
constexpr std::size_t lag_max = 64;
constexpr int level = 1;
constexpr std::size_t window_bytes_min = 2048, window_bytes_max = 8192;  // of a sample: a 64th of the stretch; multiples of every width

constexpr std::array<Shape, 13> shapes = {{{1, 0}, {2, 1}, {4, 0}, {4, 1}, {4, 2}, {4, 3}, {8, 0}, {8, 1}, {8, 2}, {8, 3}, {8, 4}, {8, 6}, {8, 9}}};

struct FreeContext {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

// One a thread, for all runs: making one costs more than a small run.
ZSTD_CCtx* compressor() {
    static thread_local const std::unique_ptr<ZSTD_CCtx, FreeContext> context(ZSTD_createCCtx());
    return context.get();
}
ZSTD_DCtx* decompressor() {
    static thread_local const std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
    return context.get();
}

// Two of a thread's, as long as a stretch: what codecs need is bounded however long a run is. nullptr: there is no memory.
std::byte* workspace(int which) {
    static thread_local std::unique_ptr<std::byte[]> buffers[2];
    if (!buffers[which]) buffers[which].reset(new (std::nothrow) std::byte[stretch_bytes]);
    return buffers[which].get();
}

// Planes of bytes, the lowest first; what is left behind the last whole number follows as it is.
template <typename Number>
void to_planes(ByteView raw, std::size_t lag, std::byte* into) {
    const std::size_t count = raw.size() / sizeof(Number);
    for (std::size_t i = 0; i < count; ++i) {
        Number number = load<Number>(&raw[i * sizeof(Number)]);
        if (lag != 0) number = fold(static_cast<Number>(number - (i < lag ? Number{} : load<Number>(&raw[(i - lag) * sizeof(Number)]))));
        for (std::size_t byte = 0; byte < sizeof(Number); ++byte) into[byte * count + i] = static_cast<std::byte>(number >> (8 * byte));
    }
    std::copy(raw.begin() + static_cast<std::ptrdiff_t>(count * sizeof(Number)), raw.end(), into + count * sizeof(Number));
}

template <typename Number>
void from_planes(const std::byte* planes, std::size_t lag, std::span<std::byte> into) {
    const std::size_t count = into.size() / sizeof(Number);
    for (std::size_t i = 0; i < count; ++i) {
        Number number{};
        for (std::size_t byte = 0; byte < sizeof(Number); ++byte) number = static_cast<Number>(number | static_cast<Number>(std::to_integer<Number>(planes[byte * count + i]) << (8 * byte)));
        if (lag != 0) number = static_cast<Number>(unfold(number) + (i < lag ? Number{} : load<Number>(&into[(i - lag) * sizeof(Number)])));
        std::memcpy(&into[i * sizeof(Number)], &number, sizeof number);
    }
    std::copy(planes + count * sizeof(Number), planes + into.size(), into.begin() + static_cast<std::ptrdiff_t>(count * sizeof(Number)));
}

void to_planes(Shape shape, ByteView raw, std::byte* into) {
    if (shape.width == 8) return to_planes<std::uint64_t>(raw, shape.lag, into);
    if (shape.width == 4) return to_planes<std::uint32_t>(raw, shape.lag, into);
    if (shape.width == 2) return to_planes<std::uint16_t>(raw, shape.lag, into);
    to_planes<std::uint8_t>(raw, shape.lag, into);
}

void from_planes(Shape shape, const std::byte* planes, std::span<std::byte> into) {
    if (shape.width == 8) return from_planes<std::uint64_t>(planes, shape.lag, into);
    if (shape.width == 4) return from_planes<std::uint32_t>(planes, shape.lag, into);
    if (shape.width == 2) return from_planes<std::uint16_t>(planes, shape.lag, into);
    from_planes<std::uint8_t>(planes, shape.lag, into);
}

// The shape that makes a window from the stretch's first third and one from its last the shortest; none where neither gets a sixteenth shorter.
std::optional<Shape> shape_of(ByteView raw) {
    std::array<std::byte, window_bytes_max> planes;
    std::array<std::byte, ZSTD_COMPRESSBOUND(window_bytes_max)> out;
    const std::size_t window = std::clamp(raw.size() / 64 / 8 * 8, window_bytes_min, window_bytes_max);
    const std::size_t length = std::min(raw.size(), window), beyond = raw.size() - length;
    const std::size_t begins[] = {beyond / 3 / window * window, beyond * 2 / 3 / window * window};
    Shape best;
    std::size_t best_bytes = SIZE_MAX;
    for (const Shape& shape : shapes) {
        std::size_t bytes = 0;
        for (const std::size_t begin : begins) {
            to_planes(shape, raw.subspan(begin, length), planes.data());
            const std::size_t made = ZSTD_compressCCtx(compressor(), out.data(), out.size(), planes.data(), length, level);
            bytes += ZSTD_isError(made) ? length : made;
        }
        if (bytes < best_bytes) best = shape, best_bytes = bytes;
    }
    if (best_bytes > 2 * (length - length / 16)) return std::nullopt;
    return best;
}

// How many bytes of `into` the stretch takes, behind its head; 0: it does not get shorter.
std::size_t encode_stretch(Shape shape, ByteView raw, std::span<std::byte> into) {
    std::byte* const planes = workspace(0);
    std::byte* const back = workspace(1);
    if (!planes || !back) return 0;
    to_planes(shape, raw, planes);
    const std::size_t made = ZSTD_compressCCtx(compressor(), into.data(), std::min(into.size(), raw.size() - raw.size() / 16), planes, raw.size(), level);
    if (ZSTD_isError(made)) return 0;  // it does not fit
    const bool is_as_long = ZSTD_decompressDCtx(decompressor(), planes, stretch_bytes, into.data(), made) == raw.size();
    from_planes(shape, planes, {back, raw.size()});
    return comes_back(is_as_long ? Status() : corrupt("zstd made another number of bytes"), {back, raw.size()}, raw) ? made : 0;
}

Status decode_stretch(Shape shape, ByteView stored, std::span<std::byte> into) {
    if (shape.width == 0) {
        if (stored.size() != into.size()) return corrupt("delta-shuffle-zstd: not as many bytes as its pieces have");
        std::copy(stored.begin(), stored.end(), into.begin());
        return {};
    }
    if ((shape.width != 1 && shape.width != 2 && shape.width != 4 && shape.width != 8) || shape.lag > lag_max) return corrupt("delta-shuffle-zstd: no numbers are so wide or lie so");
    std::byte* const planes = workspace(0);
    if (!planes || !decompressor()) return {Code::out_of_space, "no memory to decode a run"};
    const std::size_t made = ZSTD_decompressDCtx(decompressor(), planes, into.size(), stored.data(), stored.size());
    if (ZSTD_isError(made)) return corrupt("delta-shuffle-zstd: " + std::string(ZSTD_getErrorName(made)));
    if (made != into.size()) return corrupt("delta-shuffle-zstd: fewer bytes than its pieces have");
    from_planes(shape, planes, into);
    return {};
}

}  // namespace

std::uint64_t encode_numbers(ByteView raw, std::span<std::byte> into) {
    if (!compressor() || !decompressor()) return 0;
    std::size_t out = 0;
    for (std::size_t at = 0; at < raw.size(); at += stretch_bytes) {
        const ByteView stretch = raw.subspan(at, std::min(stretch_bytes, raw.size() - at));
        if (into.size() - out < head_bytes) return 0;
        const std::span<std::byte> head = into.subspan(out, head_bytes), rest = into.subspan(out + head_bytes);
        const std::optional<Shape> shape = shape_of(stretch);
        const std::size_t made = shape ? encode_stretch(*shape, stretch, rest) : 0;
        const std::size_t follow = made != 0 ? made : stretch.size();
        if (follow > rest.size()) return 0;
        if (made == 0) std::copy(stretch.begin(), stretch.end(), rest.begin());
        for (int i = 0; i < 4; ++i) head[static_cast<std::size_t>(i)] = static_cast<std::byte>(follow >> (8 * i));
        head[4] = made != 0 ? std::byte{shape->width} : std::byte{};
        head[5] = made != 0 ? std::byte{shape->lag} : std::byte{};
        out += head_bytes + follow;
    }
    return out;
}

Status decode_numbers(ByteView stored, std::span<std::byte> into) {
    std::size_t at = 0;
    for (std::size_t out = 0; out < into.size(); out += stretch_bytes) {
        if (stored.size() - at < head_bytes) return corrupt("delta-shuffle-zstd: cut short");
        std::size_t follow = 0;
        for (int i = 0; i < 4; ++i) follow |= std::to_integer<std::size_t>(stored[at + static_cast<std::size_t>(i)]) << (8 * i);
        const Shape shape{std::to_integer<std::uint8_t>(stored[at + 4]), std::to_integer<std::uint8_t>(stored[at + 5])};
        at += head_bytes;
        if (follow > stored.size() - at) return corrupt("delta-shuffle-zstd: cut short");
        if (Status decoded = decode_stretch(shape, stored.subspan(at, follow), into.subspan(out, std::min(stretch_bytes, into.size() - out))); !decoded.ok()) return decoded;
        at += follow;
    }
    return at == stored.size() ? Status() : corrupt("delta-shuffle-zstd: more bytes than its pieces have");
}

}  // namespace cairn
