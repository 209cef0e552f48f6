#include "codec/plane.hpp"

#define ZSTD_STATIC_LINKING_ONLY  // for ZSTD_c_literalCompressionMode; a library that does not know it says so, and is as good
#include <zstd.h>

#include <algorithm>
#include <array>
#include <string>

#include "codec/integers.hpp"
#include "codec/symbols.hpp"

namespace cairn {

namespace {

constexpr double repeats_min = 0.02;     // of the places that were looked at
constexpr double is_noise = 0.99;        // of a plane: what a sample says of those that it does not pay to look at
constexpr double slow_gain_min = 0.02;   // of a plane: less is not worth four times the time that Huffman's code takes
constexpr double hardly_shorter = 0.95;  // of a plane: where more is left all values are counted before a code is made of them
constexpr double skewed = 0.3;           // of a plane: where more is left Huffman's code is hardly longer than what there is to say
constexpr double whole_bits = 1.0 / 8;   // of a byte: the least that Huffman's code can make of it
constexpr double hardly_told = 0.995;    // of a plane: where more is left, what is near it tells too little
constexpr double much_shorter = 0.88;    // of what values alone make: where words make less, so does nothing else
constexpr int thorough_level = 7;
constexpr std::size_t short_plane = 16 << 10;  // Huffman's table is shorter than others, which counts in short planes only
constexpr std::size_t probed_bytes_min = 512;

// How many of some places of a plane, as a share, continue as an earlier one did, so far that it is no chance: 40 bits of what its values tell. Every eighth place is remembered.
double repeats(ByteView plane, double bytes_each) {
    constexpr std::size_t apart = 8, windows = 8, window = 48, longest = 64;
    constexpr std::uint16_t nowhere = 0xFFFF;
    if (plane.size() < probed_bytes_min) return 1;
    const auto length = static_cast<std::size_t>(std::clamp(40 / (8 * std::max(bytes_each, 1e-3)), 4.0, double{longest}));
    const unsigned unused = 64 - 8 * static_cast<unsigned>(std::min<std::size_t>(length, 8));
    const auto hash = [&](std::size_t at) { return (load<std::uint64_t>(plane.data() + at) << unused) * 0x9E37'79B9'7F4A'7C15u >> 52; };
    std::array<std::uint16_t, 4096> places;
    places.fill(nowhere);
    std::size_t found = 0, looked = 0, next = plane.size() / (2 * windows);
    const std::size_t end = plane.size() - longest - 8;
    for (std::size_t at = 0; at < end; at += apart) {
        if (at >= next) {
            for (std::size_t i = at; i < std::min(at + window, end); ++i, ++looked) {
                const std::size_t place = places[hash(i)];
                found += place != nowhere && std::memcmp(plane.data() + apart * place, plane.data() + i, length) == 0;
            }
            next += plane.size() / windows;
        }
        places[hash(at)] = static_cast<std::uint16_t>(at / apart);
    }
    return looked == 0 ? 1 : static_cast<double>(found) / static_cast<double>(looked);
}

}  // namespace

void PlaneCoder::Free::operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
void PlaneCoder::Free::operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }

// Planes are short, and what is alike in one lies near: tables that fit the cache are as good as larger ones.
PlaneCoder::PlaneCoder() : words_(ZSTD_createCCtx()), values_(ZSTD_createCCtx()), thorough_(ZSTD_createCCtx()), decompressor_(ZSTD_createDCtx()) {
    if (!is_whole()) return;
    for (ZSTD_CCtx* each : {words_.get(), values_.get()}) {
        ZSTD_CCtx_setParameter(each, ZSTD_c_compressionLevel, 1);
        ZSTD_CCtx_setParameter(each, ZSTD_c_windowLog, 18);
    }
    ZSTD_CCtx_setParameter(words_.get(), ZSTD_c_hashLog, 13);
    ZSTD_CCtx_setParameter(thorough_.get(), ZSTD_c_compressionLevel, thorough_level);
    ZSTD_CCtx_setParameter(thorough_.get(), ZSTD_c_windowLog, 18);
    // Steps of a block: it looks at one place, and stores all bytes by their values alone, which is Huffman's code.
    ZSTD_CCtx_setParameter(values_.get(), ZSTD_c_hashLog, ZSTD_HASHLOG_MIN);
    ZSTD_CCtx_setParameter(values_.get(), ZSTD_c_targetLength, ZSTD_TARGETLENGTH_MAX);
    ZSTD_CCtx_setParameter(values_.get(), ZSTD_c_literalCompressionMode, ZSTD_ps_enable);
}

std::size_t PlaneCoder::put_fast(ByteView plane, double estimate, std::span<std::byte> into, PlaneKind& kind) const {
    const auto count = static_cast<double>(plane.size());
    const std::size_t worth = plane.size() - plane.size() / 64, room = std::min(into.size(), worth);
    const ZSTD_CCtx* last = nullptr;
    // What `into` holds already is not made again.
    const auto zstd = [&](ZSTD_CCtx* by, std::size_t known) {
        if (last == by) return known;
        last = by;
        const std::size_t made = ZSTD_compress2(by, into.data(), room, plane.data(), plane.size());
        return ZSTD_isError(made) ? worth : made;
    };
    kind = PlaneKind::zstd;
    const std::size_t words = repeats(plane, estimate) > repeats_min ? zstd(words_.get(), worth) : worth;
    if (words != worth && static_cast<double>(words) < (estimate + slow_gain_min) * count) return words;
    std::size_t values = worth;
    if (estimate > whole_bits && estimate < hardly_shorter) {
        values = zstd(values_.get(), worth);
        if (values <= words && values != worth && static_cast<double>(values) > skewed * count) return values;
    }
    const Histogram histogram = histogram_of(plane);
    const double symbols = symbols_bytes(histogram, plane.size());
    if (values == worth && symbols > whole_bits * count && symbols < static_cast<double>(worth)) values = zstd(values_.get(), worth);
    const std::size_t least = std::min(words, values);
    if (symbols + slow_gain_min * count < static_cast<double>(least)) {
        kind = PlaneKind::symbols;
        return put_symbols(plane, histogram, into.first(room));
    }
    if (least == worth) return 0;
    return least == words ? zstd(words_.get(), words) : zstd(values_.get(), values);
}

// The shortest of all ways.
std::size_t PlaneCoder::put_small(ByteView plane, ByteView above, std::span<std::byte> into, PlaneKind& kind) const {
    const std::size_t worth = plane.size() - plane.size() / 256, room = std::min(into.size(), worth);
    const Histogram histogram = histogram_of(plane);
    const double symbols = symbols_bytes(histogram, plane.size());
    const auto by_values = [&] {
        const std::size_t made = ZSTD_compress2(values_.get(), into.data(), room, plane.data(), plane.size());
        return ZSTD_isError(made) ? worth : made;
    };
    const std::size_t values = plane.size() <= short_plane && symbols < hardly_told * static_cast<double>(plane.size()) ? by_values() : worth;
    std::size_t least = repeats(plane, symbols / static_cast<double>(plane.size())) > 0 ? ZSTD_compress2(thorough_.get(), into.data(), room, plane.data(), plane.size()) : worth;
    if (ZSTD_isError(least)) least = worth;
    kind = PlaneKind::zstd;
    Bytes places;
    Contexts below, after;
    if (symbols < hardly_told * static_cast<double>(plane.size()) && much_shorter * symbols < static_cast<double>(least)) {
        places = before(plane);
        after = contexts_of(plane, places);
        if (!above.empty()) below = contexts_of(plane, above);
    }
    double shortest = static_cast<double>(least);
    const auto is_shorter = [&](double bytes, bool is_there, PlaneKind as) {
        if (!is_there || bytes >= shortest) return;
        shortest = bytes;
        kind = as;
    };
    is_shorter(symbols, true, PlaneKind::symbols);
    is_shorter(below.bytes, below.histograms.size() > 1, PlaneKind::symbols_below);
    is_shorter(after.bytes, after.histograms.size() > 1, PlaneKind::symbols_after);
    if (values != worth && static_cast<double>(values) < shortest) {
        kind = PlaneKind::zstd;
        return by_values();
    }
    if (kind == PlaneKind::symbols) return put_symbols(plane, histogram, into.first(room));
    if (kind == PlaneKind::symbols_below) return put_symbols(plane, above, below, into.first(room));
    if (kind == PlaneKind::symbols_after) return put_symbols(plane, places, after, into.first(room));
    return least == worth ? 0 : least;
}

std::size_t PlaneCoder::put(ByteView plane, ByteView above, double estimate, bool is_shared, Effort effort, std::span<std::byte> into) const {
    if (into.size() <= plane_head_bytes) return 0;
    const std::span<std::byte> room = into.subspan(plane_head_bytes);
    PlaneKind kind = PlaneKind::raw;
    std::size_t made = 0;
    if (!plane.empty() && std::equal(plane.begin() + 1, plane.end(), plane.begin())) {
        kind = PlaneKind::same;
        room[0] = plane[0];
        made = 1;
    } else if (estimate < is_noise || (is_shared && repeats(plane, estimate) > repeats_min)) {
        made = effort == Effort::fast ? put_fast(plane, estimate, room, kind) : put_small(plane, above, room, kind);
    }
    if (made == 0) {
        if (room.size() < plane.size()) return 0;
        kind = PlaneKind::raw;
        made = plane.size();
        std::copy(plane.begin(), plane.end(), room.begin());
    }
    put_count(into.data(), made | static_cast<std::size_t>(kind) << 24);
    return plane_head_bytes + made;
}

Status PlaneCoder::get(ByteView& stored, ByteView above, std::span<std::byte> plane) const {
    if (stored.size() < plane_head_bytes) return corrupt("a plane: cut short");
    const std::size_t head = get_count(stored.data()), follow = head & 0xFF'FFFF;
    if (follow > stored.size() - plane_head_bytes) return corrupt("a plane: cut short");
    const ByteView from = stored.subspan(plane_head_bytes, follow);
    stored = stored.subspan(plane_head_bytes + follow);
    switch (static_cast<PlaneKind>(head >> 24)) {
        case PlaneKind::raw:
            if (follow != plane.size()) return corrupt("a plane of too many or too few bytes");
            std::copy(from.begin(), from.end(), plane.begin());
            return {};
        case PlaneKind::zstd: {
            if (ZSTD_findFrameCompressedSize(from.data(), follow) != follow) return corrupt("a plane of more or less than one frame");
            const std::size_t made = ZSTD_decompressDCtx(decompressor_.get(), plane.data(), plane.size(), from.data(), follow);
            if (ZSTD_isError(made)) return corrupt("a plane: " + std::string(ZSTD_getErrorName(made)));
            return made == plane.size() ? Status() : corrupt("a plane of too few bytes");
        }
        case PlaneKind::symbols: return get_symbols(from, plane) ? Status() : corrupt("a plane of other bytes than its values are");
        case PlaneKind::symbols_below: return get_symbols(from, above, plane) ? Status() : corrupt("a plane of other bytes than its values and those above are");
        case PlaneKind::symbols_after: return get_symbols_after(from, plane) ? Status() : corrupt("a plane of other bytes than its values and those before are");
        case PlaneKind::same:
            if (follow != 1) return corrupt("a plane of one value, and not one byte");
            std::fill(plane.begin(), plane.end(), from[0]);
            return {};
    }
    return corrupt("a plane of a kind that is not known");
}

}  // namespace cairn
