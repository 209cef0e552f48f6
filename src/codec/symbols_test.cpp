// Bytes by how often each value occurs, with and without a plane above: what is put comes back, is about as short as it says, and nothing hostile gets through.
#include "codec/symbols.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace cairn {
namespace {

// Values around 0 (and so around 256), the more spread the larger `deviation` is.
Bytes spread_bytes(std::mt19937_64& random, std::size_t count, double deviation) {
    std::normal_distribution<double> normal(0, deviation);
    Bytes bytes(count);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(std::lround(normal(random)));
    return bytes;
}

Bytes put(const Bytes& bytes) {
    Bytes into(2 * bytes.size() + 4096);
    into.resize(put_symbols(bytes, histogram_of(bytes), into));
    return into;
}
Bytes put(const Bytes& bytes, const Bytes& above) {
    Bytes into(2 * bytes.size() + 65'536);
    into.resize(put_symbols(bytes, above, contexts_of(bytes, above), into));
    return into;
}

TEST(Symbols, ComeBack) {
    std::mt19937_64 random(41);
    for (int round = 0; round < 400; ++round) {
        const std::size_t count = 1 + random() % (round % 10 == 0 ? 262'144 : 5000);
        const Bytes bytes = spread_bytes(random, count, std::exp2(static_cast<double>(random() % 12) - 4)), above = spread_bytes(random, count, std::exp2(static_cast<double>(random() % 12) - 4));
        Bytes back(count, std::byte(0xAA));
        ASSERT_TRUE(get_symbols(put(bytes), back)) << round;
        ASSERT_TRUE(back == bytes) << round;
        std::fill(back.begin(), back.end(), std::byte(0xAA));
        ASSERT_TRUE(get_symbols(put(bytes, above), above, back)) << round;
        ASSERT_TRUE(back == bytes) << round;
        std::fill(back.begin(), back.end(), std::byte(0xAA));
        ASSERT_TRUE(get_symbols_after(put(bytes, before(bytes)), back)) << round;
        ASSERT_TRUE(back == bytes) << round;
    }
}

// Rows of values that are large here and small there.
TEST(Symbols, ThoseBeforeTell) {
    std::mt19937_64 random(46);
    Bytes bytes;
    for (int row = 0; row < 60; ++row)
        for (int i = 0; i < 1000; ++i) bytes.push_back(static_cast<std::byte>(4 * (row % 7) + random() % 4));
    EXPECT_LT(put(bytes, before(bytes)).size(), 0.7 * static_cast<double>(put(bytes).size()));
}

TEST(Symbols, TakeWhatThereIsToSay) {
    std::mt19937_64 random(42);
    for (const double deviation : {0.2, 0.6, 2.0, 8.0, 40.0}) {
        const Bytes bytes = spread_bytes(random, 60'000, deviation);
        const double told = symbols_bytes(histogram_of(bytes), bytes.size()), made = static_cast<double>(put(bytes).size());
        EXPECT_LT(made, 1.02 * told) << deviation;
        EXPECT_GT(made, 0.98 * told) << deviation;
    }
    EXPECT_LT(put(Bytes(100'000, std::byte(7))).size(), 60u) << "one value, and never all of a share";
    EXPECT_EQ(symbols_bytes(histogram_of({}), 0) > 0, true);
}

// Where the byte above is large, so is this one.
TEST(Symbols, APlaneAboveTells) {
    std::mt19937_64 random(43);
    Bytes above = spread_bytes(random, 60'000, 3), bytes;
    for (std::byte& each : above) {
        const auto most = static_cast<unsigned>(std::abs(static_cast<int>(static_cast<std::int8_t>(each))));
        each = std::byte(most);
        bytes.push_back(static_cast<std::byte>(random() % (1u << std::min(most, 8u))));
    }
    const Contexts contexts = contexts_of(bytes, above);
    EXPECT_LE(contexts.histograms.size(), contexts_max);
    const double with = static_cast<double>(put(bytes, above).size());
    EXPECT_LT(with, 0.8 * static_cast<double>(put(bytes).size()));
    EXPECT_LT(std::abs(with - contexts.bytes), 0.03 * with);
}

TEST(Symbols, NoByteBeyondTheRoomIsWritten) {
    std::mt19937_64 random(44);
    const Bytes bytes = spread_bytes(random, 3000, 8), above = spread_bytes(random, 3000, 8);
    const Contexts contexts = contexts_of(bytes, above);
    for (std::size_t room = 0; room < 4000; room += 1 + room / 7) {
        Bytes into(room + 8, std::byte(0xAA));
        EXPECT_LE(put_symbols(bytes, histogram_of(bytes), std::span(into).first(room)), room);
        EXPECT_LE(put_symbols(bytes, above, contexts, std::span(into).first(room)), room);
        for (std::size_t i = room; i < into.size(); ++i) ASSERT_EQ(into[i], std::byte(0xAA)) << room;
    }
    EXPECT_EQ(put_symbols({}, histogram_of({}), std::span<std::byte>()), 0u);
}

// What FORMAT.md says, by hand: values 1 and 3 with shares of 4095 and 1, four states as they begin, and no word.
TEST(Symbols, AreWhatTheFormatSays) {
    Bytes stored;
    for (const int byte : {0, 0, 128 | 4095 >> 8, 4095 & 255, 0, 0, 1, 0, 251}) stored.push_back(std::byte(byte));
    for (int state = 0; state < 4; ++state)
        for (const int byte : {0x00, 0x80, 0, 0}) stored.push_back(std::byte(byte));
    EXPECT_TRUE(get_symbols(stored, std::span<std::byte>()));
    Bytes two(4);
    EXPECT_FALSE(get_symbols(stored, two)) << "the states are not what they began as";
    // The state that tells a 3, whose share is 1 and begins at 4095, and is then what it began as: 32768 / 1 * 4096 + 4095. It gave no word for that, for 32768 is less than 1 * 2^19.
    const std::size_t first = stored.size() - 16;
    const std::uint32_t told = (32768u << 12) + 4095;
    for (std::size_t i = 0; i < 4; ++i) stored[first + i] = static_cast<std::byte>(told >> (8 * i));
    Bytes one(1);
    EXPECT_TRUE(get_symbols(stored, one));
    EXPECT_EQ(one[0], std::byte(3));
}

TEST(Symbols, HostileBytesAreRefused) {
    std::mt19937_64 random(45);
    const Bytes bytes = spread_bytes(random, 2000, 5), above = spread_bytes(random, 2000, 2), alone = put(bytes), below = put(bytes, above);
    Bytes into(bytes.size());
    for (std::size_t length = 0; length < alone.size(); ++length) EXPECT_FALSE(get_symbols(ByteView(alone).first(length), into)) << length;
    for (std::size_t length = 0; length < below.size(); ++length) EXPECT_FALSE(get_symbols(ByteView(below).first(length), above, into)) << length;
    EXPECT_FALSE(get_symbols(below, ByteView(above).first(1999), into));
    Bytes longer = alone;
    longer.resize(alone.size() + 2);
    EXPECT_FALSE(get_symbols(longer, into));
    const Bytes all_of_a_share = {std::byte(128 | 16), std::byte(0), std::byte(0), std::byte(254)};
    Bytes with_states = all_of_a_share;
    for (int i = 0; i < 4; ++i)
        for (const int byte : {0x00, 0x80, 0, 0}) with_states.push_back(std::byte(byte));
    EXPECT_FALSE(get_symbols(with_states, into));
    for (int round = 0; round < 20'000; ++round) {
        Bytes damaged = round % 2 == 0 ? alone : below;
        const std::size_t among = round % 3 == 0 ? std::min<std::size_t>(damaged.size(), 100) : damaged.size();
        for (std::uint64_t n = 1 + random() % 4; n > 0; --n) damaged[random() % among] ^= std::byte(1 << random() % 8);
        if (round % 5 == 0) damaged.resize(random() % damaged.size());
        (void)(round % 2 == 0 ? get_symbols(damaged, into) : get_symbols(damaged, above, into));
        (void)get_symbols_after(damaged, into);  // whatever it says, it stays within both
    }
}

}  // namespace
}  // namespace cairn
