#include "codec/planes.hpp"

#include <zstd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <optional>
#include <string>

#include "codec/integers.hpp"
#include "codec/prediction.hpp"

namespace cairn {

namespace {

constexpr std::size_t stretch_bytes = 256 << 10;  // so that all of it stays in a core's cache
constexpr std::size_t guess_bytes = 64 << 10;     // of what nobody knows: it may be something else behind that
constexpr std::size_t head_bytes = 16;            // of a stretch: raw bytes, bytes that follow, bytes of the rest before it (u32 each), width (0: the raw bytes), flags, how many strides, 0
constexpr double is_noise = 0.98;     // a plane of which a sample says so is left as it is
constexpr double is_worth_it = 0.97;  // a stretch of which more is left is
constexpr std::size_t array_bytes_min = 8 << 10;  // shorter ones are with the rest: a sample of each would take longer than all else
constexpr std::size_t sample_bytes_min = 64;
constexpr std::uint8_t flag_ordered = 1, flag_swapped = 2, flag_rest = 4;

// ---- memory: of a thread, for all runs ----

struct FreeContext {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

struct Workspace {
    std::unique_ptr<ZSTD_CCtx, FreeContext> compressor{ZSTD_createCCtx()};
    std::unique_ptr<ZSTD_DCtx, FreeContext> decompressor{ZSTD_createDCtx()};
    // As long as a stretch, each aligned for any number.
    std::unique_ptr<std::byte[]> numbers{new (std::nothrow) std::byte[stretch_bytes]}, differences{new (std::nothrow) std::byte[stretch_bytes]},
        planes{new (std::nothrow) std::byte[stretch_bytes]}, back{new (std::nothrow) std::byte[stretch_bytes]}, gathered{new (std::nothrow) std::byte[stretch_bytes]};
    // Planes are short, and what is alike in one lies near: tables that fit the cache are as good as larger ones.
    Workspace() {
        if (!compressor) return;
        ZSTD_CCtx_setParameter(compressor.get(), ZSTD_c_compressionLevel, 1);
        ZSTD_CCtx_setParameter(compressor.get(), ZSTD_c_windowLog, 18);
        ZSTD_CCtx_setParameter(compressor.get(), ZSTD_c_hashLog, 13);
    }
    bool is_whole() const { return compressor && decompressor && numbers && differences && planes && back && gathered; }
};

// nullptr: there is no memory.
Workspace* workspace() {
    static thread_local Workspace own;
    if (!own.is_whole()) own = Workspace();
    return own.is_whole() ? &own : nullptr;
}

template <typename Number>
Number* as(const std::unique_ptr<std::byte[]>& memory) {
    return reinterpret_cast<Number*>(memory.get());
}

// ---- numbers to planes, and back ----

template <typename Number>
void from_numbers(Number* numbers, std::size_t count, const Way& way, std::byte* raw) {
    if (way.is_ordered)
        for (std::size_t i = 0; i < count; ++i) numbers[i] = ordered(numbers[i]);
    if (way.is_swapped)
        for (std::size_t i = 0; i < count; ++i) numbers[i] = swap_bytes(numbers[i]);
    std::memcpy(raw, numbers, count * sizeof(Number));
}

// What no number lies a stride before stays what it is. The result is in one of the two, and so is said which.
template <typename Number>
Number* subtract(Number* numbers, Number* other, std::size_t count, const Way& way) {
    for (std::size_t axis = 0; axis < way.strides; ++axis) {
        const std::size_t stride = std::min<std::size_t>(way.stride[axis], count);
        const Number* __restrict from = numbers;
        Number* __restrict to = other;
        std::memcpy(to, from, stride * sizeof(Number));
        for (std::size_t i = stride; i < count; ++i) to[i] = static_cast<Number>(from[i] - from[i - stride]);
        std::swap(numbers, other);
    }
    return numbers;
}

template <typename Number>
void add_up(Number* numbers, std::size_t count, const Way& way) {
    for (std::size_t axis = way.strides; axis-- > 0;)
        for (std::size_t i = way.stride[axis]; i < count; ++i) numbers[i] = static_cast<Number>(numbers[i] + numbers[i - way.stride[axis]]);
}

constexpr std::size_t tile = 512;  // numbers

// Halves of numbers come apart, and theirs, until they are bytes; and back. Each step is one that a compiler makes vectors of.
template <typename Half, typename Number>
void halve(const Number* __restrict from, std::size_t length, Half* __restrict low, Half* __restrict high) {
    for (std::size_t i = 0; i < length; ++i) low[i] = static_cast<Half>(from[i]);
    for (std::size_t i = 0; i < length; ++i) high[i] = static_cast<Half>(from[i] >> (8 * sizeof(Half)));
}
template <typename Half, typename Number>
void unite(const Half* __restrict low, const Half* __restrict high, std::size_t length, Number* __restrict to) {
    for (std::size_t i = 0; i < length; ++i) to[i] = static_cast<Number>(low[i] | static_cast<Number>(static_cast<Number>(high[i]) << (8 * sizeof(Half))));
}

template <std::size_t bytes>
using Unsigned = std::conditional_t<bytes == 8, std::uint64_t, std::conditional_t<bytes == 4, std::uint32_t, std::conditional_t<bytes == 2, std::uint16_t, std::uint8_t>>>;

// The lowest plane first; each is `apart` bytes behind the one before.
template <typename Number>
void split_tile(const Number* numbers, std::size_t length, std::byte* planes, std::size_t apart) {
    if constexpr (sizeof(Number) == 1) {
        std::memcpy(planes, numbers, length);
    } else {
        using Half = Unsigned<sizeof(Number) / 2>;
        std::array<Half, tile> low, high;
        halve(numbers, length, low.data(), high.data());
        split_tile(low.data(), length, planes, apart);
        split_tile(high.data(), length, planes + sizeof(Half) * apart, apart);
    }
}
template <typename Number>
void join_tile(const std::byte* planes, std::size_t apart, std::size_t length, Number* numbers) {
    if constexpr (sizeof(Number) == 1) {
        std::memcpy(numbers, planes, length);
    } else {
        using Half = Unsigned<sizeof(Number) / 2>;
        std::array<Half, tile> low, high;
        join_tile(planes, apart, length, low.data());
        join_tile(planes + sizeof(Half) * apart, apart, length, high.data());
        unite(low.data(), high.data(), length, numbers);
    }
}

template <typename Number>
void split(const Number* numbers, std::size_t count, bool is_folded, std::byte* planes) {
    std::array<Number, tile> folded;
    for (std::size_t at = 0; at < count; at += tile) {
        const std::size_t length = std::min(tile, count - at);
        if (is_folded)
            for (std::size_t i = 0; i < length; ++i) folded[i] = fold(numbers[at + i]);
        split_tile(is_folded ? folded.data() : numbers + at, length, planes + at, count);
    }
}
template <typename Number>
void join(const std::byte* planes, std::size_t count, bool is_folded, Number* numbers) {
    for (std::size_t at = 0; at < count; at += tile) {
        const std::size_t length = std::min(tile, count - at);
        join_tile(planes + at, count, length, numbers + at);
        if (is_folded)
            for (std::size_t i = at; i < at + length; ++i) numbers[i] = unfold(numbers[i]);
    }
}

template <typename Number>
void planes_of(Workspace& own, ByteView raw, const Way& way, std::byte* planes) {
    const std::size_t count = raw.size() / sizeof(Number);
    Number* const numbers = as<Number>(own.numbers);
    to_numbers(raw.data(), count, way, numbers);
    split(subtract(numbers, as<Number>(own.differences), count, way), count, way.strides != 0, planes);
}

template <typename Number>
void raw_of(Workspace& own, const std::byte* planes, const Way& way, std::span<std::byte> into) {
    const std::size_t count = into.size() / sizeof(Number);
    Number* const numbers = as<Number>(own.numbers);
    join(planes, count, way.strides != 0, numbers);
    add_up(numbers, count, way);
    from_numbers(numbers, count, way, into.data());
}

// ---- stretches ----

std::size_t put_way(const Way& way, std::span<std::byte> into) {
    into[12] = std::byte{way.width};
    into[13] |= static_cast<std::byte>((way.is_ordered ? flag_ordered : 0) | (way.is_swapped ? flag_swapped : 0));
    into[14] = std::byte{way.strides};
    for (std::size_t axis = 0; axis < way.strides; ++axis) put_count(&into[head_bytes + 4 * axis], way.stride[axis]);
    return head_bytes + 4 * way.strides;
}

// Each plane: how many bytes follow, and these; as many as the plane has: they are the plane.
std::size_t put_planes(Workspace& own, const Choice& choice, std::size_t count, std::span<std::byte> into) {
    std::size_t out = 0;
    for (std::size_t plane = 0; plane < choice.way.width; ++plane) {
        const std::byte* const from = own.planes.get() + plane * count;
        if (into.size() - out < 4) return 0;
        const std::span<std::byte> room = into.subspan(out + 4);
        std::size_t made = count;
        if (choice.cost.plane[plane] < is_noise) {
            made = ZSTD_compress2(own.compressor.get(), room.data(), std::min(room.size(), count), from, count);
            if (ZSTD_isError(made) || made >= count - count / 64) made = count;
        }
        if (made == count) {
            if (room.size() < count) return 0;
            std::memcpy(room.data(), from, count);
        }
        put_count(&into[out], made);
        out += 4 + made;
    }
    return out;
}

Status decode_stretch(Workspace& own, const Way& way, ByteView stored, std::span<std::byte> into) {
    const std::size_t count = into.size() / way.width, tail = into.size() - count * way.width;
    std::size_t at = 0;
    for (std::size_t plane = 0; plane < way.width; ++plane) {
        if (stored.size() - at < 4) return corrupt("predict-planes-zstd: cut short");
        const std::size_t follow = get_count(stored.data() + at);
        at += 4;
        if (follow > stored.size() - at || follow > count) return corrupt("predict-planes-zstd: cut short");
        const std::byte* const from = stored.data() + at;
        std::byte* const to = own.planes.get() + plane * count;
        if (follow == count) {
            std::memcpy(to, from, count);
        } else {
            if (ZSTD_findFrameCompressedSize(from, follow) != follow) return corrupt("predict-planes-zstd: a plane of more or less than one frame");
            const std::size_t made = ZSTD_decompressDCtx(own.decompressor.get(), to, count, from, follow);
            if (ZSTD_isError(made)) return corrupt("predict-planes-zstd: " + std::string(ZSTD_getErrorName(made)));
            if (made != count) return corrupt("predict-planes-zstd: a plane of too few bytes");
        }
        at += follow;
    }
    if (stored.size() - at != tail) return corrupt("predict-planes-zstd: not as many bytes as its pieces have");
    CAIRN_BY_WIDTH(way.width, raw_of, own, own.planes.get(), way, into);
    std::copy(stored.begin() + static_cast<std::ptrdiff_t>(at), stored.end(), into.end() - static_cast<std::ptrdiff_t>(tail));
    return {};
}

// How many bytes of `into` the stretch takes, its head among them; 0: it does not get shorter.
std::size_t encode_stretch(Workspace& own, const Choice& choice, ByteView raw, std::span<std::byte> into) {
    const std::size_t count = raw.size() / choice.way.width, tail = raw.size() - count * choice.way.width;
    std::size_t out = put_way(choice.way, into);
    const std::size_t planes_begin = out;
    CAIRN_BY_WIDTH(choice.way.width, planes_of, own, raw, choice.way, own.planes.get());
    const std::size_t made = put_planes(own, choice, count, into.subspan(out));
    if (made == 0 || into.size() - out - made < tail) return 0;
    out += made;
    std::copy(raw.end() - static_cast<std::ptrdiff_t>(tail), raw.end(), into.begin() + static_cast<std::ptrdiff_t>(out));
    out += tail;
    if (out > raw.size() - raw.size() / 32) return 0;
    // What is stored is decoded and compared, so that no error of a library or of memory is stored for good.
    const std::span<std::byte> back(own.back.get(), raw.size());
    const Status decoded = decode_stretch(own, choice.way, ByteView(into.data(), out).subspan(planes_begin), back);
    return decoded.ok() && std::memcmp(back.data(), raw.data(), raw.size()) == 0 ? out : 0;
}

// One stretch, its head among the bytes that it takes; 0: there is no room.
std::size_t put_stretch(Workspace& own, const Choice& choice, ByteView raw, std::size_t rest_before, std::uint8_t flags, std::span<std::byte> into) {
    if (into.size() < head_bytes + 4 * strides_max) return 0;
    std::fill_n(into.begin(), head_bytes, std::byte{});
    into[13] = std::byte{flags};
    std::size_t made = choice.cost.all < is_worth_it ? encode_stretch(own, choice, raw, into) : 0;
    if (made == 0) {
        if (into.size() - head_bytes < raw.size()) return 0;
        std::fill_n(into.begin() + 12, 4, std::byte{});
        into[13] = std::byte{flags};
        std::copy(raw.begin(), raw.end(), into.begin() + head_bytes);
        made = head_bytes + raw.size();
    }
    put_count(&into[0], raw.size());
    put_count(&into[4], made - head_bytes);
    put_count(&into[8], rest_before);
    return made;
}

// ---- a run: the arrays in it, one after the other, and then all that is none, end to end ----

// What is left of a run when its arrays are taken out, from a place in it on.
class Rest {
  public:
    void add(ByteView piece) {
        if (!piece.empty()) pieces_.push_back(piece);
    }
    bool at_end() const { return at_ == pieces_.size(); }
    // As many bytes as a stretch has, or all there are: where they lie, or where they lie in several places, gathered.
    ByteView ahead(std::byte* gathered) const {
        const ByteView first = pieces_[at_].subspan(used_);
        if (first.size() >= stretch_bytes || at_ + 1 == pieces_.size()) return first.first(std::min(first.size(), stretch_bytes));
        std::size_t length = 0;
        for (std::size_t i = at_; i < pieces_.size() && length < stretch_bytes; ++i) {
            const ByteView from = i == at_ ? first : pieces_[i];
            const std::size_t some = std::min(from.size(), stretch_bytes - length);
            std::copy_n(from.begin(), some, gathered + length);
            length += some;
        }
        return {gathered, length};
    }
    void skip(std::size_t length) {
        while (length > 0) {
            const std::size_t some = std::min(length, pieces_[at_].size() - used_);
            used_ += some;
            length -= some;
            if (used_ == pieces_[at_].size()) ++at_, used_ = 0;
        }
    }

  private:
    std::vector<ByteView> pieces_;
    std::size_t at_ = 0, used_ = 0;
};

bool is_known(const NumberArray& array, std::size_t from, std::size_t run_bytes) {
    const bool has_width = array.width == 1 || array.width == 2 || array.width == 4 || array.width == 8;
    return has_width && array.length >= array_bytes_min && array.offset >= from && array.offset <= run_bytes && array.length <= run_bytes - array.offset;
}

// Neighbouring places of which the same is found make one stretch, as long as it may be.
std::size_t put_rest(Workspace& own, Rest rest, std::span<std::byte> into) {
    std::size_t out = 0;
    while (!rest.at_end()) {
        const ByteView ahead = rest.ahead(own.gathered.get());
        std::size_t length = std::min(guess_bytes, ahead.size());
        Choice choice;
        if (length >= sample_bytes_min) choice = choose(ahead.first(length));
        while (length >= sample_bytes_min && ahead.size() - length >= sample_bytes_min) {
            const std::size_t more = std::min(guess_bytes, ahead.size() - length);
            if (!(choose(ahead.subspan(length, more)).way == choice.way)) break;
            length += more;
        }
        const std::size_t made = put_stretch(own, choice, ahead.first(length), 0, flag_rest, into.subspan(out));
        if (made == 0) return 0;
        out += made;
        rest.skip(length);
    }
    return out;
}

// Nothing where no way is known that lies so.
std::optional<Way> way_in(ByteView head, ByteView strides) {
    Way way;
    way.width = std::to_integer<std::uint8_t>(head[12]);
    const auto flags = std::to_integer<std::uint8_t>(head[13]);
    way.is_ordered = (flags & flag_ordered) != 0;
    way.is_swapped = (flags & flag_swapped) != 0;
    way.strides = std::to_integer<std::uint8_t>(head[14]);
    if (way.width != 1 && way.width != 2 && way.width != 4 && way.width != 8) return std::nullopt;
    if (flags > (flag_ordered | flag_swapped | flag_rest) || way.strides > strides_max || strides.size() < 4u * way.strides) return std::nullopt;
    for (std::size_t axis = 0; axis < way.strides; ++axis) {
        way.stride[axis] = static_cast<std::uint32_t>(get_count(&strides[4 * axis]));
        if (way.stride[axis] == 0) return std::nullopt;
    }
    return way;
}

// Stretch after stretch of what is stored.
struct Stretches {
    ByteView stored;
    std::size_t at = 0;
    ByteView head = {}, bytes = {};
    bool is_rest() const { return (head[13] & std::byte{flag_rest}) != std::byte{}; }
    std::size_t raw_bytes() const { return get_count(&head[0]); }
    std::size_t rest_before() const { return get_count(&head[8]); }
    bool at_end() const { return at == stored.size(); }
    bool next() {
        if (stored.size() - at < head_bytes) return false;
        head = stored.subspan(at, head_bytes);
        at += head_bytes;
        const std::size_t follow = get_count(&head[4]);
        if (follow > stored.size() - at || raw_bytes() == 0 || raw_bytes() > stretch_bytes || !is_sound()) return false;
        bytes = stored.subspan(at, follow);
        at += follow;
        return true;
    }
    // What a head may not say, whoever wrote it.
    bool is_sound() const {
        const bool is_raw = head[12] == std::byte{};
        const bool has_way = (head[13] & ~std::byte{flag_rest}) != std::byte{} || head[14] != std::byte{};
        return head[15] == std::byte{} && !(is_rest() && rest_before() != 0) && !(is_raw && has_way);
    }
    Status decode(Workspace& own, std::span<std::byte> into) const {
        if (head[12] == std::byte{}) {
            if (bytes.size() != into.size()) return not_as_many();
            std::copy(bytes.begin(), bytes.end(), into.begin());
            return {};
        }
        const std::optional<Way> way = way_in(head, bytes);
        if (!way) return corrupt("predict-planes-zstd: no numbers are so wide or lie so");
        return decode_stretch(own, *way, bytes.subspan(4u * way->strides), into);
    }
    static Status cut_short() { return corrupt("predict-planes-zstd: cut short"); }
    static Status not_as_many() { return corrupt("predict-planes-zstd: not as many bytes as its pieces have"); }
};

// The places between the arrays, in their order: where the rest goes.
struct Gaps {
    Stretches arrays;
    std::size_t out = 0, length = 0;  // the place: where it is, and how long
    bool is_last = false;
    // Of the next one; false: there is none.
    bool next(std::size_t run_bytes) {
        if (is_last) return false;
        std::size_t begin = out + length;
        if (arrays.head.data()) begin += arrays.raw_bytes();
        out = begin;
        is_last = arrays.at_end() || !arrays.next() || arrays.is_rest();
        length = is_last ? run_bytes - out : arrays.rest_before();
        return true;
    }
};

bool has_gap(ByteView stored) {
    Stretches stretches{stored};
    while (!stretches.at_end() && stretches.next())
        if (stretches.rest_before() != 0) return true;
    return false;
}

Status decode_rest(Workspace& own, Stretches rest, ByteView stored, std::span<std::byte> into) {
    Gaps gaps{Stretches{stored}};
    std::size_t used = 0;
    for (bool is_first = true; is_first || !rest.at_end(); is_first = false) {
        if (!is_first && !rest.next()) return Stretches::cut_short();
        if (!rest.is_rest()) return corrupt("predict-planes-zstd: an array behind the rest");
        std::span<std::byte> bytes(own.back.get(), rest.raw_bytes());
        TRY(rest.decode(own, bytes));
        while (!bytes.empty()) {
            if (used == gaps.length) {
                used = 0;
                if (!gaps.next(into.size())) return Stretches::not_as_many();
                continue;
            }
            const std::size_t some = std::min(bytes.size(), gaps.length - used);
            std::copy_n(bytes.begin(), some, into.begin() + static_cast<std::ptrdiff_t>(gaps.out + used));
            bytes = bytes.subspan(some);
            used += some;
        }
    }
    while (used == gaps.length && gaps.next(into.size())) used = 0;
    return used == gaps.length ? Status() : Stretches::not_as_many();
}

}  // namespace

std::uint64_t encode_planes(ByteView raw, std::span<const NumberArray> arrays, std::span<std::byte> into) {
    Workspace* const own = workspace();
    if (!own) return 0;
    std::size_t out = 0, at = 0;
    Rest rest;
    for (const NumberArray& array : arrays) {
        if (!is_known(array, at, raw.size())) continue;
        std::size_t before = array.offset - at;
        rest.add(raw.subspan(at, before));
        for (at = array.offset; at < array.offset + array.length; before = 0) {
            const ByteView stretch = raw.subspan(at, std::min<std::size_t>(stretch_bytes, array.offset + array.length - at));
            const std::size_t made = put_stretch(*own, choose(stretch, array), stretch, before, 0, into.subspan(out));
            if (made == 0) return 0;
            out += made;
            at += stretch.size();
        }
    }
    rest.add(raw.subspan(at));
    if (rest.at_end()) return out;
    const std::size_t made = put_rest(*own, std::move(rest), into.subspan(out));
    return made == 0 ? 0 : out + made;
}

Status decode_planes(ByteView stored, std::span<std::byte> into) {
    Workspace* const own = workspace();
    if (!own) return {Code::out_of_space, "no memory to decode a run"};
    Stretches stretches{stored};
    std::size_t out = 0;
    while (!stretches.at_end()) {
        if (!stretches.next()) return Stretches::cut_short();
        if (stretches.is_rest()) return decode_rest(*own, stretches, stored, into);
        if (stretches.rest_before() > into.size() - out) return Stretches::not_as_many();
        out += stretches.rest_before();
        if (stretches.raw_bytes() > into.size() - out) return Stretches::not_as_many();
        TRY(stretches.decode(*own, into.subspan(out, stretches.raw_bytes())));
        out += stretches.raw_bytes();
    }
    // Without a rest the arrays are all, and lie end to end.
    return out == into.size() && !has_gap(stored) ? Status() : Stretches::not_as_many();
}

}  // namespace cairn
