// predict-planes-zstd: whatever it is given, and whatever it is told of it, comes back bit for bit; fields get shorter, and nothing hostile gets through.
#include "codec/planes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>

#include "codec/integers.hpp"
#include "codec/planes_layout.hpp"
#include "codec/prediction.hpp"

namespace cairn {
namespace {

using Arrays = std::vector<NumberArray>;

template <typename T>
void append(Bytes& bytes, const std::vector<T>& values) {
    const std::size_t at = bytes.size();
    bytes.resize(at + values.size() * sizeof(T));
    std::memcpy(bytes.data() + at, values.data(), values.size() * sizeof(T));
}
template <typename T>
Bytes to_bytes_of(const std::vector<T>& values) {
    Bytes bytes;
    append(bytes, values);
    return bytes;
}

// Stored, and proved to come back; 0: left as it is.
std::uint64_t planes_bytes(const Bytes& raw, const Arrays& arrays, Effort effort) {
    Bytes stored(raw.size() - raw.size() / 16);
    stored.resize(encode_planes(raw, arrays, stored, effort));
    if (stored.empty()) return 0;
    Bytes back(raw.size(), std::byte(0xAA));
    const Status status = decode_planes(stored, back);
    EXPECT_TRUE(status.ok()) << status.to_string();
    EXPECT_TRUE(back == raw);
    return stored.size();
}
// Both ways; what the fast one makes of it.
std::uint64_t planes_bytes(const Bytes& raw, const Arrays& arrays = {}) {
    (void)planes_bytes(raw, arrays, Effort::small);
    return planes_bytes(raw, arrays, Effort::fast);
}

NumberArray array(std::uint64_t offset, std::uint64_t length, std::uint8_t width, std::uint32_t row = 0, std::uint32_t plane = 0, bool is_swapped = false, std::uint32_t key = 0) {
    return {offset, length, width, true, is_swapped, row, plane, key};
}

// A field of `edge` cubed, smooth along each axis and of both signs, with noise in its lowest bits.
std::vector<double> field(std::uint32_t edge, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<double> values;
    for (std::uint32_t z = 0; z < edge; ++z)
        for (std::uint32_t y = 0; y < edge; ++y)
            for (std::uint32_t x = 0; x < edge; ++x)
                values.push_back(std::sin(0.19 * x) * std::cos(0.11 * y) * std::sin(0.07 * z + 0.3) + 0x1p-40 * static_cast<double>(random() % 1024));
    return values;
}

TEST(Planes, ATrueShapePredictsBetterThanNone) {
    const Bytes raw = to_bytes_of(field(32, 1));
    const std::uint64_t line = planes_bytes(raw), shaped = planes_bytes(raw, {array(0, raw.size(), 8, 32, 32 * 32)});
    ASSERT_NE(shaped, 0u);
    EXPECT_LT(shaped * 100, (line == 0 ? raw.size() : line) * 97);
}

TEST(Planes, NoiseInSomePlanesCostsThemAlone) {
    std::mt19937_64 random(2);
    std::vector<std::uint64_t> values;  // the upper half counts, the lower is noise
    for (std::uint64_t i = 0; i < 100'000; ++i) values.push_back(i << 32 | random() % (1ull << 32));
    const Bytes raw = to_bytes_of(values);
    const std::uint64_t stored = planes_bytes(raw);
    EXPECT_GE(stored, raw.size() / 2);
    EXPECT_LT(stored, raw.size() / 2 + raw.size() / 30) << "what the lower half borrows of the upper is a bit of each";
}

// What nobody described, drawn by chance, is looked at shortly and stored as it is; what comes behind it is not taken for the same.
TEST(Planes, NoiseBesideOtherThingsIsLeftAsItIs) {
    std::mt19937_64 random(4);
    Bytes raw(300'000);
    for (std::byte& each : raw) each = static_cast<std::byte>(random());
    EXPECT_TRUE(is_noise(raw));
    EXPECT_EQ(planes_bytes(raw), 0u);
    std::vector<double> smooth;
    for (int i = 0; i < 40'000; ++i) smooth.push_back(1e6 + i);
    const Bytes numbers = to_bytes_of(smooth);
    EXPECT_FALSE(is_noise(numbers));
    raw.insert(raw.end(), numbers.begin(), numbers.end());
    EXPECT_LT(planes_bytes(raw), 300'000u + numbers.size() / 8 + (64 << 10));
}

TEST(Planes, NothingNeedBeToldOfNumbersRecordsAndText) {
    std::vector<double> records;  // of three numbers that have nothing to do with each other
    for (int i = 0; i < 40'000; ++i) records.insert(records.end(), {1e6 + i, -3.0 * i, 0.5});
    EXPECT_LT(planes_bytes(to_bytes_of(records)) * 8, records.size() * sizeof(double));
    std::vector<std::uint64_t> swapped;
    for (std::uint64_t i = 0; i < 40'000; ++i) swapped.push_back(__builtin_bswap64(i * i));
    EXPECT_LT(planes_bytes(to_bytes_of(swapped)) * 8, swapped.size() * 8);
    std::string text;
    for (int i = 0; text.size() < 200'000; ++i) text += "parameter " + std::to_string(i % 17) + " of the run = default\n";
    EXPECT_LT(planes_bytes(to_bytes(text)) * 8, text.size());
    text.resize(80'000);  // one stretch of one plane, and no room for it as it is
    EXPECT_NE(planes_bytes(to_bytes(text)), 0u);
}

// The header of a file, arrays between other bytes, one of which is too short to be by itself, and an end.
TEST(Planes, WhatIsNoArrayIsPutBackWhereItWas) {
    std::mt19937_64 random(3);
    for (int round = 0; round < 200; ++round) {
        Bytes raw;
        Arrays arrays;
        const auto other = [&](std::size_t most) {
            for (std::uint64_t n = random() % (most + 1); n > 0; --n) raw.push_back(static_cast<std::byte>(random() % 5));
        };
        for (std::uint64_t n = random() % 5; n > 0; --n) {
            other(round % 3 == 0 ? 100'000 : 300);
            const std::vector<double> values = field(2 + static_cast<std::uint32_t>(random() % 20), random());
            arrays.push_back(array(raw.size(), 8 * values.size(), 8, 3, random() % 2 * 17, false, static_cast<std::uint32_t>(random() % 3)));
            append(raw, values);
        }
        if (random() % 2 == 0) other(5000);
        if (!raw.empty()) (void)planes_bytes(raw, arrays);
    }
}

// Of ten processes the same two fields, each too short to be worth anything by itself, and what a file says of itself between them.
TEST(Planes, ShortArraysThatAreAlikeAreTakenTogether) {
    std::mt19937_64 random(21);
    Bytes raw;
    Arrays alike, strangers;
    const auto described = [&](std::uint8_t width, std::uint32_t key) {
        alike.push_back(array(raw.size(), 729u * width, width, 9, 81, false, key));
        strangers.push_back(array(raw.size(), 729u * width, width, 9, 81));
    };
    for (int process = 0; process < 10; ++process) {
        for (int i = 0; i < 60; ++i) raw.push_back(static_cast<std::byte>(random()));
        const std::vector<double> values = field(9, random());
        described(8, 7);
        append(raw, values);
        for (int i = 0; i < 60; ++i) raw.push_back(static_cast<std::byte>(random()));
        described(4, 9);
        append(raw, std::vector<float>(values.begin(), values.end()));
    }
    const std::uint64_t together = planes_bytes(raw, alike), apart = planes_bytes(raw, strangers);
    ASSERT_NE(together, 0u);
    EXPECT_LT(together * 100, (apart == 0 ? raw.size() : apart) * 90);
}

// Whoever describes bytes may be wrong in everything.
TEST(Planes, AWrongDescriptionCostsRoomAndNoBit) {
    std::mt19937_64 random(4);
    const Bytes raw = to_bytes_of(field(20, 5));
    for (int round = 0; round < 300; ++round) {
        Arrays arrays;
        for (std::uint64_t n = 1 + random() % 4; n > 0; --n) {
            NumberArray one = array(random() % (raw.size() + 10), random() % (raw.size() + 10), static_cast<std::uint8_t>(round % 2 == 0 ? 1 << random() % 4 : random()),
                                    static_cast<std::uint32_t>(random() >> random() % 64), static_cast<std::uint32_t>(random() >> random() % 64), random() % 2 == 0, static_cast<std::uint32_t>(random() % 3));
            one.is_float = random() % 2 == 0;
            arrays.push_back(one);
        }
        if (round % 7 == 0) arrays.push_back(array(UINT64_MAX - 5, 1 << 20, 8));
        (void)planes_bytes(raw, arrays);
    }
}

// Weights, as a training leaves them: of both signs, around 0. As bf16 they are an exponent and a byte of noise.
template <typename Bits>
std::vector<Bits> weights(std::size_t count, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal(0, 0.02f);
    std::vector<Bits> values;
    for (std::size_t i = 0; i < count; ++i) values.push_back(static_cast<Bits>(std::bit_cast<std::uint32_t>(normal(random)) >> (32 - 8 * sizeof(Bits))));
    return values;
}

TEST(Planes, AnExponentIsAPlaneOfItsOwn) {
    for (const Effort effort : {Effort::fast, Effort::small}) {
        const Bytes half = to_bytes_of(weights<std::uint16_t>(100'000, 31)), whole = to_bytes_of(weights<std::uint32_t>(100'000, 32));
        const std::uint64_t of_half = planes_bytes(half, {array(0, half.size(), 2, 250)}, effort), of_whole = planes_bytes(whole, {array(0, whole.size(), 4, 250)}, effort);
        ASSERT_NE(of_half, 0u);
        ASSERT_NE(of_whole, 0u);
        EXPECT_GT(half.size(), of_half * 1.45);
        EXPECT_GT(whole.size(), of_whole * 1.18);
    }
}

TEST(Planes, MoreTimeMakesItShorter) {
    const Bytes raw = to_bytes_of(field(40, 33));
    const Arrays shape = {array(0, raw.size(), 8, 40, 1600)};
    const std::uint64_t fast = planes_bytes(raw, shape, Effort::fast), small = planes_bytes(raw, shape, Effort::small);
    ASSERT_NE(small, 0u);
    EXPECT_LT(small * 100, fast * 99);
}

// Any bits that a floating-point number can have, in every place of a field that is else smooth, so that sums of them come to pass.
TEST(Planes, NoNumberIsTooOdd) {
    std::mt19937_64 random(34);
    const std::uint64_t odd[] = {0x7FF8'0000'DEAD'BEEF, 0xFFF0'0000'0000'0001, 0x7FF0'0000'0000'0000, 0xFFF0'0000'0000'0000, 0x8000'0000'0000'0000, 1, 0x800F'FFFF'FFFF'FFFF, 0x7FEF'FFFF'FFFF'FFFF, 0};
    for (int round = 0; round < 40; ++round) {
        std::vector<double> values = field(16, random());
        std::vector<float> singles(values.begin(), values.end());
        for (int i = round % 4 * 20; i > 0; --i) {
            const std::uint64_t bits = odd[random() % std::size(odd)];
            values[random() % values.size()] = std::bit_cast<double>(bits);
            singles[random() % singles.size()] = std::bit_cast<float>(static_cast<std::uint32_t>(bits >> 32 | bits));
        }
        const bool is_swapped = round % 2 == 1;
        for (auto [raw, width] : {std::pair(to_bytes_of(values), 8), {to_bytes_of(singles), 4}}) {
            const auto each = static_cast<std::size_t>(width);
            for (std::size_t at = 0; is_swapped && at < raw.size(); at += each) std::reverse(raw.begin() + static_cast<std::ptrdiff_t>(at), raw.begin() + static_cast<std::ptrdiff_t>(at + each));
            EXPECT_NE(planes_bytes(raw, {array(0, raw.size(), static_cast<std::uint8_t>(width), 16, 256, is_swapped)}, Effort::small), 0u);
            EXPECT_NE(planes_bytes(raw, {array(0, raw.size(), static_cast<std::uint8_t>(width), 16, 256, is_swapped)}, Effort::fast), 0u);
        }
    }
}

TEST(Planes, EveryBitComesBack) {
    std::vector<double> values = field(20, 6);
    std::uint64_t payload = 0x7FF8'0000'DEAD'BEEF;
    std::memcpy(&values[77], &payload, sizeof payload);
    values[78] = -0.0;
    values[79] = std::numeric_limits<double>::denorm_min();
    values[80] = -std::numeric_limits<double>::infinity();
    Bytes raw = to_bytes_of(values);
    for (int more = 0; more < 16; ++more) {
        EXPECT_NE(planes_bytes(raw), 0u) << more << " bytes behind the last number";
        EXPECT_NE(planes_bytes(raw, {array(0, raw.size(), 8, 20, 400)}), 0u) << more;
        raw.push_back(std::byte(more));
    }
}

TEST(Planes, AnyLengthComesBack) {
    std::mt19937_64 random(11);
    for (int round = 0; round < 500; ++round) {
        Bytes raw(1 + random() % (round % 10 == 0 ? 700'000 : 40'000));
        const std::size_t period = 1 + random() % 40;
        for (std::size_t i = 0; i < raw.size(); ++i) raw[i] = static_cast<std::byte>(i < period || random() % 50 == 0 ? random() : std::to_integer<unsigned>(raw[i - period]) + 1);
        (void)planes_bytes(raw);
    }
}

TEST(Planes, NoiseIsLeftAndNoByteBeyondTheRoomIsWritten) {
    std::mt19937_64 random(12);
    std::vector<std::uint64_t> noise(50'000);
    for (std::uint64_t& each : noise) each = random();
    EXPECT_EQ(planes_bytes(to_bytes_of(noise)), 0u);
    EXPECT_EQ(planes_bytes(to_bytes_of(noise), {array(0, 400'000, 8)}), 0u);
    const Bytes raw = to_bytes_of(field(16, 7));
    const Arrays arrays = {array(100, 20'000, 8), array(20'200, 10'000, 4)};
    for (std::size_t room = 0; room < raw.size(); room += 1 + room / 3) {
        Bytes into(room + 8, std::byte(0xAA));
        EXPECT_LE(encode_planes(raw, arrays, std::span(into).first(room)), room);
        EXPECT_LE(encode_planes(raw, {}, std::span(into).first(room)), room);
        for (std::size_t i = room; i < into.size(); ++i) EXPECT_EQ(into[i], std::byte(0xAA)) << room;
    }
    EXPECT_EQ(encode_planes({}, {}, {}), 0u);
}

// A run of one stretch without an array: its head, one stride of 1, and its planes.
Bytes by_hand(std::uint8_t raw_bytes, std::uint8_t width, std::uint8_t flags, std::initializer_list<std::initializer_list<int>> planes) {
    Bytes stretch, run(1);
    for (const int byte : {1, 0, 0, 0}) stretch.push_back(std::byte(byte));
    for (const auto& plane : planes)
        for (const int byte : plane) stretch.push_back(std::byte(byte));
    for (const int byte : {int{raw_bytes}, 0, 0, 0, static_cast<int>(stretch.size()), 0, 0, 0, int{width}, int{flags}, 1, 0}) run.push_back(std::byte(byte));
    run.insert(run.end(), stretch.begin(), stretch.end());
    return run;
}

// What FORMAT.md says, by hand.
TEST(Planes, AreWhatTheFormatSays) {
    const auto numbers = [](std::uint8_t flags) {  // 1, 2, 3 and 4, before flags: the upper plane is 0, and each is 1 more than the one before
        std::vector<std::uint16_t> found(4);
        Bytes into(8);
        EXPECT_TRUE(decode_planes(by_hand(8, 2, flags, {{1, 0, 0, 3, 0}, {4, 0, 0, 0, 2, 2, 2, 2}}), into).ok()) << int{flags};
        std::memcpy(found.data(), into.data(), into.size());
        return found;
    };
    EXPECT_EQ(numbers(0), (std::vector<std::uint16_t>{1, 2, 3, 4}));
    EXPECT_EQ(numbers(2), (std::vector<std::uint16_t>{0x100, 0x200, 0x300, 0x400}));
    EXPECT_EQ(numbers(4), (std::vector<std::uint16_t>{0x8000, 1, 0x8001, 2}));
    std::vector<float> ones(2);  // the first lies 0x3F800000 from 0, the second where the first is
    Bytes into(8);
    EXPECT_TRUE(decode_planes(by_hand(8, 4, 9, {{2, 0, 0, 0, 0x7F, 0}, {1, 0, 0, 3, 0}, {1, 0, 0, 3, 0}, {1, 0, 0, 3, 0}}), into).ok());
    std::memcpy(ones.data(), into.data(), into.size());
    EXPECT_EQ(ones, (std::vector<float>{1, 1}));
    EXPECT_EQ(decode_planes(by_hand(8, 4, 9, {{2, 0, 0, 6, 0x7F, 0}, {1, 0, 0, 3, 0}, {1, 0, 0, 3, 0}, {1, 0, 0, 3, 0}}), into).code(), Code::corrupt) << "a kind that nobody knows";
    EXPECT_EQ(decode_planes(by_hand(8, 4, 9, {{2, 0, 0, 3, 0x7F, 0}, {1, 0, 0, 3, 0}, {1, 0, 0, 3, 0}, {1, 0, 0, 3, 0}}), into).code(), Code::corrupt) << "one byte, and it is two";
}

// ---- with a base ----

// Stored, and proved to come back with its base, and to be refused with none where it needs it; 0: left as it is.
std::uint64_t with_base(const Bytes& raw, const Bytes& base, const Arrays& arrays, bool* is_needed = nullptr) {
    std::uint64_t fast = 0;
    for (const Effort effort : {Effort::small, Effort::fast}) {
        Base of{base};
        Bytes stored(raw.size() - raw.size() / 16);
        stored.resize(encode_planes(raw, arrays, stored, effort, &of));
        fast = stored.size();
        if (is_needed) *is_needed = of.is_needed;
        if (stored.empty()) continue;
        Bytes back(raw.size(), std::byte(0xAA));
        const Status status = decode_planes(stored, back, base);
        EXPECT_TRUE(status.ok()) << status.to_string();
        EXPECT_TRUE(back == raw);
        EXPECT_EQ(decode_planes(stored, back).code(), of.is_needed ? Code::corrupt : Code::ok);
    }
    return fast;
}

// What training changes in ten steps is little of each weight.
template <typename Float>
std::vector<Float> trained(const std::vector<Float>& weights, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal(0, 1e-4f);
    std::vector<Float> values = weights;
    for (Float& value : values) value += normal(random);
    return values;
}

TEST(PlanesWithABase, WhatChangedLittleTakesLittle) {
    const std::vector<std::uint32_t> bits = weights<std::uint32_t>(100'000, 41);
    std::vector<float> before(bits.size());
    std::memcpy(before.data(), bits.data(), 4 * bits.size());
    const Bytes base = to_bytes_of(before), raw = to_bytes_of(trained(before, 42));
    for (const Arrays& arrays : {Arrays{array(0, raw.size(), 4, 250)}, Arrays{}}) {
        bool is_needed = false;
        const std::uint64_t alone = planes_bytes(raw, arrays), from_base = with_base(raw, base, arrays, &is_needed);
        ASSERT_NE(from_base, 0u);
        EXPECT_TRUE(is_needed);
        EXPECT_LT(from_base * 100, (alone == 0 ? raw.size() : alone) * 93);
        EXPECT_LT(with_base(raw, raw, arrays) * 1000, raw.size()) << "nothing changed";
    }
}

// Neighbours predict these numbers best by sums, which are not made of changes.
TEST(PlanesWithABase, IsOfUseAlsoWhereSumsPredict) {
    const Bytes raw = to_bytes_of(field(32, 46));
    const Arrays shape = {array(0, raw.size(), 8, 32, 1024)};
    Base same{raw};
    Bytes stored(raw.size());
    const std::uint64_t alone = encode_planes(raw, shape, stored, Effort::small);
    ASSERT_LT(alone, planes_bytes(raw, shape)) << "more time finds sums";
    EXPECT_LT(encode_planes(raw, shape, stored, Effort::small, &same) * 20, alone);
    EXPECT_TRUE(same.is_needed);
}

// A fifth of an array is new, and the rest is as it was.
TEST(PlanesWithABase, IsOfUseAlsoBehindAPlaceWhereItIsNot) {
    std::vector<std::uint32_t> values = weights<std::uint32_t>(1'000'000, 47);
    const Bytes base = to_bytes_of(values);
    const std::vector<std::uint32_t> other = weights<std::uint32_t>(200'000, 48);
    std::copy(other.begin(), other.end(), values.begin());
    const Bytes raw = to_bytes_of(values);
    const std::uint64_t stored = with_base(raw, base, {array(0, raw.size(), 4)});
    EXPECT_NE(stored, 0u);
    EXPECT_LT(stored * 4, raw.size());
}

TEST(PlanesWithABase, OneThatTellsNothingIsNotNeeded) {
    std::mt19937_64 random(43);
    const Bytes raw = to_bytes_of(field(32, 44));
    Bytes other(raw.size());
    for (std::byte& each : other) each = static_cast<std::byte>(random());
    const Arrays shape = {array(0, raw.size(), 8, 32, 1024)};
    bool is_needed = true;
    EXPECT_EQ(with_base(raw, other, shape, &is_needed), planes_bytes(raw, shape));
    EXPECT_FALSE(is_needed);
    other.pop_back();
    EXPECT_EQ(with_base(raw, other, shape, &is_needed), planes_bytes(raw, shape)) << "of another length";
    EXPECT_FALSE(is_needed);
}

// Arrays of all widths, alone and together, between other bytes; of each some is as it was, some changed a little, and some is new.
TEST(PlanesWithABase, WhateverChangedComesBack) {
    std::mt19937_64 random(45);
    unsigned needed = 0;
    for (int round = 0; round < 200; ++round) {
        Bytes base;
        Arrays arrays;
        for (std::uint64_t n = 1 + random() % 5; n > 0; --n) {
            for (std::uint64_t other = random() % (round % 3 == 0 ? 100'000 : 300); other > 0; --other) base.push_back(static_cast<std::byte>(random() % 5));
            const std::vector<double> values = field(2 + static_cast<std::uint32_t>(random() % 20), random());
            arrays.push_back(array(base.size(), 8 * values.size(), static_cast<std::uint8_t>(1 << random() % 4), 3, random() % 2 * 17, random() % 4 == 0, static_cast<std::uint32_t>(random() % 3)));
            arrays.back().is_float = arrays.back().width > 1 && random() % 2 == 0;
            append(base, values);
        }
        Bytes raw = base;
        for (std::size_t at = random() % 5000; at < raw.size(); at += 1 + random() % 5000) raw[at] = static_cast<std::byte>(random());
        if (round % 2 == 0)
            for (std::size_t at = 0; at + 8 <= raw.size(); at += 8) raw[at] ^= static_cast<std::byte>(random());
        bool is_needed = false;
        (void)with_base(raw, base, arrays, &is_needed);
        needed += is_needed;
    }
    EXPECT_GT(needed, 100u);
}

// 5, 6, 7 and 8 less 1, 2, 3 and 4: 4 each, and 8 folded.
TEST(PlanesWithABase, IsWhatTheFormatSays) {
    const Bytes base = to_bytes_of(std::vector<std::uint16_t>{1, 2, 3, 4});
    Bytes into(8), run = by_hand(8, 2, 16, {{1, 0, 0, 3, 0}, {1, 0, 0, 3, 8}});
    run[11] = std::byte{0};                             // no stride
    run.erase(run.begin() + 13, run.begin() + 17);
    run[5] = std::byte(std::to_integer<int>(run[5]) - 4);
    EXPECT_TRUE(decode_planes(run, into, base).ok());
    EXPECT_EQ(into, to_bytes_of(std::vector<std::uint16_t>{5, 6, 7, 8}));
    EXPECT_EQ(decode_planes(run, into, ByteView(base).first(6)).code(), Code::corrupt) << "of another length";
    run[10] = std::byte{16 + 1 + 8};
    EXPECT_EQ(decode_planes(run, into, base).code(), Code::corrupt) << "with sums";
}

constexpr std::size_t layout_bytes = 12;  // two pieces: 1, and of each 2 (500; 300), 3 (21,952) or 2 (13,824), and 1

struct Hostile : ::testing::Test {
    Bytes raw;
    Bytes stored;
    void SetUp() override {
        for (int i = 0; i < 500; ++i) raw.push_back(std::byte(i % 3));
        append(raw, field(14, 8));
        for (int i = 0; i < 300; ++i) raw.push_back(std::byte(i % 5));
        append(raw, field(12, 9));
        stored.resize(2 * raw.size());
        store(Effort::fast);
    }
    void store(Effort effort) {
        stored.resize(2 * raw.size());
        stored.resize(encode_planes(raw, Arrays{array(500, 14 * 14 * 14 * 8, 8, 14, 196), array(raw.size() - 12 * 12 * 12 * 8, 12 * 12 * 12 * 8, 8, 12, 144)}, stored, effort));
    }
    static Code code(const Bytes& bytes, std::size_t raw_bytes) {
        Bytes into(raw_bytes);
        return decode_planes(bytes, into).code();
    }
    Code with(std::size_t at, std::uint8_t value) const {
        Bytes lying = stored;
        lying[at] = std::byte{value};
        return code(lying, raw.size());
    }
};

TEST_F(Hostile, CutAndLyingBytesAreRefused) {
    ASSERT_EQ(code(stored, raw.size()), Code::ok);
    for (std::size_t length = 0; length < stored.size(); length += 1 + length / 16) EXPECT_EQ(code(Bytes(stored.begin(), stored.begin() + static_cast<std::ptrdiff_t>(length)), raw.size()), Code::corrupt) << length;
    for (const std::size_t other : {std::size_t{0}, std::size_t{1}, raw.size() - 1, raw.size() + 1}) EXPECT_EQ(code(stored, other), Code::corrupt) << other;
    // How many pieces, and of the first: bytes before it, its bytes, its stretch.
    ASSERT_EQ(stored[0], std::byte{2});
    for (const auto& [at, value] : {std::pair(0, 0), {0, 1}, {0, 3}, {0, 255}, {2, 127}, {5, 127}, {6, 1}, {8, 127}, {11, 0}, {11, 2}})
        EXPECT_EQ(with(static_cast<std::size_t>(at), static_cast<std::uint8_t>(value)), Code::corrupt) << "layout, " << at << " " << value;
    Bytes dust;  // pieces of a byte each: a layout of them would take many times what is stored
    for (const int byte : {0xE8, 0x07}) dust.push_back(std::byte(byte));
    for (int i = 0; i < 1000; ++i)
        for (const int byte : {0, 1, 0}) dust.push_back(std::byte(byte));
    EXPECT_EQ(code(dust, 1000), Code::corrupt);
    // Of the first stretch: raw bytes, bytes that follow, width, flags (floating point and an exponent first; sums of no floating point), strides, 0, the first stride.
    const std::size_t head = layout_bytes;
    ASSERT_EQ(get_count(&stored[head]), 14u * 14 * 14 * 8);
    for (const auto& [at, value] : {std::pair(0, 0), {3, 255}, {7, 255}, {8, 0}, {8, 3}, {8, 16}, {9, 5}, {9, 8}, {9, 16}, {9, 255}, {10, 4}, {10, 255}, {11, 1}, {12, 0}})
        EXPECT_EQ(with(head + static_cast<std::size_t>(at), static_cast<std::uint8_t>(value)), Code::corrupt) << at << " " << value;
    Bytes rest(1 + 12 + 8);  // no piece, and raw bytes: no way of numbers goes with them
    rest[1] = rest[5] = std::byte{8};
    EXPECT_EQ(code(rest, 8), Code::ok);
    rest[10] = std::byte{1};
    EXPECT_EQ(code(rest, 8), Code::corrupt);
    Bytes nothing_follows(1 + 12 + 4);  // a plane of no bytes, and the end
    nothing_follows[1] = nothing_follows[5] = std::byte{4};
    nothing_follows[9] = std::byte{1};
    EXPECT_EQ(code(nothing_follows, 4), Code::corrupt);
    Bytes longer = stored;
    longer.resize(stored.size() + 16);
    EXPECT_EQ(code(longer, raw.size()), Code::corrupt);
    longer.insert(longer.end(), stored.begin(), stored.end());
    EXPECT_EQ(code(longer, raw.size()), Code::corrupt);
}

TEST_F(Hostile, DamageStaysWithinBoth) {
    std::mt19937_64 random(13);
    for (int round = 0; round < 20'000; ++round) {
        if (round == 10'000) store(Effort::small);
        Bytes damaged = stored;
        const std::size_t among = round % 2 == 0 ? std::min<std::size_t>(damaged.size(), 200) : damaged.size();
        for (std::uint64_t n = 1 + random() % 4; n > 0; --n) damaged[random() % among] ^= std::byte(1 << random() % 8);
        (void)code(damaged, raw.size());  // whatever it says, it stays within both
    }
}

}  // namespace
}  // namespace cairn
