#include "codec/words.hpp"

#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "codec/comes_back.hpp"
#include "codec/integers.hpp"

namespace cairn {

namespace {

constexpr std::size_t head_bytes = 12;  // of a stretch
constexpr std::size_t remembered_each = 256, tried_each = 4, alike_bytes = 32, looks = 24, unseen = 8;  // the first places have little before them
constexpr std::size_t table_bits = 12;
constexpr double clearly_shorter = 0.9;  // as words than as numbers: a search for words takes time

std::size_t place_of(const std::byte* at) { return load<std::uint64_t>(at) * 0x9E37'79B9'7F4A'7C15u >> (64 - table_bits); }

// All of it is what its first bytes are: a plane of it costs nothing.
bool repeats_itself(const std::byte* at) { return std::memcmp(at, at + 8, alike_bytes - 8) == 0; }

struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

// One thread's. nullptr: there is no memory.
ZSTD_CCtx* compressor(Effort effort) {
    static thread_local std::unique_ptr<ZSTD_CCtx, Free> own;
    if (!own) own.reset(ZSTD_createCCtx());  // there may have been no memory the last time
    if (!own) return nullptr;
    ZSTD_CCtx_setParameter(own.get(), ZSTD_c_compressionLevel, effort == Effort::fast ? 1 : 3);
    ZSTD_CCtx_setParameter(own.get(), ZSTD_c_windowLog, 20);
    return own.get();
}

std::size_t put_stretch(ZSTD_CCtx* by, ByteView raw, std::span<std::byte> back, std::span<std::byte> into) {
    if (into.size() <= head_bytes) return 0;
    const std::size_t made = ZSTD_compress2(by, into.data() + head_bytes, into.size() - head_bytes, raw.data(), raw.size());
    if (ZSTD_isError(made)) return 0;
    std::fill_n(into.begin(), head_bytes, std::byte{});
    put_count(&into[0], raw.size());
    put_count(&into[4], made);
    into[9] = std::byte{flag_words};
    const std::span<std::byte> same = back.first(raw.size());
    return comes_back(get_words(ByteView(into).subspan(head_bytes, made), same), same, raw) ? head_bytes + made : 0;
}

// Stretches of words, end to end; 0: there is no room.
std::size_t put_words(ByteView run, Effort effort, std::span<std::byte> into) {
    ZSTD_CCtx* const by = compressor(effort);
    const std::unique_ptr<std::byte[]> back(new (std::nothrow) std::byte[std::min(run.size(), words_bytes)]);
    if (!by || !back) return 0;
    std::size_t out = 0;
    for (std::size_t at = 0; at < run.size(); at += words_bytes) {
        const ByteView raw = run.subspan(at, std::min(words_bytes, run.size() - at));
        const std::size_t made = put_stretch(by, raw, {back.get(), raw.size()}, into.subspan(out));
        if (made == 0) return 0;
        out += made;
    }
    return out;
}

}  // namespace

// Every 256th place is remembered, and as many bytes of each one that is looked at are tried: one of them is as far in a word as a place that is remembered. Where nothing is found for long, there is nothing.
double repetition(ByteView run) {
    if (run.size() < (looks + unseen) * 4 * remembered_each) return 0;
    std::array<std::uint32_t, 1 << table_bits> places = {};  // 1 more than a place, in the unit of what is remembered
    const std::byte* const begin = run.data();
    const auto is_there = [&](const std::byte* at) {
        const std::size_t place = places[place_of(at)];
        return place != 0 && std::memcmp(begin + (place - 1) * remembered_each, at, alike_bytes) == 0 && !repeats_itself(at);
    };
    std::size_t found = 0, at = 0;
    for (std::size_t look = unseen; look < looks + unseen; ++look) {
        const std::size_t place = (run.size() - remembered_each - alike_bytes) / (looks + unseen) * look / tried_each * tried_each;
        for (; at < place; at += remembered_each) places[place_of(begin + at)] = static_cast<std::uint32_t>(at / remembered_each + 1);
        bool is_found = false;
        for (std::size_t i = 0; i < remembered_each && !is_found; i += tried_each) is_found = is_there(begin + place + i);
        found += is_found;
        if (found == 0 && look == looks / 2) return 0;
    }
    return static_cast<double>(found) / looks;
}

std::size_t put_shorter_words(ByteView run, Effort effort, std::size_t made, std::span<std::byte> into) {
    const auto most = clearly_shorter * static_cast<double>(made == 0 ? into.size() : made);
    if (most < 1 || (1 - repetition(run)) * static_cast<double>(run.size()) > most) return made;
    const auto room = static_cast<std::size_t>(most);
    const std::unique_ptr<std::byte[]> words(new (std::nothrow) std::byte[room]);
    if (!words) return made;
    words[0] = std::byte{};  // no pieces
    const std::size_t shorter = put_words(run, effort, {words.get() + 1, room - 1});
    if (shorter == 0) return made;
    std::copy_n(words.get(), 1 + shorter, into.begin());
    return 1 + shorter;
}

Status get_words(ByteView stored, std::span<std::byte> into) {
    static thread_local std::unique_ptr<ZSTD_DCtx, Free> own;
    if (!own) own.reset(ZSTD_createDCtx());
    if (!own) return {Code::out_of_space, "no memory to decode words"};
    if (ZSTD_findFrameCompressedSize(stored.data(), stored.size()) != stored.size()) return corrupt("predict-planes-zstd: words of more or less than one frame");
    const std::size_t made = ZSTD_decompressDCtx(own.get(), into.data(), into.size(), stored.data(), stored.size());
    if (ZSTD_isError(made)) return corrupt("predict-planes-zstd: words: " + std::string(ZSTD_getErrorName(made)));
    return made == into.size() ? Status() : corrupt("predict-planes-zstd: words of too few bytes");
}

}  // namespace cairn
