#include "codec/planes.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <optional>
#include <string>

#include "codec/float_sums.hpp"
#include "codec/integers.hpp"
#include "codec/plane.hpp"
#include "codec/planes_layout.hpp"
#include "codec/planes_split.hpp"
#include "codec/prediction.hpp"

namespace cairn {

namespace {

constexpr std::size_t guess_bytes = 64 << 10;     // of what nobody knows: it may be something else behind that
constexpr std::size_t head_bytes = 12;            // of a stretch: raw bytes, bytes that follow (u32 each), width (0: the raw bytes), flags, how many strides, 0
constexpr double is_worth_it = 0.97;  // a stretch of which more is left is
constexpr std::size_t sample_bytes_min = 64;
constexpr std::uint8_t flag_ordered = 1, flag_swapped = 2, flag_rotated = 4, flag_sums = 8, flag_base = 16;

Status cut_short() { return corrupt("predict-planes-zstd: cut short"); }
Status not_as_many() { return corrupt("predict-planes-zstd: not as many bytes as its pieces have"); }

// ---- memory: of a thread, for all runs ----

struct Workspace {
    PlaneCoder coder;
    // As long as a stretch, each aligned for any number.
    std::unique_ptr<std::byte[]> numbers{new (std::nothrow) std::byte[stretch_bytes]}, differences{new (std::nothrow) std::byte[stretch_bytes]},
        planes{new (std::nothrow) std::byte[stretch_bytes]}, back{new (std::nothrow) std::byte[stretch_bytes]}, gathered{new (std::nothrow) std::byte[stretch_bytes]},
        base{new (std::nothrow) std::byte[stretch_bytes]};
    bool is_whole() const { return coder.is_whole() && numbers && differences && planes && back && gathered && base; }
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
std::size_t put_planes(const Workspace& own, const Choice& choice, std::size_t count, Effort effort, std::span<std::byte> into) {
    std::size_t out = 0;
    ByteView above;
    for (std::size_t plane = choice.way.width; plane-- > 0;) {
        const ByteView from(own.planes.get() + plane * count, count);
        const std::size_t made = own.coder.put(from, above, choice.cost.plane[plane], effort, into.subspan(out));
        if (made == 0) return 0;
        out += made;
        above = from;
    }
    return out;
}

// `base`: as long as the stretch, where the way has one.
Status decode_stretch(Workspace& own, const Way& way, ByteView stored, ByteView base, std::span<std::byte> into) {
    const std::size_t count = into.size() / way.width, tail = into.size() - count * way.width;
    ByteView above;
    for (std::size_t plane = way.width; plane-- > 0;) {
        const std::span<std::byte> to(own.planes.get() + plane * count, count);
        TRY(own.coder.get(stored, above, to));
        above = to;
    }
    if (stored.size() != tail) return not_as_many();
    CAIRN_BY_WIDTH(way.width, raw_of, own, own.planes.get(), way, base, into);
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
    const std::size_t made = put_planes(own, choice, count, effort, into.subspan(out));
    if (made == 0 || into.size() - out - made < tail) return 0;
    out += made;
    std::copy(raw.end() - static_cast<std::ptrdiff_t>(tail), raw.end(), into.begin() + static_cast<std::ptrdiff_t>(out));
    out += tail;
    if (out > raw.size() - raw.size() / 32) return 0;
    // What is stored is decoded and compared, so that no error of a library or of memory is stored for good.
    const std::span<std::byte> back(own.back.get(), raw.size());
    const Status decoded = decode_stretch(own, choice.way, ByteView(into.data(), out).subspan(planes_begin), original.base, back);
    return decoded.ok() && std::memcmp(back.data(), raw.data(), raw.size()) == 0 ? out : 0;
}

// What is told of a run that is being encoded.
struct Making {
    Workspace& own;
    Effort effort = Effort::fast;
    bool needs_base = false;
};

// One stretch, its head among the bytes that it takes; 0: there is no room.
std::size_t put_stretch(Making& making, const Choice& choice, const Original& original, std::span<std::byte> into) {
    const ByteView raw = original.raw;
    if (into.size() < head_bytes + 4 * strides_max) return 0;
    std::fill_n(into.begin(), head_bytes, std::byte{});
    std::size_t made = choice.cost.all < is_worth_it ? encode_stretch(making.own, choice, making.effort, original, into) : 0;
    making.needs_base |= made != 0 && choice.way.has_base;
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
    std::optional<Choice> choice;
    const NumberArray* last = nullptr;
    for (Pieces left = pieces; !left.empty();) {
        const Pieces of = first_stretch(left);
        const Original stretch{gather(run.raw, of, making.own.gathered.get()), gather(run.base, of, making.own.base.get())};
        const NumberArray& kind = kinds[of.front().stretch];
        choice = choose(stretch, kind, making.effort, last && *last == kind ? &*choice : nullptr);
        last = &kind;
        const std::size_t made = put_stretch(making, *choice, stretch, into.subspan(out));
        if (made == 0) return 0;
        out += made;
        left = left.subspan(of.size());
    }
    return out;
}

// What is left of a run when its arrays are taken out, from a place in it on.
class Rest {
  public:
    void add(const Original& piece) {
        if (!piece.raw.empty()) pieces_.push_back(piece);
    }
    bool at_end() const { return at_ == pieces_.size(); }
    // As many bytes as a stretch has, or all there are: where they lie, or where they lie in several places, gathered.
    Original ahead(Workspace& own) const {
        const Original first = pieces_[at_].part(used_, pieces_[at_].raw.size() - used_);
        if (first.raw.size() >= stretch_bytes || at_ + 1 == pieces_.size()) return first.part(0, std::min(first.raw.size(), stretch_bytes));
        std::size_t length = 0;
        for (std::size_t i = at_; i < pieces_.size() && length < stretch_bytes; ++i) {
            const Original& from = i == at_ ? first : pieces_[i];
            const std::size_t some = std::min(from.raw.size(), stretch_bytes - length);
            std::copy_n(from.raw.begin(), some, own.gathered.get() + length);
            if (!from.base.empty()) std::copy_n(from.base.begin(), some, own.base.get() + length);
            length += some;
        }
        return {{own.gathered.get(), length}, first.base.empty() ? ByteView() : ByteView(own.base.get(), length)};
    }
    void skip(std::size_t length) {
        while (length > 0) {
            const std::size_t some = std::min(length, pieces_[at_].raw.size() - used_);
            used_ += some;
            length -= some;
            if (used_ == pieces_[at_].raw.size()) ++at_, used_ = 0;
        }
    }

  private:
    std::vector<Original> pieces_;
    std::size_t at_ = 0, used_ = 0;
};

// Neighbouring places of which the same is found make one stretch, as long as it may be.
std::size_t put_rest(Making& making, Rest rest, std::span<std::byte> into) {
    std::size_t out = 0;
    while (!rest.at_end()) {
        const Original ahead = rest.ahead(making.own);
        const std::size_t bytes = ahead.raw.size();
        std::size_t length = std::min(guess_bytes, bytes);
        Choice choice;
        if (length >= sample_bytes_min) choice = choose(ahead.part(0, length));
        while (length >= sample_bytes_min && bytes - length >= sample_bytes_min) {
            const std::size_t more = std::min(guess_bytes, bytes - length);
            if (!(choose(ahead.part(length, more)).way == choice.way)) break;
            length += more;
        }
        const std::size_t made = put_stretch(making, choice, ahead.part(0, length), into.subspan(out));
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
        if (follow > stored.size() || raw_bytes() == 0 || raw_bytes() > stretch_bytes || !is_sound()) return false;
        bytes = stored.first(follow);
        stored = stored.subspan(follow);
        return true;
    }
    // What a head may not say, whoever wrote it.
    bool is_sound() const {
        const bool is_raw = head[8] == std::byte{}, has_way = head[9] != std::byte{} || head[10] != std::byte{};
        return head[11] == std::byte{} && !(is_raw && has_way);
    }
    bool has_base() const { return (std::to_integer<std::uint8_t>(head[9]) & flag_base) != 0; }
    Status decode(Workspace& own, ByteView base, std::span<std::byte> into) const {
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
        if (length != stretches.raw_bytes()) return not_as_many();
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

// The places between the arrays, in their order: where the rest goes.
struct Gaps {
    Pieces pieces;
    std::span<std::byte> run;
    std::size_t at = 0;
    // All of the next one; empty: there is none any more.
    std::span<std::byte> next() {
        while (at < run.size()) {
            const std::size_t begin = at, end = pieces.empty() ? run.size() : pieces.front().offset;
            at = end;
            if (!pieces.empty()) {
                at += pieces.front().length;
                pieces = pieces.subspan(1);
            }
            if (begin < end) return run.subspan(begin, end - begin);
        }
        return {};
    }
};

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

}  // namespace

std::uint64_t encode_planes(ByteView raw, std::span<const NumberArray> arrays, std::span<std::byte> into, Effort effort, Base* base) {
    Workspace* const own = workspace();
    if (!own || raw.empty()) return 0;
    const Original run{raw, base && base->bytes.size() == raw.size() ? base->bytes : ByteView()};
    Making making{*own, effort};
    std::vector<NumberArray> kinds;
    const RunLayout layout = lay_out(raw.size(), arrays, kinds);
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
