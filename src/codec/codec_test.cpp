// Codecs: what is encoded comes back, only where it is shorter, and nothing hostile gets through.
#include "codec/codec.hpp"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cmath>
#include <cstring>
#include <random>
#include <thread>

#include "base/checksum.hpp"

namespace cairn {
namespace {

Bytes random_bytes(std::mt19937_64& random, std::size_t count) {
    Bytes bytes(count);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(1 + random() % 255);
    return bytes;
}

// Literal bytes and zeros by turns, of all lengths around those that matter.
Bytes mixed(std::mt19937_64& random) {
    Bytes bytes;
    for (std::uint64_t n = random() % 12; n > 0; --n) {
        const std::size_t lengths[] = {1, 7, 63, 64, 65, 127, 128, 4095, 4096, 4097, 20'000};
        const std::size_t length = lengths[random() % std::size(lengths)];
        if (random() % 2 == 0) bytes.resize(bytes.size() + length);
        else {
            const Bytes more = random_bytes(random, length);
            bytes.insert(bytes.end(), more.begin(), more.end());
        }
    }
    return bytes;
}

TEST(ZeroRuns, ComeBack) {
    std::mt19937_64 random(5);
    for (int round = 0; round < 2000; ++round) {
        const Bytes raw = mixed(random);
        Bytes stored(raw.size() + 1000);
        stored.resize(encode(Codec::zero_runs, raw, {}, stored));
        Bytes back(raw.size(), std::byte(0xAA));
        const Status status = decode(Codec::zero_runs, stored, back);
        ASSERT_TRUE(status.ok()) << status.to_string();
        ASSERT_TRUE(back == raw) << round;
    }
}

TEST(ZeroRuns, TellZerosInEightBytes) {
    Bytes raw(1 << 20), stored(1 << 20);
    EXPECT_EQ(encode(Codec::zero_runs, raw, {}, stored), 8u);
    raw[500'000] = std::byte(1);
    EXPECT_EQ(encode(Codec::zero_runs, raw, {}, stored), 17u);
}

TEST(ZeroRuns, WhatDoesNotGetShorterIsLeft) {
    std::mt19937_64 random(6);
    const Bytes raw = random_bytes(random, 5000);
    Bytes stored(raw.size());
    EXPECT_EQ(encode(Codec::zero_runs, raw, {}, stored), 0u);
    EXPECT_EQ(encode(Codec::zero_runs, Bytes(5000), {}, std::span(stored).first(7)), 0u) << "no byte beyond the room";
}

TEST(ZeroRuns, HostileBytesAreRefused) {
    std::mt19937_64 random(7);
    const auto refused = [](const Bytes& stored, std::size_t raw_bytes) {
        Bytes into(raw_bytes);
        return decode(Codec::zero_runs, stored, into).code() == Code::corrupt;
    };
    Bytes raw = random_bytes(random, 300), stored(400);
    raw.resize(1000);
    stored.resize(encode(Codec::zero_runs, raw, {}, stored));
    ASSERT_FALSE(refused(stored, raw.size()));
    for (std::size_t length = 0; length < stored.size(); ++length) EXPECT_TRUE(refused(Bytes(stored.begin(), stored.begin() + static_cast<std::ptrdiff_t>(length)), raw.size())) << length;
    for (const std::size_t other : {0u, 1u, 999u, 1001u}) EXPECT_TRUE(refused(stored, other)) << other;
    for (std::size_t bit = 0; bit < 64; ++bit) {
        Bytes damaged = stored;
        damaged[bit / 8] ^= std::byte(1 << bit % 8);
        EXPECT_TRUE(refused(damaged, raw.size())) << bit;
    }
    for (int round = 0; round < 5000; ++round) {
        Bytes into(random() % 200);
        (void)decode(Codec::zero_runs, random_bytes(random, random() % 100), into).ok();  // whatever it says, it stays within both
    }
}

TEST(Codecs, NoneIsACopy) {
    const Bytes raw = to_bytes("as it is");
    Bytes copy(raw.size());
    EXPECT_EQ(encode(Codec::none, raw, {}, copy), raw.size());
    EXPECT_TRUE(copy == raw);
    EXPECT_EQ(encode(Codec::none, raw, {}, std::span(copy).first(3)), 0u);
}

TEST(Codecs, OfNumbersOnlyTheBytesTell) {
    EXPECT_TRUE(may_shrink(Codec::numbers, {1, 2}, 1 << 20, 1 << 20));
    EXPECT_FALSE(may_shrink(Codec::numbers, {1}, 4096, 4096)) << "too few for a sample";
}

// What glibc's allocator gave to this process and has not back; 0 where another one is in its place (sanitizers).
std::uint64_t allocated_bytes() {
    const struct mallinfo2 info = ::mallinfo2();
    return info.uordblks + info.hblkhd;
}

// Numbers that go on smoothly, with noise in the lowest bits, and bytes that are like nothing: both ways of a codec.
Bytes series_and_noise(std::size_t count) {
    std::mt19937_64 random(1);
    Bytes bytes(count * sizeof(double));
    double value = 1;
    for (std::size_t i = 0; i < count / 2; ++i) {
        value += std::sin(static_cast<double>(i) / 100) + static_cast<double>(random() % 1000) * 1e-6;
        std::memcpy(&bytes[i * sizeof value], &value, sizeof value);
    }
    for (std::size_t i = count / 2 * sizeof value; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(random() % 17);
    return bytes;
}

// Of a table of long words, in any order.
Bytes words_of(std::size_t count) {
    std::mt19937_64 random(2);
    constexpr std::size_t length = 192, table = 400;
    const Bytes words = random_bytes(random, length * table);
    Bytes bytes;
    for (std::size_t i = 0; i < count; ++i) {
        const ByteView word = ByteView(words).subspan(random() % table * length, length);
        bytes.insert(bytes.end(), word.begin(), word.end());
    }
    return bytes;
}

// In a thread of its own: what others worked in before is another one's.
TEST(Codecs, AThreadWorksInAsMuchAsIsSaid) {
    const Bytes numbers = series_and_noise(1 << 20), words = words_of(20'000);
    const std::vector<NumberArray> none, arrays{{0, numbers.size() / 2, 8, true}, {numbers.size() / 2, numbers.size() / 2, 1}}, rows{{0, words.size(), 8, true, false, 24}};
    for (const Codec codec : {Codec::zero_runs, Codec::numbers, Codec::planes, Codec::planes_small}) {
        Bytes into(numbers.size()), back(numbers.size());
        std::uint64_t kept = 0;
        const auto both_ways = [&](const Bytes& raw, const std::vector<NumberArray>& told) {
            const std::uint64_t stored = encode(codec, raw, told, into);
            if (stored == 0) return;
            EXPECT_TRUE(decode(codec, ByteView(into).first(stored), std::span(back).first(raw.size())).ok());
        };
        std::thread([&] {
            const std::uint64_t before = allocated_bytes();
            both_ways(numbers, arrays);
            both_ways(numbers, none);
            both_ways(words, rows);
            kept = allocated_bytes() - before;
        }).join();
        EXPECT_LE(kept, workspace_bytes(codec)) << codec_name(codec);
        if (allocated_bytes() != 0) {
            EXPECT_GE(kept, workspace_bytes(codec) / 2) << codec_name(codec) << ": what is said is far too much";
        }
    }
}

TEST(Codecs, AreKnownByNameAndParameters) {
    EXPECT_EQ(codec_of("delta-shuffle-zstd", ""), Codec::numbers);
    EXPECT_EQ(codec_name(Codec::numbers), "delta-shuffle-zstd");
    EXPECT_EQ(codec_of("zero-runs", ""), Codec::zero_runs);
    EXPECT_EQ(codec_of("predict-planes-small", ""), Codec::planes_small);
    EXPECT_EQ(codec_name(Codec::planes_small), "predict-planes-small");
    EXPECT_EQ(codec_of("zero-runs", "x"), std::nullopt);
    EXPECT_EQ(codec_of("none", ""), std::nullopt) << "raw bytes have no codec";
    EXPECT_EQ(codec_name(Codec::zero_runs), "zero-runs");
}

TEST(Codecs, WholeBlocksOfZerosAreWorthAnEncoding) {
    const std::uint64_t zeros = checksum(Bytes(4096));
    EXPECT_TRUE(may_shrink(Codec::zero_runs, {1, zeros, 2}, 3 * 4096, 4096));
    EXPECT_FALSE(may_shrink(Codec::zero_runs, {1, 3, 2}, 3 * 4096, 4096));
    EXPECT_FALSE(may_shrink(Codec::none, {zeros}, 4096, 4096));
    std::vector<std::uint64_t> many(64, 5);
    many[7] = zeros;
    EXPECT_FALSE(may_shrink(Codec::zero_runs, many, 64 * 4096, 4096)) << "one of 64 is not worth it";
    std::fill_n(many.begin(), 5, zeros);
    EXPECT_TRUE(may_shrink(Codec::zero_runs, many, 64 * 4096, 4096));
}

}  // namespace
}  // namespace cairn
