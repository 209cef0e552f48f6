#include "codec/planes.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "codec/chosen.hpp"
#include "codec/columns.hpp"
#include "codec/comes_back.hpp"
#include "codec/float_sums.hpp"
#include "codec/integers.hpp"
#include "codec/plane.hpp"
#include "codec/planes_layout.hpp"
#include "codec/planes_rest.hpp"
#include "codec/planes_split.hpp"
#include "codec/prediction.hpp"
#include "codec/words.hpp"

namespace cairn {

namespace {

constexpr std::size_t head_bytes = 12;            // of a stretch: raw bytes, bytes that follow (u32 each), width (0: the raw bytes, or columns), flags, how many strides, how many columns
constexpr double is_worth_it = 0.97;  // a stretch of which more is left is
constexpr std::uint8_t flag_ordered = 1, flag_swapped = 2, flag_rotated = 4, flag_sums = 8, flag_base = 16;

Status cut_short() { return corrupt("predict-planes-zstd: cut short"); }
Status not_as_many() { return corrupt("predict-planes-zstd: not as many bytes as its pieces have"); }

// ---- memory: of a thread, for all runs ----

struct Workspace {
    PlaneCoder coder;
    // As long as a stretch, each aligned for any number.
    std::unique_ptr<std::byte[]> numbers{new (std::nothrow) std::byte[stretch_bytes]}, differences{new (std::nothrow) std::byte[stretch_bytes]},
        planes{new (std::nothrow) std::byte[stretch_bytes]}, back{new (std::nothrow) std::byte[stretch_bytes]}, gathered{new (std::nothrow) std::byte[stretch_bytes]},
        base{new (std::nothrow) std::byte[stretch_bytes]}, column{new (std::nothrow) std::byte[stretch_bytes]};
    bool is_whole() const { return coder.is_whole() && numbers && differences && planes && back && gathered && base && column; }
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
    if (way.is_rotated)
        for (std::size_t i = 0; i < count; ++i) numbers[i] = rotated_back(numbers[i]);
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

template <typename Number>
void planes_of(Workspace& own, const Original& original, const Way& way, std::byte* planes) {
    const std::size_t count = original.raw.size() / sizeof(Number);
    Number* const numbers = as<Number>(own.numbers);
    to_numbers(original, 0, count, way, numbers, as<Number>(own.differences));
    if constexpr (has_sums<Number>)
        if (way.has_sums) {
            subtract_sums(numbers, count, way, as<typename FloatOf<Number>::Type>(own.back), as<Number>(own.differences));
            return split(as<Number>(own.differences), count, true, planes);
        }
    split(subtract(numbers, as<Number>(own.differences), count, way), count, way.is_folded(), planes);
}

template <typename Number>
void raw_of(Workspace& own, const std::byte* planes, const Way& way, ByteView base, std::span<std::byte> into) {
    const std::size_t count = into.size() / sizeof(Number);
    Number* const numbers = as<Number>(own.numbers);
    join(planes, count, way.is_folded(), numbers);
    if constexpr (has_sums<Number>)
        if (way.has_sums) add_sums(numbers, count, way, as<typename FloatOf<Number>::Type>(own.differences));
    if (!way.has_sums) add_up(numbers, count, way);
    if (way.has_base) {
        Number* const before = as<Number>(own.differences);
        to_numbers(base.data(), count, way, before);
        for (std::size_t i = 0; i < count; ++i) numbers[i] = static_cast<Number>(numbers[i] + before[i]);
    }
    from_numbers(numbers, count, way, into.data());
}

// ---- stretches ----

std::size_t put_way(const Way& way, std::span<std::byte> into) {
    into[8] = std::byte{way.width};
    into[9] = static_cast<std::byte>((way.is_ordered ? flag_ordered : 0) | (way.is_swapped ? flag_swapped : 0) | (way.is_rotated ? flag_rotated : 0) | (way.has_sums ? flag_sums : 0) |
                                    (way.has_base ? flag_base : 0));
    into[10] = std::byte{way.strides};
    for (std::size_t axis = 0; axis < way.strides; ++axis) put_count(&into[head_bytes + 4 * axis], way.stride[axis]);
    return head_bytes + 4 * way.strides;
}

// The highest first: what is in one tells of the next.
std::size_t put_planes(const Workspace& own, const Choice& choice, std::size_t count, Effort effort, std::span<std::byte> into, bool is_shared = false) {
    std::size_t out = 0;
    ByteView from;
    for (std::size_t plane = choice.way.width; plane-- > 0;) {
        const ByteView above = std::exchange(from, ByteView(own.planes.get() + plane * count, count));
        const std::size_t made = own.coder.put(from, above, choice.cost.plane[plane], is_shared, effort, into.subspan(out));
        if (made == 0) return 0;
        out += made;
        is_shared = is_shared && made < count;  // numbers that repeat do in every plane, so one look is enough
    }
    return out;
}

// Cuts what it has read. Bytes behind the last whole number are left. `base`: as long as the stretch, where the way has one.
Status decode_numbers(Workspace& own, const Way& way, ByteView& stored, ByteView base, std::span<std::byte> into) {
    const std::size_t count = into.size() / way.width;
    ByteView above;
    for (std::size_t plane = way.width; plane-- > 0;) {
        const std::span<std::byte> to(own.planes.get() + plane * count, count);
        TRY(own.coder.get(stored, above, to));
        above = to;
    }
    CAIRN_BY_WIDTH(way.width, raw_of, own, own.planes.get(), way, base, into);
    return {};
}

Status decode_stretch(Workspace& own, const Way& way, ByteView stored, ByteView base, std::span<std::byte> into) {
    const std::size_t tail = into.size() % way.width;
    TRY(decode_numbers(own, way, stored, base, into));
    if (stored.size() != tail) return not_as_many();
    std::copy(stored.begin(), stored.end(), into.end() - static_cast<std::ptrdiff_t>(tail));
    return {};
}

// How many bytes of `into` the stretch takes, its head among them; 0: it does not get shorter.
std::size_t encode_stretch(Workspace& own, const Choice& choice, Effort effort, const Original& original, std::span<std::byte> into) {
    const ByteView raw = original.raw;
    const std::size_t count = raw.size() / choice.way.width, tail = raw.size() - count * choice.way.width;
    std::size_t out = put_way(choice.way, into);
    const std::size_t planes_begin = out;
    CAIRN_BY_WIDTH(choice.way.width, planes_of, own, original, choice.way, own.planes.get());
    const std::size_t made = put_planes(own, choice, count, effort, into.subspan(out), original.is_shared);
    if (made == 0 || into.size() - out - made < tail) return 0;
    out += made;
    std::copy(raw.end() - static_cast<std::ptrdiff_t>(tail), raw.end(), into.begin() + static_cast<std::ptrdiff_t>(out));
    out += tail;
    if (out > raw.size() - raw.size() / 32) return 0;
    const std::span<std::byte> back(own.back.get(), raw.size());
    const Status decoded = decode_stretch(own, choice.way, ByteView(into.data(), out).subspan(planes_begin), original.base, back);
    return comes_back(decoded, back, raw) ? out : 0;
}

// ---- columns ----

std::optional<Way> way_in(ByteView head, ByteView strides);

constexpr std::size_t way_at = 8, way_bytes = 3;  // in a stretch's head: width, flags, how many strides

Status decode_columns(Workspace& own, std::size_t count, ByteView stored, std::span<std::byte> into) {
    const auto get = [&](ByteView& left, std::span<std::byte> column) -> Status {
        std::array<std::byte, head_bytes> head = {};
        std::copy_n(left.begin(), way_bytes, head.begin() + way_at);
        left = left.subspan(way_bytes);
        const std::optional<Way> way = way_in(head, left);
        if (!way || way->has_base || column.size() % way->width != 0) return corrupt("predict-planes-zstd: no column is so wide or lies so");
        left = left.subspan(4u * way->strides);
        return decode_numbers(own, *way, left, {}, column);
    };
    return get_columns(count, stored, {own.column.get(), stretch_bytes}, get, into);
}

// Behind the stretch's head; 0: it does not get shorter.
std::size_t encode_columns(Workspace& own, const Columns& columns, Effort effort, ByteView raw, std::span<std::byte> into) {
    const auto put = [&](const Choice& choice, ByteView column, std::span<std::byte> to) -> std::size_t {
        if (choice.cost.all >= is_worth_it) return 0;
        std::array<std::byte, head_bytes + 4 * strides_max> head;
        const std::size_t strides = put_way(choice.way, head) - head_bytes;
        if (to.size() < way_bytes + strides) return 0;
        std::copy_n(head.begin() + way_at, way_bytes, to.begin());
        std::copy_n(head.begin() + head_bytes, strides, to.begin() + way_bytes);
        CAIRN_BY_WIDTH(choice.way.width, planes_of, own, Original{column}, choice.way, own.planes.get());
        const std::size_t made = put_planes(own, choice, column.size() / choice.way.width, effort, to.subspan(way_bytes + strides));
        return made == 0 || made > column.size() ? 0 : way_bytes + strides + made;
    };
    const std::size_t made = put_columns(columns, raw, {own.column.get(), stretch_bytes}, put, into);
    if (made == 0 || made > raw.size() - raw.size() / 32) return 0;
    const std::span<std::byte> back(own.back.get(), raw.size());
    const Status decoded = decode_columns(own, columns.columns.size(), into.first(made), back);
    return comes_back(decoded, back, raw) ? made : 0;
}

// What is told of a run that is being encoded.
struct Making {
    Workspace& own;
    Effort effort = Effort::fast;
    ByKey* keys = nullptr;
    bool needs_base = false;
    Effort effort_of(std::uint32_t key) const { return keys ? keys->of(key, effort) : effort; }
    // Returns the time.
    std::uint64_t note(std::uint32_t key, Effort with, std::size_t raw_bytes, std::size_t made, std::uint64_t begun) const {
        if (!keys) return 0;
        const std::uint64_t now = keys->now();
        keys->add({key, with, raw_bytes, made == 0 ? raw_bytes : made, now - begun});
        return now;
    }
    std::span<std::byte> column() const { return {own.column.get(), stretch_bytes}; }
};

// One stretch, its head among the bytes that it takes; 0: there is no room.
std::size_t put_stretch(Making& making, const Chosen& chosen, Effort effort, const Original& original, std::span<std::byte> into) {
    const ByteView raw = original.raw;
    if (into.size() < head_bytes + 4 * strides_max) return 0;
    std::fill_n(into.begin(), head_bytes, std::byte{});
    std::size_t made = 0;
    if (chosen.records) {
        const Columns& columns = chosen.records->columns;
        into[11] = static_cast<std::byte>(columns.columns.size());
        if (const std::size_t follow = encode_columns(making.own, columns, effort, raw, into.subspan(head_bytes)); follow != 0) made = head_bytes + follow;
    } else if (chosen.plain.cost.all < is_worth_it) {
        made = encode_stretch(making.own, chosen.plain, effort, original, into);
        making.needs_base |= made != 0 && chosen.plain.way.has_base;
    }
    if (made == 0) {
        if (into.size() - head_bytes < raw.size()) return 0;
        std::fill_n(into.begin(), head_bytes, std::byte{});
        std::copy(raw.begin(), raw.end(), into.begin() + head_bytes);
        made = head_bytes + raw.size();
    }
    put_count(&into[0], raw.size());
    put_count(&into[4], made - head_bytes);
    return made;
}

// ---- a run: its layout, its arrays, and then all that is none, end to end ----

using Pieces = std::span<const RunPiece>;

// The first of these that are of one stretch.
Pieces first_stretch(Pieces pieces) {
    const auto other = std::find_if(pieces.begin(), pieces.end(), [&](const RunPiece& piece) { return piece.stretch != pieces.front().stretch; });
    return pieces.first(static_cast<std::size_t>(other - pieces.begin()));
}

// Pieces end to end; where it is but one, as it lies.
ByteView gather(ByteView run, Pieces pieces, std::byte* into) {
    if (pieces.size() == 1 || run.empty()) return run.empty() ? run : run.subspan(pieces.front().offset, pieces.front().length);
    std::size_t length = 0;
    for (const RunPiece& piece : pieces) {
        std::copy_n(run.begin() + static_cast<std::ptrdiff_t>(piece.offset), piece.length, into + length);
        length += piece.length;
    }
    return {into, length};
}

std::size_t put_arrays(Making& making, const Original& run, Pieces pieces, std::span<const NumberArray> kinds, std::span<std::byte> into) {
    std::size_t out = 0;
    Chosen chosen;
    const NumberArray* last = nullptr;
    std::size_t last_bytes = 0;
    std::uint64_t begun = making.keys ? making.keys->now() : 0;
    for (Pieces left = pieces; !left.empty();) {
        const Pieces of = first_stretch(left);
        const Original stretch{gather(run.raw, of, making.own.gathered.get()), gather(run.base, of, making.own.base.get()), of.size() > 1};
        const NumberArray& kind = kinds[of.front().stretch];
        const Effort effort = making.effort_of(kind.key);
        chosen = effort == Effort::none ? Chosen() : choose_array(stretch, kind, effort, making.column(), last && *last == kind ? &chosen : nullptr, last_bytes);
        last = &kind;
        last_bytes = stretch.raw.size();
        const std::size_t made = put_stretch(making, chosen, effort, stretch, into.subspan(out));
        begun = making.note(kind.key, effort, last_bytes, made, begun);
        if (made == 0) return 0;
        out += made;
        left = left.subspan(of.size());
    }
    return out;
}

// Neighbouring places of which the same is found make one stretch, as long as it may be.
std::size_t put_rest(Making& making, Rest rest, std::span<std::byte> into) {
    std::size_t out = 0;
    std::optional<Chosen> chosen;
    while (!rest.at_end()) {
        const Original ahead = rest.ahead(making.own.gathered.get(), making.own.base.get());
        const std::size_t length = choose_rest(ahead, making.effort, making.column(), chosen);
        const std::size_t made = put_stretch(making, *chosen, making.effort, ahead.part(0, length), into.subspan(out));
        if (made == 0) return 0;
        out += made;
        rest.skip(length);
    }
    return out;
}

// Nothing where no way is known that lies so.
std::optional<Way> way_in(ByteView head, ByteView strides) {
    Way way;
    way.width = std::to_integer<std::uint8_t>(head[8]);
    const auto flags = std::to_integer<std::uint8_t>(head[9]);
    way.is_ordered = (flags & flag_ordered) != 0;
    way.is_swapped = (flags & flag_swapped) != 0;
    way.is_rotated = (flags & flag_rotated) != 0;
    way.has_sums = (flags & flag_sums) != 0;
    way.has_base = (flags & flag_base) != 0;
    way.strides = std::to_integer<std::uint8_t>(head[10]);
    if (way.width != 1 && way.width != 2 && way.width != 4 && way.width != 8) return std::nullopt;
    if (flags >= 2 * flag_base || (way.is_ordered && way.is_rotated) || (way.has_base && way.has_sums)) return std::nullopt;
    if (way.has_sums && (!way.is_ordered || way.strides == 0 || way.width < 4)) return std::nullopt;
    if (way.strides > strides_max || strides.size() < 4u * way.strides) return std::nullopt;
    for (std::size_t axis = 0; axis < way.strides; ++axis) {
        way.stride[axis] = static_cast<std::uint32_t>(get_count(&strides[4 * axis]));
        if (way.stride[axis] == 0) return std::nullopt;
    }
    return way;
}

// Stretch after stretch of what is stored.
struct Stretches {
    ByteView stored;
    ByteView head = {}, bytes = {};
    std::size_t raw_bytes() const { return get_count(&head[0]); }
    bool next() {
        if (stored.size() < head_bytes) return false;
        head = stored.first(head_bytes);
        stored = stored.subspan(head_bytes);
        const std::size_t follow = get_count(&head[4]);
        if (follow > stored.size() || raw_bytes() == 0 || raw_bytes() > (is_words() ? words_bytes : stretch_bytes) || !is_sound()) return false;
        bytes = stored.first(follow);
        stored = stored.subspan(follow);
        return true;
    }
    bool is_words() const { return head[8] == std::byte{} && head[9] == std::byte{flag_words} && head[10] == std::byte{} && head[11] == std::byte{}; }
    // What a head may not say, whoever wrote it.
    bool is_sound() const {
        if (is_words()) return true;
        const bool has_width = head[8] != std::byte{}, has_way = head[9] != std::byte{} || head[10] != std::byte{}, has_columns = head[11] != std::byte{};
        return has_width ? !has_columns : !has_way;
    }
    bool has_base() const { return (std::to_integer<std::uint8_t>(head[9]) & flag_base) != 0; }
    Status decode(Workspace& own, ByteView base, std::span<std::byte> into) const {
        if (is_words()) return get_words(bytes, into);
        if (head[11] != std::byte{}) return decode_columns(own, std::to_integer<std::size_t>(head[11]), bytes, into);
        if (head[8] == std::byte{}) {
            if (bytes.size() != into.size()) return not_as_many();
            std::copy(bytes.begin(), bytes.end(), into.begin());
            return {};
        }
        const std::optional<Way> way = way_in(head, bytes);
        if (!way) return corrupt("predict-planes-zstd: no numbers are so wide or lie so");
        if (way->has_base && base.size() != into.size()) return corrupt("predict-planes-zstd: it needs a base, and none is named");
        return decode_stretch(own, *way, bytes.subspan(4u * way->strides), base, into);
    }
};

Status decode_arrays(Workspace& own, Stretches& stretches, Pieces pieces, ByteView base, std::span<std::byte> into) {
    for (Pieces left = pieces; !left.empty();) {
        const Pieces of = first_stretch(left);
        if (!stretches.next()) return cut_short();
        std::size_t length = 0;
        for (const RunPiece& piece : of) length += piece.length;
        if (length != stretches.raw_bytes() || stretches.is_words()) return not_as_many();
        const ByteView before = stretches.has_base() ? gather(base, of, own.base.get()) : ByteView();
        if (of.size() == 1) {
            TRY(stretches.decode(own, before, into.subspan(of.front().offset, length)));
        } else {
            const std::byte* from = own.back.get();
            TRY(stretches.decode(own, before, std::span(own.back.get(), length)));
            for (const RunPiece& piece : of) {
                std::copy_n(from, piece.length, into.begin() + static_cast<std::ptrdiff_t>(piece.offset));
                from += piece.length;
            }
        }
        left = left.subspan(of.size());
    }
    return {};
}

// The next bytes of the rest, as the base has them.
ByteView base_of_rest(Workspace& own, ByteView base, std::span<std::byte> gap, Gaps gaps, std::size_t bytes) {
    std::size_t length = 0;
    while (length < bytes && !gap.empty() && !base.empty()) {
        const std::size_t some = std::min(bytes - length, gap.size());
        std::copy_n(base.begin() + (gap.data() - gaps.run.data()), some, own.base.get() + length);
        length += some;
        gap = gaps.next();
    }
    return {own.base.get(), length};
}

Status decode_rest(Workspace& own, Stretches& stretches, ByteView base, Gaps gaps) {
    std::span<std::byte> gap = gaps.next();
    while (!gap.empty()) {
        if (!stretches.next()) return cut_short();
        if (stretches.is_words()) {  // in one place: they may be more than the workspace holds
            if (stretches.raw_bytes() > gap.size()) return not_as_many();
            TRY(stretches.decode(own, {}, gap.first(stretches.raw_bytes())));
            gap = gap.subspan(stretches.raw_bytes());
            if (gap.empty()) gap = gaps.next();
            continue;
        }
        std::span<std::byte> bytes(own.back.get(), stretches.raw_bytes());
        const ByteView before = stretches.has_base() ? base_of_rest(own, base, gap, gaps, bytes.size()) : ByteView();
        TRY(stretches.decode(own, before, bytes));
        while (!bytes.empty()) {
            if (gap.empty()) return not_as_many();
            const std::size_t some = std::min(bytes.size(), gap.size());
            std::copy_n(bytes.begin(), some, gap.begin());
            bytes = bytes.subspan(some);
            gap = gap.subspan(some);
            if (gap.empty()) gap = gaps.next();
        }
    }
    return {};
}

// As of each stretch: what is stored is read and compared before it counts.
bool comes_back(const RunLayout& layout, ByteView stored, std::size_t run_bytes) {
    const Result<RunLayout> read = get_layout(stored, run_bytes);
    return read.ok() && read->pieces == layout.pieces && stored.empty();
}

std::size_t encode_stretches(ByteView raw, std::span<const NumberArray> arrays, std::span<std::byte> into, Effort effort, Base* base, ByKey* keys) {
    Workspace* const own = workspace();
    if (!own || raw.empty()) return 0;
    const Original run{raw, base && base->bytes.size() == raw.size() ? base->bytes : ByteView()};
    Making making{*own, effort, keys};
    std::vector<NumberArray> kinds;
    const RunLayout layout = lay_out(raw, arrays, kinds);
    std::size_t out = put_layout(layout, into), at = 0;
    if (out == 0 || !comes_back(layout, into.first(out), raw.size())) return 0;
    if (!layout.pieces.empty()) {
        const std::size_t made = put_arrays(making, run, layout.by_stretch(), kinds, into.subspan(out));
        if (made == 0) return 0;
        out += made;
    }
    Rest rest;
    for (const RunPiece& piece : layout.pieces) {
        rest.add(run.part(at, piece.offset - at));
        at = piece.offset + piece.length;
    }
    rest.add(run.part(at, raw.size() - at));
    if (!rest.at_end()) {
        const std::size_t made = put_rest(making, std::move(rest), into.subspan(out));
        if (made == 0) return 0;
        out += made;
    }
    if (base) base->is_needed = making.needs_base;
    return out;
}

}  // namespace

std::uint64_t encode_planes(ByteView raw, std::span<const NumberArray> arrays, std::span<std::byte> into, Effort effort, Base* base, ByKey* keys) {
    const std::size_t made = encode_stretches(raw, arrays, into, effort, base, keys), shorter = put_shorter_words(raw, effort, made, into);
    if (base && shorter != made) base->is_needed = false;
    if (keys && shorter == 0) keys->give_up();
    if (keys && shorter != made) keys->seen.clear();  // words: of no key
    return shorter;
}

Status decode_planes(ByteView stored, std::span<std::byte> into, ByteView base) {
    Workspace* const own = workspace();
    if (!own) return {Code::out_of_space, "no memory to decode a run"};
    if (base.size() != into.size()) base = {};
    TRY_ASSIGN(const RunLayout layout, get_layout(stored, into.size()));
    Stretches stretches{stored};
    TRY(decode_arrays(*own, stretches, layout.by_stretch(), base, into));
    TRY(decode_rest(*own, stretches, base, {layout.pieces, into}));
    return stretches.stored.empty() ? Status() : not_as_many();
}

}  // namespace cairn
