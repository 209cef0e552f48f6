// Records, by column: whatever their fields, they come back bit for bit; they get as short as files of one field each, and nothing hostile gets through. What is told of bytes and what a sample finds compete.
#include "codec/records.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "codec/chosen.hpp"
#include "codec/integers.hpp"
#include "codec/planes.hpp"
#include "codec/planes_layout.hpp"

namespace cairn {
namespace {

// One field's bytes, of as many records as there are.
struct Field {
    std::size_t bytes;
    Bytes values;
};

template <typename T, typename Make>
Field field_of(std::size_t records, Make make) {
    Field made{sizeof(T), Bytes(records * sizeof(T))};
    for (std::size_t i = 0; i < records; ++i) {
        const T value = static_cast<T>(make(i));
        std::memcpy(&made.values[i * sizeof(T)], &value, sizeof(T));
    }
    return made;
}

Bytes records_of(const std::vector<Field>& fields) {
    Bytes raw;
    const std::size_t records = fields.front().values.size() / fields.front().bytes;
    for (std::size_t i = 0; i < records; ++i)
        for (const Field& each : fields) raw.insert(raw.end(), each.values.begin() + static_cast<std::ptrdiff_t>(i * each.bytes), each.values.begin() + static_cast<std::ptrdiff_t>((i + 1) * each.bytes));
    return raw;
}

// Eleven doubles, as a simulation of atoms leaves them: how many numbers follow, a place, what never changes, and how fast it moves.
std::vector<Field> atoms(std::size_t count, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal(0, 3);
    const auto always = [&](double value) { return field_of<double>(count, [=](std::size_t) { return value; }); };
    const auto place = [&](double apart) { return field_of<double>(count, [&, apart](std::size_t i) { return std::fmod(static_cast<double>(i) * apart, 100) + 1e-2 * normal(random); }); };
    const auto speed = [&] { return field_of<double>(count, [&](std::size_t) { return normal(random); }); };
    std::vector<Field> made = {always(11), place(3.6), place(0.2), place(0.01)};
    made.push_back(field_of<std::uint64_t>(count, [&](std::size_t) { return random() % count; }));
    for (const double value : {1.0, 1.0, 0.5}) made.push_back(always(value));
    for (int axis = 0; axis < 3; ++axis) made.push_back(speed());
    return made;
}

// Of 13 bytes: a smooth double, a counter and a kind.
std::vector<Field> packed(std::size_t count, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    return {field_of<double>(count, [&](std::size_t i) { return 2 + std::sin(1e-3 * static_cast<double>(i)) + 1e-9 * static_cast<double>(random() % 1000); }),
            field_of<std::int32_t>(count, [](std::size_t i) { return i / 3; }), field_of<std::uint8_t>(count, [&](std::size_t) { return random() % 4; })};
}

std::uint64_t record_bytes(const Bytes& raw, const std::vector<NumberArray>& arrays = {}, Effort effort = Effort::fast) {
    Bytes stored(raw.size() + raw.size() / 8 + 4096), back(raw.size(), std::byte{0xAA});
    stored.resize(encode_planes(raw, arrays, stored, effort));
    EXPECT_FALSE(stored.empty());
    const Status status = decode_planes(stored, back);
    EXPECT_TRUE(status.ok()) << status.to_string();
    EXPECT_TRUE(back == raw);
    return stored.size();
}
std::uint64_t alone_bytes(const std::vector<Field>& fields) {
    std::uint64_t sum = 0;
    for (const Field& each : fields) sum += record_bytes(each.values, {{0, each.values.size(), static_cast<std::uint8_t>(each.bytes), each.bytes == 8, false}});
    return sum;
}
NumberArray told_words(std::size_t bytes, std::uint8_t width, std::uint32_t row, bool is_float = false) { return {0, bytes / width * width, width, is_float, false, row}; }

TEST(Records, TheirLengthIsSeen) {
    EXPECT_EQ(guess_record(records_of(atoms(2000, 1))), 88u);
    EXPECT_EQ(guess_record(records_of(packed(8000, 2))), 13u);
    std::mt19937_64 random(3);
    Bytes noise(100'000);
    for (std::byte& each : noise) each = static_cast<std::byte>(random());
    EXPECT_EQ(guess_record(noise), 0u);
    EXPECT_EQ(guess_record(packed(8000, 2).front().values), 0u) << "numbers of one kind are none";
    EXPECT_EQ(guess_record(Bytes(100'000)), 0u);
    for (const std::size_t length : {0, 1, 255, 1279, 2559}) EXPECT_EQ(guess_record(Bytes(length)), 0u) << length;
}

TEST(Records, AreNearlyAsShortAsAFileForEachField) {
    for (const Effort effort : {Effort::fast, Effort::small})
        for (const std::vector<Field>& fields : {atoms(20'000, 4), packed(60'000, 5)}) {
            const Bytes raw = records_of(fields);
            const std::uint64_t alone = alone_bytes(fields);
            EXPECT_LT(record_bytes(raw, {}, effort) * 100, alone * 104) << "nobody tells of them";
            const auto row = static_cast<std::uint32_t>(raw.size() / (fields.front().values.size() / fields.front().bytes));
            const NumberArray told = row % 8 == 0 ? told_words(raw.size(), 8, row / 8, true) : told_words(raw.size(), 1, row);
            EXPECT_LT(record_bytes(raw, {told}, effort) * 100, alone * 104) << "told as rows of numbers";
        }
}

// They may begin anywhere, also in the middle of a number of the first one; and behind them there may be half of one.
TEST(Records, BeginAndEndAnywhere) {
    const Bytes all = records_of(packed(40'000, 6));
    const std::uint64_t whole = record_bytes(all);
    for (std::size_t skipped = 1; skipped < 14; ++skipped) {
        const Bytes raw(all.begin() + static_cast<std::ptrdiff_t>(skipped), all.end() - static_cast<std::ptrdiff_t>(2 * skipped));
        EXPECT_LT(record_bytes(raw) * 100, whole * 102) << skipped;
    }
}

// Fields of any widths, in any order and number; any bits.
TEST(Records, OfAnyFieldsComeBack) {
    std::mt19937_64 random(7);
    for (int round = 0; round < 150; ++round) {
        const std::size_t records = 1 + random() % (round % 5 == 0 ? 30'000 : 2000);
        std::vector<Field> fields;
        std::size_t record = 0;
        for (std::uint64_t n = 1 + random() % 12; n > 0; --n) {
            const std::uint64_t step = random() >> random() % 64, odd = random() % 3 == 0 ? 0x7FF0'0000'0000'0000 : 0;
            const auto some = [&](std::size_t i) { return i % 97 == 5 ? odd | random() % 8 : i * step + random() % 16; };
            switch (random() % 4) {
                case 0: fields.push_back(field_of<std::uint8_t>(records, some)); break;
                case 1: fields.push_back(field_of<std::uint16_t>(records, some)); break;
                case 2: fields.push_back(field_of<std::uint32_t>(records, some)); break;
                default: fields.push_back(field_of<std::uint64_t>(records, some)); break;
            }
            record += fields.back().bytes;
        }
        Bytes raw = records_of(fields);
        for (std::uint64_t n = random() % 20; n > 0; --n) raw.push_back(static_cast<std::byte>(random()));
        for (const Effort effort : {Effort::fast, Effort::small}) {
            (void)record_bytes(raw, {}, effort);
            if (raw.size() >= record) (void)record_bytes(raw, {told_words(raw.size(), 1, static_cast<std::uint32_t>(record))}, effort);
        }
    }
}

// Two kinds of records, a header and text: each place is taken as what it is.
TEST(Records, EndWhereOthersBegin) {
    const Bytes first = records_of(atoms(6000, 8)), second = records_of(packed(30'000, 9));
    Bytes raw(100, std::byte{7});
    raw.insert(raw.end(), first.begin(), first.end());
    raw.insert(raw.end(), second.begin(), second.end());
    EXPECT_LT(record_bytes(raw) * 100, (record_bytes(first) + record_bytes(second)) * 115);
}

// An array that is told as rows, and is records only in its first stretches, or its last.
TEST(Records, OfAnArrayMayBeginAndEndInIt) {
    Bytes raw = records_of(atoms(9000, 16));
    const Bytes smooth = packed(90'000, 17).front().values;
    raw.insert(raw.end(), smooth.begin(), smooth.end());
    EXPECT_LT(record_bytes(raw, {told_words(raw.size(), 8, 11, true)}) * 100, record_bytes(raw) * 110);
    Bytes after(528'000);  // or in its last
    const Bytes records = records_of(atoms(9000, 18));
    after.insert(after.end(), records.begin(), records.end());
    EXPECT_LT(record_bytes(after, {told_words(after.size(), 8, 11, true)}) * 100, record_bytes(after) * 110);
}

// What somebody tells of bytes may be wrong: it costs little more than if they had told nothing.
TEST(Records, AWrongDescriptionLosesToASample) {
    std::vector<Bytes> raws = {records_of(atoms(20'000, 10)), records_of(packed(60'000, 11)), packed(100'000, 12).front().values, packed(200'000, 13)[1].values};
    for (const Bytes& raw : raws) {
        const std::uint64_t sampled = record_bytes(raw);
        for (const std::uint8_t width : {1, 2, 4, 8})
            for (const std::uint32_t row : {0u, 2u, 11u, 1000u})
                for (const bool is_float : {false, true}) EXPECT_LT(record_bytes(raw, {told_words(raw.size(), width, row, is_float && width > 1)}) * 100, sampled * 103) << int{width} << " " << row << " " << is_float << " of " << sampled << ", " << raw.size();
    }
}

// By hand: three records of a byte that is 5 and two that are 1, 2, 3 as one number; a byte before them, and one behind.
Bytes columns_by_hand(std::initializer_list<int> bytes, int count, int raw_bytes) {
    Bytes run = {std::byte{0}};
    for (const int byte : {raw_bytes, 0, 0, 0, static_cast<int>(bytes.size()), 0, 0, 0, 0, 0, 0, count}) run.push_back(static_cast<std::byte>(byte));
    for (const int byte : bytes) run.push_back(static_cast<std::byte>(byte));
    return run;
}

TEST(Records, AreWhatTheFormatSays) {
    const auto code = [](const Bytes& stored, std::size_t bytes) {
        Bytes into(bytes);
        return decode_planes(stored, into).code();
    };
    const std::initializer_list<int> good = {3, 0, 1, 0, 1, 1, 0, 0, 1, 0, 0, 3, 5, 2, 2, 0, 1, 1, 0, 0, 0, 1, 0, 0, 3, 0, 3, 0, 0, 0, 2, 2, 2, 9, 8};
    const Bytes stored = columns_by_hand(good, 2, 11);
    Bytes into(11);
    const Status status = decode_planes(stored, into);
    ASSERT_TRUE(status.ok()) << status.to_string();
    const int wanted[] = {9, 5, 1, 0, 5, 2, 0, 5, 3, 0, 8};
    EXPECT_TRUE(std::equal(into.begin(), into.end(), std::begin(wanted), [](std::byte byte, int value) { return std::to_integer<int>(byte) == value; }));
    const Bytes as_they_are = columns_by_hand({2, 0, 0, 0, 1, 0, 0, 0, 1, 2, 1, 0, 0, 0, 3, 4}, 2, 4);
    Bytes four(4);
    ASSERT_TRUE(decode_planes(as_they_are, four).ok());
    EXPECT_EQ(four, (Bytes{std::byte{1}, std::byte{3}, std::byte{2}, std::byte{4}}));
    // Each byte of the heads, and what is worth a lie.
    constexpr std::size_t head = 13;
    for (const auto& [at, value] : std::vector<std::pair<std::size_t, int>>{{9, 1}, {10, 1}, {11, 1}, {12, 1}, {12, 3}, {12, 255}, {head, 0}, {head, 1}, {head, 4}, {head + 1, 1}, {head + 2, 3}, {head + 3, 255},
                                                                            {head + 4, 0}, {head + 4, 2}, {head + 4, 3}, {head + 4, 255}, {head + 5, 0}, {head + 5, 2}, {head + 5, 3}, {head + 6, 16}, {head + 15, 16}, {head + 7, 1}, {head + 13, 0}, {head + 13, 1}, {head + 13, 3}}) {
        Bytes lying = stored;
        lying[at] = static_cast<std::byte>(value);
        EXPECT_EQ(code(lying, 11), Code::corrupt) << at << " " << value;
    }
    for (std::size_t length = 0; length < stored.size(); ++length) EXPECT_EQ(code(Bytes(stored.begin(), stored.begin() + static_cast<std::ptrdiff_t>(length)), 11), Code::corrupt) << length;
    EXPECT_EQ(code(columns_by_hand({2, 0, 2, 0, 1, 0, 0, 0, 1, 2}, 1, 1), 1), Code::corrupt) << "more before the first record than there is";
    EXPECT_EQ(code(columns_by_hand({4, 0, 0, 0, 1, 0, 0, 0}, 1, 3), 3), Code::corrupt) << "no whole record";
}

TEST(Records, DamageStaysWithinBoth) {
    std::mt19937_64 random(14);
    for (const Effort effort : {Effort::fast, Effort::small}) {
        const Bytes raw = records_of(atoms(600, 15));
        Bytes stored(raw.size());
        stored.resize(encode_planes(raw, {}, stored, effort));
        ASSERT_NE(stored[1 + 11], std::byte{0}) << "it is stored by column";
        for (int round = 0; round < 4000; ++round) {
            Bytes damaged = stored, into(raw.size());
            const std::size_t among = round % 2 == 0 ? 100 : damaged.size();
            for (std::uint64_t n = 1 + random() % 4; n > 0; --n) damaged[random() % among] ^= static_cast<std::byte>(1 << random() % 8);
            (void)decode_planes(damaged, into);
        }
    }
}

}  // namespace
}  // namespace cairn
