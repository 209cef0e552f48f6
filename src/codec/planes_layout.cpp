#include "codec/planes_layout.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <tuple>

#include "codec/integers.hpp"
#include "codec/prediction.hpp"

namespace cairn {

namespace {

constexpr std::size_t alone_bytes_min = 8 << 10;    // of an array that is like no other: a sample of a shorter one would take longer than all else
constexpr std::size_t merged_bytes_max = 64 << 10;  // a longer one has enough to learn from
constexpr std::size_t piece_bytes_min = 256;        // a shorter one costs in the layout what it gains; and a hostile layout of shorter ones much memory
constexpr std::size_t together_bytes_min = 4 << 10;
constexpr std::size_t look_bytes_min = 16 << 10;  // of arrays of one look: fewer do not pay for a stretch of their own
constexpr double plane_bits = 8, still_bits = 1;  // arrays of one look differ by less than a plane, and what hardly moves is apart
constexpr std::size_t places_max = 64, places_apart = 8;  // of an array, where it is looked at
constexpr std::uint32_t nowhere = UINT32_MAX;

bool is_known(const NumberArray& array, std::size_t from, std::size_t run_bytes) {
    const bool has_width = array.width == 1 || array.width == 2 || array.width == 4 || array.width == 8;
    return has_width && array.length > 0 && array.offset >= from && array.offset <= run_bytes && array.length <= run_bytes - array.offset;
}

struct Stretch {
    NumberArray kind;
    std::size_t bytes = 0, pieces = 0;
    bool is_enough() const { return bytes >= (pieces == 1 ? alone_bytes_min : together_bytes_min); }
};

// How an array looks: by how many bits its numbers miss the line through the two before them, the mean of some. So it tells in which plane noise begins. A variable has one name where all is at rest
// and where a shock goes by.
template <typename Number>
double bits_missed(ByteView raw, const NumberArray& array) {
    Way way;
    way.is_ordered = array.is_float;
    way.is_swapped = array.is_swapped;
    const std::size_t all = raw.size() / sizeof(Number) - 2, places = std::min(places_max, all / places_apart);
    std::size_t bits = 0;
    for (std::size_t place = 0; place < places; ++place) {
        std::array<Number, 3> near;
        to_numbers(raw.data() + all * place / places * sizeof(Number), near.size(), way, near.data());
        bits += static_cast<std::size_t>(std::bit_width(fold(static_cast<Number>(near[2] - near[1] - near[1] + near[0]))));
    }
    return static_cast<double>(bits) / static_cast<double>(places);
}

// Pieces, and which stretches they are in: of long arrays at once, of short ones when all that are like them are known.
class Dealer {
  public:
    explicit Dealer(ByteView run) : run_(run) {}
    void add(const NumberArray& array) {
        if (array.key != 0 && array.length >= piece_bytes_min && array.length < merged_bytes_max) {
            alike_[{array.key, array.row, array.plane, array.width, array.is_float, array.is_swapped}].push_back({array, pieces_.size()});
            pieces_.push_back({array.offset, array.length, nowhere});
            return;
        }
        for (std::size_t at = 0; at < array.length; at += stretch_bytes) {
            pieces_.push_back({array.offset + at, std::min<std::size_t>(stretch_bytes, array.length - at), nowhere});
            open(array);
            put(pieces_.size() - 1);
        }
    }
    // Those that have enough, by the place of their first piece.
    RunLayout take(std::vector<NumberArray>& kinds) {
        for (auto& [kind, alike] : alike_) deal(alike);
        RunLayout layout;
        std::vector<std::uint32_t> numbers(stretches_.size(), nowhere);
        for (RunPiece piece : pieces_) {
            const Stretch& stretch = stretches_[piece.stretch];
            if (!stretch.is_enough()) continue;
            std::uint32_t& number = numbers[piece.stretch];
            if (number == nowhere) {
                number = layout.stretches++;
                kinds.push_back(stretch.kind);
            }
            piece.stretch = number;
            layout.pieces.push_back(piece);
        }
        return layout;
    }

  private:
    struct Short {
        NumberArray array;
        std::size_t piece = 0;
        double bits = 0;
    };
    using Shorts = std::span<Short>;

    void open(const NumberArray& kind) { stretches_.push_back({kind}); }
    void put(std::size_t piece) {
        pieces_[piece].stretch = static_cast<std::uint32_t>(stretches_.size() - 1);
        stretches_.back().bytes += pieces_[piece].length;
        ++stretches_.back().pieces;
    }
    // Those that look alike, too, share stretches: a plane of noise and one that hardly changes want to be stored in two ways, and a stretch has but one for each of its planes.
    void deal(Shorts alike) {
        std::size_t left = 0;
        for (const Short& each : alike) left += each.array.length;
        if (left >= 2 * look_bytes_min) {
            for (Short& each : alike) each.bits = CAIRN_BY_WIDTH(each.array.width, bits_missed, run_.subspan(each.array.offset, each.array.length), each.array);
            std::stable_sort(alike.begin(), alike.end(), [](const Short& a, const Short& b) { return a.bits < b.bits; });
        }
        std::size_t begin = 0, bytes = 0;
        double first = alike.front().bits;
        for (std::size_t i = 0; i < alike.size(); ++i) {
            if (alike[i].bits > (first < still_bits ? still_bits : first + plane_bits)) {
                first = alike[i].bits;
                if (bytes >= look_bytes_min && left >= look_bytes_min) {
                    share(alike.subspan(begin, i - begin));
                    begin = i;
                    bytes = 0;
                }
            }
            bytes += alike[i].array.length;
            left -= alike[i].array.length;
        }
        share(alike.subspan(begin));
    }
    // In the order of the run: what lies near each other has most in common.
    void share(Shorts group) {
        std::sort(group.begin(), group.end(), [](const Short& a, const Short& b) { return a.piece < b.piece; });
        for (std::size_t i = 0; i < group.size(); ++i) {
            if (i == 0 || stretches_.back().bytes + group[i].array.length > stretch_bytes) open(group[i].array);
            put(group[i].piece);
        }
    }

    ByteView run_;
    std::vector<RunPiece> pieces_;
    std::vector<Stretch> stretches_;
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint8_t, bool, bool>, std::vector<Short>> alike_;
};

// Seven bits a byte, the lowest first; the highest bit of each but the last is set.
struct Writer {
    std::span<std::byte> into;
    std::size_t out = 0;
    bool put(std::size_t value) {
        for (; out < into.size(); value >>= 7) {
            into[out++] = static_cast<std::byte>(value < 128 ? value : value % 128 + 128);
            if (value < 128) return true;
        }
        return false;
    }
};
struct Reader {
    ByteView& stored;
    // Above `most`, and what ends too early, is nothing.
    bool get(std::size_t most, std::size_t& value) {
        value = 0;
        for (unsigned shift = 0; shift < 35 && !stored.empty(); shift += 7) {
            const auto byte = std::to_integer<std::size_t>(stored.front());
            stored = stored.subspan(1);
            value |= byte % 128 << shift;
            if (byte < 128) return value <= most;
        }
        return false;
    }
};

}  // namespace

std::vector<RunPiece> RunLayout::by_stretch() const {
    std::vector<RunPiece> sorted = pieces;
    std::stable_sort(sorted.begin(), sorted.end(), [](const RunPiece& a, const RunPiece& b) { return a.stretch < b.stretch; });
    return sorted;
}

RunLayout lay_out(ByteView run, std::span<const NumberArray> arrays, std::vector<NumberArray>& kinds) {
    Dealer dealer(run);
    std::size_t at = 0;
    for (const NumberArray& array : arrays) {
        if (!is_known(array, at, run.size())) continue;
        dealer.add(array);
        at = array.offset + array.length;
    }
    return dealer.take(kinds);
}

std::size_t put_layout(const RunLayout& layout, std::span<std::byte> into) {
    Writer writer{into};
    if (!writer.put(layout.pieces.size())) return 0;
    std::size_t at = 0;
    for (const RunPiece& piece : layout.pieces) {
        if (!writer.put(piece.offset - at) || !writer.put(piece.length) || !writer.put(piece.stretch)) return 0;
        at = piece.offset + piece.length;
    }
    return writer.out;
}

Result<RunLayout> get_layout(ByteView& stored, std::size_t run_bytes) {
    const auto damaged = [] { return Status(Code::corrupt, "predict-planes-zstd: its pieces do not lie in the run"); };
    Reader reader{stored};
    std::size_t count = 0, at = 0;
    if (!reader.get(std::min(stored.size() / 3, run_bytes / piece_bytes_min), count)) return damaged();
    RunLayout layout;
    layout.pieces.reserve(count);
    for (; count > 0; --count) {
        std::size_t before = 0, length = 0, stretch = 0;
        if (!reader.get(run_bytes - at, before)) return damaged();
        at += before;
        if (!reader.get(std::min(run_bytes - at, stretch_bytes), length) || length < piece_bytes_min || !reader.get(layout.stretches, stretch)) return damaged();
        if (stretch == layout.stretches) ++layout.stretches;  // they are numbered as they begin, so none is without a piece
        layout.pieces.push_back({at, length, static_cast<std::uint32_t>(stretch)});
        at += length;
    }
    return layout;
}

}  // namespace cairn
