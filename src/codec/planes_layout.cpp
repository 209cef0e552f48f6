#include "codec/planes_layout.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace cairn {

namespace {

constexpr std::size_t alone_bytes_min = 8 << 10;    // of an array that is like no other: a sample of a shorter one would take longer than all else
constexpr std::size_t merged_bytes_max = 64 << 10;  // a longer one has enough to learn from
constexpr std::size_t piece_bytes_min = 256;        // a shorter one costs in the layout what it gains; and a hostile layout of shorter ones much memory
constexpr std::size_t together_bytes_min = 4 << 10;
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

// One after the other: pieces, and which stretches they are in.
class Dealer {
  public:
    void add(const NumberArray& array) {
        if (array.key != 0 && array.length >= piece_bytes_min && array.length < merged_bytes_max) return add_to(open(array), array.offset, array.length);
        for (std::size_t at = 0; at < array.length; at += stretch_bytes) {
            stretches_.push_back({array});
            add_to(stretches_.size() - 1, array.offset + at, std::min<std::size_t>(stretch_bytes, array.length - at));
        }
    }
    // Those that have enough, by the place of their first piece.
    RunLayout take(std::vector<NumberArray>& kinds) {
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
    // The stretch that has room for one more array of its kind.
    std::size_t open(const NumberArray& array) {
        const auto kind = std::tuple(array.key, array.row, array.plane, array.width, array.is_float, array.is_swapped);
        const auto [found, is_new] = open_.emplace(kind, stretches_.size());
        if (!is_new && stretches_[found->second].bytes + array.length <= stretch_bytes) return found->second;
        found->second = stretches_.size();
        stretches_.push_back({array});
        return found->second;
    }
    void add_to(std::size_t stretch, std::size_t offset, std::size_t length) {
        pieces_.push_back({offset, length, static_cast<std::uint32_t>(stretch)});
        stretches_[stretch].bytes += length;
        ++stretches_[stretch].pieces;
    }

    std::vector<RunPiece> pieces_;
    std::vector<Stretch> stretches_;
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint8_t, bool, bool>, std::size_t> open_;
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

RunLayout lay_out(std::size_t run_bytes, std::span<const NumberArray> arrays, std::vector<NumberArray>& kinds) {
    Dealer dealer;
    std::size_t at = 0;
    for (const NumberArray& array : arrays) {
        if (!is_known(array, at, run_bytes)) continue;
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
