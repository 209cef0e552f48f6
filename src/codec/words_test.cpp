// What is there already, far back, is told by where it was; and nothing else is taken for that.
#include "codec/words.hpp"

#include <gtest/gtest.h>
#include <zstd.h>

#include <random>

#include "codec/planes.hpp"

namespace cairn {
namespace {

Bytes noise_bytes(std::size_t count, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    Bytes bytes(count);
    for (std::byte& each : bytes) each = static_cast<std::byte>(random());
    return bytes;
}

// Rows of 2 KiB, each one of some; of one that lies further back than a stretch is long, mostly.
Bytes rows_of(std::size_t kinds, std::size_t count, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<Bytes> kind;
    for (std::size_t i = 0; i < kinds; ++i) kind.push_back(noise_bytes(2048, random()));
    Bytes run(random() % 200 * 4);
    for (std::size_t i = 0; i < count; ++i) {
        const Bytes& row = kind[i < kinds ? i : random() % kinds];
        run.insert(run.end(), row.begin(), row.end());
    }
    return run;
}

Bytes encoded(const Bytes& run, Effort effort) {
    Bytes stored(run.size()), back(run.size());
    stored.resize(encode_planes(run, std::vector<NumberArray>{{0, run.size() / 8 * 8, 8, true, false, 256}}, stored, effort));
    EXPECT_TRUE(decode_planes(stored, back).ok());
    EXPECT_TRUE(back == run);
    return stored;
}

TEST(Words, AreFoundFarBack) {
    for (const std::size_t rows : {511, 1400})  // of less than a stretch of words, and of more
        for (const Effort effort : {Effort::fast, Effort::small}) {
            const Bytes run = rows_of(150, rows, 51), stored = encoded(run, effort);
            EXPECT_LT(stored.size() * 2, run.size());
            EXPECT_EQ(stored[1 + 9], std::byte{flag_words});
        }
}

TEST(Words, AreNotSeenWhereNothingIsToBeTold) {
    EXPECT_EQ(repetition(noise_bytes(1 << 20, 52)), 0);
    EXPECT_EQ(repetition(Bytes(1 << 20)), 0) << "what repeats itself side by side";
    EXPECT_GT(repetition(rows_of(150, 511, 53)), 0.5);
    for (const std::size_t length : {0, 1, 32, 32'000, 33'000}) EXPECT_LE(repetition(noise_bytes(length, 54)), 1) << length;
}

TEST(Words, HostileOnesAreRefused) {
    const Bytes run = rows_of(150, 1400, 55), stored = encoded(run, Effort::fast);
    const auto code = [&](const Bytes& bytes, std::size_t raw_bytes) {
        Bytes into(raw_bytes);
        return decode_planes(bytes, into).code();
    };
    ASSERT_EQ(code(stored, run.size()), Code::ok);
    for (const std::size_t other : {std::size_t{0}, std::size_t{1}, run.size() - 1, run.size() + 1}) EXPECT_EQ(code(stored, other), Code::corrupt) << other;
    for (std::size_t length = 0; length < stored.size(); length += 1 + length / 8) EXPECT_EQ(code(Bytes(stored.begin(), stored.begin() + static_cast<std::ptrdiff_t>(length)), run.size()), Code::corrupt) << length;
    for (const auto& [at, value] : std::vector<std::pair<std::size_t, int>>{{1, 1}, {3, 1}, {3, 255}, {4, 1}, {8, 1}, {9, 1}, {9, 8}, {10, 0}, {10, 65}, {10, 72}, {10, 255}, {11, 1}, {12, 1}}) {
        Bytes lying = stored;
        lying[at] = static_cast<std::byte>(value);
        EXPECT_EQ(code(lying, run.size()), Code::corrupt) << at << " " << value;
    }
    // As a stretch of arrays: a piece of 256 bytes.
    Bytes frame(400), array;
    frame.resize(ZSTD_compress(frame.data(), frame.size(), run.data(), 256, 1));
    for (const int byte : {1, 0, 0x80, 2, 0, 0, 1, 0, 0, static_cast<int>(frame.size() % 256), static_cast<int>(frame.size() / 256), 0, 0, 0, int{flag_words}, 0, 0}) array.push_back(static_cast<std::byte>(byte));
    array.insert(array.end(), frame.begin(), frame.end());
    EXPECT_EQ(code(array, 256), Code::corrupt);
}

}  // namespace
}  // namespace cairn
