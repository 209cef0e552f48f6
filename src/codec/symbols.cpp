#include "codec/symbols.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <new>
#include <numeric>

#include "codec/integers.hpp"

namespace cairn {

namespace {

constexpr unsigned scale_bits = 12;  // shares are of 4096: their table fits a core's nearest cache
constexpr std::uint32_t scale = 1u << scale_bits;
constexpr std::uint32_t lowest = 1u << 15;  // of a state: below it, it takes 16 bits. So it stays below 2^31, for which reciprocals are exact
constexpr std::size_t states = 4;           // by turns, so that a core need not wait for one
constexpr std::size_t word_bytes = 2, states_bytes = 4 * states;

using Shares = std::array<std::uint16_t, 256>;  // their sum is `scale`; none of what occurs is 0

// What occurs has a share, and never is one all: a share has 12 bits. What is too much or too little then, the largest give and get: it costs them least.
Shares shares_of(const Histogram& histogram, std::size_t count) {
    Shares shares = {};
    std::int64_t left = scale;
    for (std::size_t i = 0; i < 256; ++i) {
        if (histogram[i] == 0) continue;
        shares[i] = static_cast<std::uint16_t>(std::max<std::uint64_t>(1, (std::uint64_t{histogram[i]} * scale + count / 2) / count));
        left -= shares[i];
    }
    for (std::size_t i = 0; left == 0 && i < 256; ++i) {
        if (shares[i] < scale) continue;
        shares[(i + 1) % 256] = 1;
        left = -1;
    }
    while (left != 0) {
        std::uint16_t& largest = *std::max_element(shares.begin(), shares.end());
        const std::int64_t step = left > 0 ? left : std::max<std::int64_t>(left, -std::max(1, largest / 4));
        largest = static_cast<std::uint16_t>(largest + step);
        left -= step;
    }
    return shares;
}

// By value: a share below 128 takes a byte, another two, the first of them from 128 on. 0 stands for values that do not occur, and how many more of them follow is behind it.
std::size_t put_shares(const Shares& shares, std::span<std::byte> into) {
    std::size_t out = 0;
    for (std::size_t i = 0; i < 256; ++i) {
        if (into.size() - out < 2) return 0;
        if (shares[i] == 0) {
            std::size_t more = 0;
            while (i + 1 < 256 && shares[i + 1] == 0) ++more, ++i;
            into[out++] = std::byte{0};
            into[out++] = static_cast<std::byte>(more);
        } else if (shares[i] < 128) {
            into[out++] = static_cast<std::byte>(shares[i]);
        } else {
            into[out++] = static_cast<std::byte>(128 | shares[i] >> 8);
            into[out++] = static_cast<std::byte>(shares[i]);
        }
    }
    return out;
}
bool get_shares(ByteView& stored, Shares& shares) {
    shares = {};
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < 256; ++i) {
        if (stored.size() < 2) return false;
        const unsigned first = std::to_integer<unsigned>(stored[0]), second = std::to_integer<unsigned>(stored[1]);
        const bool is_short = first != 0 && first < 128;
        if (first == 0) i += second;
        else shares[i] = static_cast<std::uint16_t>(is_short ? first : (first - 128) << 8 | second);
        if (i >= 256 || shares[i] >= scale) return false;
        sum += shares[i];
        stored = stored.subspan(is_short ? 1 : 2);
    }
    return sum == scale;
}

// To divide by a share is to multiply by its reciprocal (Alverson, "Integer division using reciprocals", 1991), of 2^64: exact for all that a state can be.
struct Step {
    std::uint64_t reciprocal = 0;
    std::uint32_t most = 0;  // a state from here on gives 16 bits away before
    std::uint16_t bias = 0, complement = 0;
};
std::array<Step, 256> steps_of(const Shares& shares) {
    std::array<Step, 256> steps;
    std::uint32_t begin = 0;
    for (std::size_t i = 0; i < 256; ++i) {
        const std::uint32_t share = shares[i];
        if (share == 0) continue;
        // Of one 2^64 itself is one too many, so a state divided by it is one too small, and the bias makes up for that.
        const bool is_one = share == 1;
        steps[i] = {is_one ? ~std::uint64_t{0} : ~std::uint64_t{0} / share + 1, share << (31 - scale_bits), static_cast<std::uint16_t>(begin + (is_one ? scale - 1 : 0)), static_cast<std::uint16_t>(scale - share)};
        begin += share;
    }
    return steps;
}

// `then` where a < b, both below 2^31, else `otherwise`. Whether a state gives or takes nobody can foretell, so it is no branch, and this is what compilers make none of.
inline std::uint32_t all_ones_if_less(std::uint32_t a, std::uint32_t b) { return 0u - ((a - b) >> 31); }

// Backwards, so that a reader goes forwards.
inline void encode_one(std::uint32_t& state, const Step& step, std::byte*& at) {
    const auto low = static_cast<std::uint16_t>(state);
    std::memcpy(at - word_bytes, &low, word_bytes);
    const std::uint32_t gives = all_ones_if_less(step.most - 1, state);
    at -= gives & word_bytes;
    state ^= (state ^ state >> 16) & gives;
    const auto quotient = static_cast<std::uint32_t>((static_cast<unsigned __int128>(step.reciprocal) * state) >> 64);
    state += step.bias + quotient * step.complement;
}

// Of each place in the scale: the share that it is in (12 bits), how far it is in it (12), and whose it is (8).
using Slots = std::array<std::uint32_t, scale>;

inline std::byte decode_one(std::uint32_t& state, const Slots& slots, const std::byte*& at) {
    const std::uint32_t slot = slots[state % scale];
    state = (slot >> 20) * (state >> scale_bits) + (slot >> 8) % scale;
    std::uint16_t word;
    std::memcpy(&word, at, word_bytes);
    const std::uint32_t takes = all_ones_if_less(state, lowest);
    at += takes & word_bytes;
    state ^= (state ^ (state << 16 | word)) & takes;
    return static_cast<std::byte>(slot);
}

void fill_slots(const Shares& shares, Slots& slots) {
    std::uint32_t* to = slots.data();
    for (std::uint32_t value = 0; value < 256; ++value)
        for (std::uint32_t i = 0; i < shares[value]; ++i) *to++ = std::uint32_t{shares[value]} << 20 | i << 8 | value;
}

// The states, and behind them the words that they gave. `step`: of each byte.
template <typename StepOf>
std::size_t put_states(std::size_t count, std::span<std::byte> into, const StepOf& step) {
    if (into.size() < states_bytes + word_bytes) return 0;
    std::byte* const first = into.data() + states_bytes;
    std::byte* at = into.data() + into.size();
    std::array<std::uint32_t, states> state;
    state.fill(lowest);
    std::size_t left = count;
    for (; left % states != 0; --left) {
        if (static_cast<std::size_t>(at - first) < word_bytes) return 0;
        encode_one(state[(left - 1) % states], step(left - 1), at);
    }
    for (; left != 0; left -= states) {
        if (static_cast<std::size_t>(at - first) < states * word_bytes) return 0;
        for (std::size_t i = states; i-- > 0;) encode_one(state[i], step(left - states + i), at);
    }
    for (std::size_t i = 0; i < states; ++i) put_count(&into[4 * i], state[i]);
    const auto words = static_cast<std::size_t>(into.data() + into.size() - at);
    std::memmove(first, at, words);
    return states_bytes + words;
}

// Whole: every word is used, and every state is what it began as.
template <typename SlotsOf>
bool get_states(ByteView stored, std::span<std::byte> bytes, const SlotsOf& slots) {
    if (stored.size() < states_bytes) return false;
    std::array<std::uint32_t, states> state;
    for (std::size_t i = 0; i < states; ++i) state[i] = static_cast<std::uint32_t>(get_count(&stored[4 * i]));
    const std::byte* at = stored.data() + states_bytes;
    const std::byte* const end = stored.data() + stored.size();
    std::byte* const to = bytes.data();
    std::size_t done = 0;
    for (; bytes.size() - done >= states && end - at >= static_cast<std::ptrdiff_t>(states * word_bytes); done += states)
        for (std::size_t i = 0; i < states; ++i) to[done + i] = decode_one(state[i], slots(done + i), at);
    // The last ones read from a copy, behind which there is room.
    for (; done != bytes.size(); ++done) {
        const std::size_t some = std::min<std::size_t>(static_cast<std::size_t>(end - at), word_bytes);
        std::array<std::byte, word_bytes> last = {};
        std::copy_n(at, some, last.begin());
        const std::byte* word = last.data();
        to[done] = decode_one(state[done % states], slots(done), word);
        if (word == last.data()) continue;
        if (some < word_bytes) return false;
        at += word_bytes;
    }
    return at == end && std::all_of(state.begin(), state.end(), [](std::uint32_t each) { return each == lowest; });
}

// So that tables are not most of the work, whoever wrote them.
std::size_t tables_max(std::size_t bytes) { return std::min(contexts_max, 1 + bytes / 256); }

// For each value above which table: the table, and how many more values have the same. They are numbered as they begin.
std::size_t put_contexts(const Contexts& contexts, std::span<std::byte> into) {
    std::size_t out = 0;
    for (std::size_t i = 0; i < 256;) {
        std::size_t end = i + 1;
        while (end < 256 && contexts.of[end] == contexts.of[i]) ++end;
        if (into.size() - out < 2) return 0;
        into[out++] = std::byte{contexts.of[i]};
        into[out++] = static_cast<std::byte>(end - i - 1);
        i = end;
    }
    return out;
}
bool get_contexts(ByteView& stored, std::size_t most, std::array<std::uint8_t, 256>& of, std::size_t& tables) {
    tables = 0;
    for (std::size_t i = 0; i < 256;) {
        if (stored.size() < 2) return false;
        const std::size_t table = std::to_integer<std::size_t>(stored[0]), end = i + 1 + std::to_integer<std::size_t>(stored[1]);
        if (table > tables || table >= most || end > 256) return false;
        if (table == tables) ++tables;
        std::fill(of.begin() + static_cast<std::ptrdiff_t>(i), of.begin() + static_cast<std::ptrdiff_t>(end), static_cast<std::uint8_t>(table));
        i = end;
        stored = stored.subspan(2);
    }
    return true;
}

// How large the eight bytes before a byte are: their sum, and from 64 on less and less exactly, so that it is below 256.
struct Before {
    std::uint32_t sum = 0;
    // Is asked for each byte once, in their order.
    std::uint32_t next(const std::byte* bytes, std::size_t at) {
        if (at > 0) sum += std::to_integer<std::uint32_t>(bytes[at - 1]);
        if (at > 8) sum -= std::to_integer<std::uint32_t>(bytes[at - 9]);
        return sum < 64 ? sum : 64 + (sum - 64) / 11;
    }
};

// n * log2(n), of the counts of a plane.
double bits_of(std::uint32_t n) {
    static const std::vector<float> known = [] {
        std::vector<float> terms(1 << 14);
        for (std::size_t i = 1; i < terms.size(); ++i) terms[i] = static_cast<float>(static_cast<double>(i) * std::log2(static_cast<double>(i)));
        return terms;
    }();
    return n < known.size() ? static_cast<double>(known[n]) : n * std::log2(static_cast<double>(n));
}
// Of a table and all that it tells.
double table_bytes(const std::uint32_t* histogram) {
    double bits = 0, kinds = 0;
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < 256; ++i) {
        if (histogram[i] == 0) continue;
        bits -= bits_of(histogram[i]);
        sum += histogram[i];
        ++kinds;
    }
    return (bits + bits_of(sum)) / 8 + 1.3 * kinds + 4;
}

}  // namespace

Histogram histogram_of(ByteView bytes) {
    std::array<Histogram, 4> parts = {};
    std::size_t i = 0;
    for (; i + 8 <= bytes.size(); i += 8) {
        const auto eight = load<std::uint64_t>(bytes.data() + i);
        for (unsigned k = 0; k < 8; ++k) ++parts[k % 4][static_cast<std::uint8_t>(eight >> (8 * k))];
    }
    for (; i < bytes.size(); ++i) ++parts[0][std::to_integer<std::uint8_t>(bytes[i])];
    for (std::size_t value = 0; value < 256; ++value) parts[0][value] += parts[1][value] + parts[2][value] + parts[3][value];
    return parts[0];
}

double symbols_bytes(const Histogram& histogram, std::size_t count) {
    double bits = 0;
    std::size_t kinds = 0;
    for (const std::uint32_t each : histogram) {
        if (each == 0) continue;
        const float share = static_cast<float>(each) / static_cast<float>(count);
        bits -= static_cast<double>(static_cast<float>(each) * std::log2(std::max(share, 1.0f / scale)));
        ++kinds;
    }
    return bits / 8 + static_cast<double>(kinds) * 1.2 + states_bytes;
}

// Neighbouring values come together where one table for both is shorter than two: of differences, those of like size.
Contexts contexts_of(ByteView bytes, ByteView above) {
    std::vector<std::uint32_t> counts(256 * 256);
    for (std::size_t i = 0; i < bytes.size(); ++i) ++counts[256 * std::to_integer<std::size_t>(above[i]) + std::to_integer<std::size_t>(bytes[i])];
    Contexts contexts;
    double open = 0;  // what the last table takes
    for (std::size_t value = 0; value < 256; ++value) {
        const std::uint32_t* const own = &counts[256 * value];
        if (std::none_of(own, own + 256, [](std::uint32_t each) { return each != 0; })) {
            contexts.of[value] = static_cast<std::uint8_t>(contexts.histograms.empty() ? 0 : contexts.histograms.size() - 1);
            continue;
        }
        const double apart = table_bytes(own);
        Histogram both;
        std::copy_n(own, 256, both.begin());
        if (!contexts.histograms.empty())
            for (std::size_t i = 0; i < 256; ++i) both[i] += contexts.histograms.back()[i];
        const double together = table_bytes(both.data());
        if (!contexts.histograms.empty() && (together <= open + apart || contexts.histograms.size() == tables_max(bytes.size()))) {
            contexts.histograms.back() = both;
            open = together;
        } else {
            contexts.bytes += open;
            contexts.histograms.emplace_back();
            std::copy_n(own, 256, contexts.histograms.back().begin());
            open = apart;
        }
        contexts.of[value] = static_cast<std::uint8_t>(contexts.histograms.size() - 1);
    }
    contexts.bytes += open + static_cast<double>(states_bytes);
    return contexts;
}

std::size_t put_symbols(ByteView bytes, const Histogram& histogram, std::span<std::byte> into) {
    if (bytes.empty()) return 0;
    const Shares shares = shares_of(histogram, bytes.size());
    const std::size_t table = put_shares(shares, into);
    if (table == 0) return 0;
    const std::array<Step, 256> steps = steps_of(shares);
    const std::byte* const from = bytes.data();
    const std::size_t made = put_states(bytes.size(), into.subspan(table), [&](std::size_t i) -> const Step& { return steps[std::to_integer<std::size_t>(from[i])]; });
    return made == 0 ? 0 : table + made;
}

bool get_symbols(ByteView stored, std::span<std::byte> bytes) {
    Shares shares;
    if (!get_shares(stored, shares)) return false;
    Slots slots;
    fill_slots(shares, slots);
    return get_states(stored, bytes, [&](std::size_t) -> const Slots& { return slots; });
}

std::size_t put_symbols(ByteView bytes, ByteView above, const Contexts& contexts, std::span<std::byte> into) {
    std::size_t out = put_contexts(contexts, into);
    if (out == 0) return 0;
    std::vector<std::array<Step, 256>> steps;
    for (const Histogram& histogram : contexts.histograms) {
        const Shares shares = shares_of(histogram, std::accumulate(histogram.begin(), histogram.end(), std::size_t{0}));
        const std::size_t table = put_shares(shares, into.subspan(out));
        if (table == 0) return 0;
        out += table;
        steps.push_back(steps_of(shares));
    }
    const std::size_t made = put_states(bytes.size(), into.subspan(out), [&](std::size_t i) -> const Step& { return steps[contexts.of[std::to_integer<std::size_t>(above[i])]][std::to_integer<std::size_t>(bytes[i])]; });
    return made == 0 ? 0 : out + made;
}

namespace {

struct Tables {
    std::array<std::uint8_t, 256> of;
    std::unique_ptr<Slots[]> slots;
};
// Cuts what it has read. Without slots: there are none that make sense, or no memory.
Tables get_tables(ByteView& stored, std::size_t bytes) {
    Tables tables;
    std::size_t count = 0;
    if (!get_contexts(stored, tables_max(bytes), tables.of, count)) return tables;
    std::unique_ptr<Slots[]> slots(new (std::nothrow) Slots[count]);
    for (std::size_t i = 0; slots && i < count; ++i) {
        Shares shares;
        if (!get_shares(stored, shares)) return tables;
        fill_slots(shares, slots[i]);
    }
    tables.slots = std::move(slots);
    return tables;
}

}  // namespace

bool get_symbols(ByteView stored, ByteView above, std::span<std::byte> bytes) {
    if (above.size() != bytes.size()) return false;
    const Tables tables = get_tables(stored, bytes.size());
    return tables.slots && get_states(stored, bytes, [&](std::size_t i) -> const Slots& { return tables.slots[tables.of[std::to_integer<std::size_t>(above[i])]]; });
}

Bytes before(ByteView bytes) {
    Bytes places(bytes.size());
    Before sum;
    for (std::size_t i = 0; i < bytes.size(); ++i) places[i] = static_cast<std::byte>(sum.next(bytes.data(), i));
    return places;
}

bool get_symbols_after(ByteView stored, std::span<std::byte> bytes) {
    const Tables tables = get_tables(stored, bytes.size());
    Before sum;
    return tables.slots && get_states(stored, bytes, [&](std::size_t i) -> const Slots& { return tables.slots[tables.of[sum.next(bytes.data(), i)]]; });
}

}  // namespace cairn
