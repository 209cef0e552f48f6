#include "codec/prediction.hpp"

#include <zstd.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "codec/float_sums.hpp"

namespace cairn {

namespace {

constexpr std::size_t window_bytes = 4096;
constexpr std::size_t windows_long = 4, windows_apart = 96 << 10;  // of long ones more: they may be of several processes
constexpr std::size_t windows_shared = 16;                          // as many bytes, in more places: arrays that share a stretch are of 64 KiB at most, and some of them may be noise

constexpr double hardly_anything = 0.002;  // of a column: no other way is worth the look
constexpr double as_good = 0.005;  // as a share of raw bytes: what was good for one place of an array is for the next

// What bytes take, by how often each value occurs among few of them (Miller and Madow's correction for that they are few); a share of what they take as they are.
struct Entropy {
    std::array<float, windows_long * window_bytes + 1> terms;
    Entropy() {
        terms[0] = 0;
        for (std::size_t n = 1; n < terms.size(); ++n) terms[n] = static_cast<float>(static_cast<double>(n) * std::log2(static_cast<double>(n)));
    }
    double of(const std::array<std::uint16_t, 256>& counts, std::size_t total) const {
        std::array<float, 8> sums = {};  // none waits for the one before
        std::size_t kinds = 0;
        for (std::size_t i = 0; i < counts.size(); i += sums.size())
            for (std::size_t lane = 0; lane < sums.size(); ++lane) sums[lane] += terms[counts[i + lane]];
        for (const std::uint16_t count : counts) kinds += count != 0;
        const float sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
        const double few = kinds == 0 ? 0 : static_cast<double>(kinds - 1) / (2 * std::log(2.0));
        return std::min(1.0, (terms[total] - sum + few) / (8.0 * static_cast<double>(total)));
    }
};
const Entropy& entropy() {
    static const Entropy made;
    return made;
}

// Windows of some bytes; what lies before them is there, too.
struct Sample {
    Original original;
    ByteView raw;
    std::array<std::size_t, windows_shared> begins = {};
    std::size_t length = 0, windows = 2;
    explicit Sample(const Original& bytes) : original(bytes), raw(bytes.raw) {
        const bool is_long = raw.size() >= 2 * windows_apart;
        windows = !is_long ? 2 : bytes.is_shared ? windows_shared : windows_long;
        length = std::min(is_long ? windows_long * window_bytes / windows : window_bytes, raw.size()) / 8 * 8;
        const std::size_t beyond = raw.size() - length;
        for (std::size_t i = 0; i < windows; ++i) begins[i] = beyond * (3 * i + 2) / (3 * windows) / 8 * 8;  // of two: a third, five sixths
    }
    std::span<const std::size_t> places() const { return {begins.data(), windows}; }
    Sample half() const {
        Sample less = *this;
        less.windows = windows / 2;
        if (original.is_shared)
            for (std::size_t i = 0; i < less.windows; ++i) less.begins[i] = begins[2 * i + i % 2];
        return less;
    }
};

// A difference along several strides is a sum of numbers at the corners of a box, with signs in turn. So a window needs only the windows at its corners, however far they lie.
template <typename Number>
void residuals(const Sample& sample, std::size_t begin, std::size_t count, const Way& way, Number* left) {
    std::array<Number, window_bytes / sizeof(Number)> corner, other;
    std::fill_n(left, count, Number{});
    for (unsigned corners = 0; corners < 1u << way.strides; ++corners) {
        std::size_t back = 0;
        bool is_negative = false;
        for (std::size_t axis = 0; axis < way.strides; ++axis)
            if ((corners >> axis & 1) != 0) back += way.stride[axis], is_negative = !is_negative;
        const std::size_t first = begin / sizeof(Number), missing = back > first ? std::min(count, back - first) : 0;
        if (missing == count) continue;
        to_numbers(sample.original, first + missing - back, count - missing, way, corner.data(), other.data());
        for (std::size_t i = missing; i < count; ++i) left[i] = static_cast<Number>(is_negative ? left[i] - corner[i - missing] : left[i] + corner[i - missing]);
    }
}

// The same with sums of floating-point numbers. A window's numbers lie behind all that they need.
template <typename Number>
void residuals_of_sums(const Sample& sample, std::size_t begin, std::size_t count, const Way& way, Number* left) {
    if constexpr (has_sums<Number>) {
        using Float = typename FloatOf<Number>::Type;
        const Corners corners(way);
        std::array<Number, window_bytes / sizeof(Number)> numbers;
        std::array<Float, window_bytes / sizeof(Number)> sums = {};
        const std::size_t first = begin / sizeof(Number);
        for (std::size_t corner = 0; corner < corners.count; ++corner) {
            const auto& [back, is_negative] = corners.corner[corner];
            const std::size_t missing = back > first ? std::min(count, back - first) : 0;
            if (missing == count) continue;
            to_numbers(sample.raw.data() + (first + missing - back) * sizeof(Number), count - missing, way, numbers.data());
            for (std::size_t i = missing; i < count; ++i) {
                const auto other = std::bit_cast<Float>(ordered(numbers[i - missing]));
                sums[i] = is_negative ? sums[i] - other : sums[i] + other;
            }
        }
        to_numbers(sample.raw.data() + begin, count, way, numbers.data());
        for (std::size_t i = 0; i < count; ++i) left[i] = static_cast<Number>(numbers[i] - ordered(std::bit_cast<Number>(sums[i] == sums[i] ? sums[i] : Float{0})));
    }
}

template <typename Number>
Cost cost_of(const Sample& sample, const Way& way) {
    std::array<std::array<std::uint16_t, 256>, sizeof(Number)> counts = {};
    const std::size_t count = sample.length / sizeof(Number);
    std::array<Number, window_bytes / sizeof(Number)> left;
    for (const std::size_t begin : sample.places()) {
        if (way.has_sums) residuals_of_sums(sample, begin, count, way, left.data());
        else residuals(sample, begin, count, way, left.data());
        if (way.is_folded())
            for (std::size_t i = 0; i < count; ++i) left[i] = fold(left[i]);
        for (std::size_t i = 0; i < count; ++i)
            for (std::size_t plane = 0; plane < sizeof(Number); ++plane) ++counts[plane][static_cast<std::uint8_t>(left[i] >> (8 * plane))];
    }
    Cost cost;
    cost.all = 0;
    for (std::size_t plane = 0; plane < sizeof(Number); ++plane) {
        cost.plane[plane] = entropy().of(counts[plane], sample.windows * count);
        cost.all += cost.plane[plane] / sizeof(Number);
    }
    return cost;
}

void offer(Choice& best, const Sample& sample, const Way& way) {
    const Cost found = CAIRN_BY_WIDTH(way.width, cost_of, sample, way);
    if (found.all < best.cost.all) best = {way, found};
}

Way way_of(int width, std::uint32_t stride, bool is_ordered = false, bool is_swapped = false) {
    Way way;
    way.width = static_cast<std::uint8_t>(width);
    way.is_ordered = is_ordered;
    way.is_swapped = is_swapped;
    way.strides = stride != 0;
    way.stride[0] = stride;
    return way;
}

// Bytes that repeat in longer words than one: text, tables of a file's own. 2: there is no memory to find out.
double cost_of_words(const Sample& sample) {
    struct Free {
        void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
    };
    static thread_local const std::unique_ptr<ZSTD_CCtx, Free> compressor(ZSTD_createCCtx());
    if (!compressor) return 2;
    std::array<std::byte, ZSTD_COMPRESSBOUND(window_bytes)> out;
    std::size_t bytes = 0;
    for (const std::size_t begin : sample.places()) {
        const std::size_t made = ZSTD_compressCCtx(compressor.get(), out.data(), out.size(), sample.raw.data() + begin, sample.length, 1);
        bytes += ZSTD_isError(made) ? sample.length : made;
    }
    return static_cast<double>(bytes) / static_cast<double>(sample.windows * sample.length);
}

// Numbers as they are, with their exponents for themselves; differences along each set of axes; and of differences.
std::vector<Way> ways_of(const NumberArray& array, Effort effort) {
    const std::uint32_t strides[] = {1, array.row, array.plane};
    const unsigned axes = array.row == 0 ? 1 : array.plane == 0 ? 2 : 3;
    std::vector<Way> ways;
    for (unsigned set = 0; set < 1u << axes; ++set) {
        Way way = way_of(array.width, 0, array.is_float, array.is_swapped);
        for (unsigned axis = 0; axis < axes; ++axis)
            if ((set >> axis & 1) != 0) way.stride[way.strides++] = strides[axis];
        if (set == 0 && way.is_ordered) way.is_ordered = false, way.is_rotated = true;
        ways.push_back(way);
    }
    Way line = way_of(array.width, 1, array.is_float, array.is_swapped);
    line.strides = 2;
    line.stride[1] = 1;
    ways.push_back(line);
    if (effort == Effort::fast) return ways;
    for (const std::uint32_t stride : {2u, 3u, 4u, 6u, 8u}) ways.push_back(way_of(array.width, stride, array.is_float, array.is_swapped));
    if (!array.is_float || array.width < 4) return ways;
    for (std::size_t i = 0, count = ways.size(); i < count; ++i) {
        Way way = ways[i];
        way.has_sums = way.is_ordered && way.strides > 1;
        if (way.has_sums) ways.push_back(way);
    }
    return ways;
}

// What changed since the older version, by itself and from neighbour to neighbour. It must be of some use: who reads it reads that version, too, and a sample errs.
void offer_with_base(Choice& best, const Sample& sample, Way way) {
    if (sample.original.base.empty() || way.has_base) return;
    Choice changes;
    way.has_base = true;
    way.has_sums = false;
    if (way.strides != 0) offer(changes, sample, way);
    way.strides = 0;
    way.stride = {};
    offer(changes, sample, way);
    if (changes.cost.all + as_good < best.cost.all) best = changes;
}

}  // namespace

bool is_noise(ByteView raw) {
    constexpr double as_if_by_chance = 0.997;  // of so few bytes that are, some 0.9995
    constexpr std::size_t lag_most = 8;
    if (raw.size() < window_bytes + lag_most) return false;
    const std::byte* const from = raw.data() + (raw.size() - window_bytes) / 3 + lag_most / 2;
    const auto is_even = [&](std::size_t lag) {
        std::array<std::uint16_t, 256> counts = {}, odd = {};
        for (std::size_t i = 0; i < window_bytes; i += 2) {
            const auto before = [&](std::size_t at) { return lag == 0 ? std::uint8_t{0} : std::to_integer<std::uint8_t>(from[at - lag]); };
            ++counts[static_cast<std::uint8_t>(std::to_integer<std::uint8_t>(from[i]) - before(i))];
            ++odd[static_cast<std::uint8_t>(std::to_integer<std::uint8_t>(from[i + 1]) - before(i + 1))];
        }
        for (std::size_t value = 0; value < counts.size(); ++value) counts[value] = static_cast<std::uint16_t>(counts[value] + odd[value]);
        return entropy().of(counts, window_bytes) >= as_if_by_chance;
    };
    return is_even(0) && is_even(1) && is_even(2) && is_even(4) && is_even(8);
}

// Of many ways half of the sample tells which two are worth all of it.
Choice choose(const Original& original, const NumberArray& array, Effort effort, const Choice* before) {
    const Sample sample(original), half = sample.half();
    const auto or_with_base = [&](Choice best) {
        Way way = best.way;
        way.is_ordered = array.is_float;
        way.is_rotated = false;
        offer_with_base(best, sample, way);
        return best;
    };
    if (before && effort == Effort::fast) {
        Choice again;
        offer(again, sample, before->way);
        if (again.cost.all < before->cost.all + as_good) return or_with_base(again);  // what changed in one place tells nothing of the next
    }
    std::vector<Way> ways = ways_of(array, effort);
    constexpr std::size_t few = 5;
    if (ways.size() > few) {
        Choice first, second;
        for (const Way& way : ways) {
            Choice choice;
            offer(choice, half, way);
            if (choice.cost.all < second.cost.all) second = choice;
            if (second.cost.all < first.cost.all) std::swap(first, second);
        }
        ways = {first.way, second.way};
    }
    Choice best;
    for (const Way& way : ways) offer(best, sample, way);
    return or_with_base(best);
}

// First how wide numbers are, then where their neighbours lie, then what their bits mean.
Choice choose(const Original& original) {
    const Sample sample(original);
    Choice best;
    for (const int width : {8, 4, 2, 1}) offer(best, sample, way_of(width, 1));
    for (const int width : {8, 4}) offer(best, sample, way_of(width, 0));
    for (const int width : {8, 4}) offer(best, sample, way_of(width, 1, false, true));
    const Way first = best.way;
    for (const std::uint32_t stride : {2u, 3u, 4u, 6u, 9u})
        if (first.width >= 4) offer(best, sample, way_of(first.width, stride, false, first.is_swapped));
    if (best.way.width >= 4 && best.way.strides != 0) {
        Way other = best.way;
        other.is_ordered = true;
        offer(best, sample, other);
    }
    const Way numbers = best.way;
    if (const double words = cost_of_words(sample); words < best.cost.all) best = {way_of(1, 0), {words, {words}}};
    offer_with_base(best, sample, numbers);
    return best;
}

Choice glance_column(ByteView column, std::uint8_t width, bool is_swapped) {
    const Sample sample = Sample(Original{column}).half();
    Choice best;
    offer(best, sample, way_of(width, 1, false, is_swapped));
    if (best.cost.all > 0) offer(best, sample, way_of(width, 0, false, is_swapped));
    return best;
}

// What never changes needs one look. `before`: there is no other.
Choice choose_column(ByteView column, std::uint8_t width, bool is_swapped, Effort effort, const Choice* before) {
    const Sample sample(Original{column});
    Choice best;
    if (before) {
        offer(best, sample, before->way);
        return best;
    }
    offer(best, sample, way_of(width, 1, false, is_swapped));
    if (best.cost.all < hardly_anything) return best;
    offer(best, sample, way_of(width, 0, false, is_swapped));
    Way other = way_of(width, 1, true, is_swapped);
    if (best.way.strides == 0 && width > 1) {
        Way exponent = best.way;
        exponent.is_rotated = true;
        offer(best, sample, exponent);
    }
    if (width > 1) offer(best, sample, other);
    if (best.way.strides != 0) {
        other.is_ordered = best.way.is_ordered;
        other.strides = 2;
        other.stride[1] = 1;
        offer(best, sample, other);
    }
    if (effort == Effort::fast) return best;
    Choice far;
    for (const std::uint32_t stride : {2u, 3u, 4u}) offer(far, sample, way_of(width, stride, best.way.is_ordered, is_swapped));
    return far.cost.all < best.cost.all - as_good ? far : best;
}

}  // namespace cairn
