// delta-shuffle-zstd: whatever it is given comes back bit for bit, numbers and records get shorter, and nothing hostile gets through.
#include "codec/numbers.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>

namespace cairn {
namespace {

template <typename T>
Bytes bytes_of(const std::vector<T>& values) {
    Bytes bytes(values.size() * sizeof(T));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
}

// Stored, and proved to come back; 0: left as it is.
std::uint64_t stored_bytes(const Bytes& raw) {
    Bytes stored(raw.size() - raw.size() / 16);
    stored.resize(encode_numbers(raw, stored));
    if (stored.empty()) return 0;
    Bytes back(raw.size(), std::byte(0xAA));
    const Status status = decode_numbers(stored, back);
    EXPECT_TRUE(status.ok()) << status.to_string();
    EXPECT_TRUE(back == raw);
    return stored.size();
}

template <typename T>
std::vector<T> smooth(std::size_t count, double step) {
    std::vector<T> values;
    for (std::size_t i = 0; i < count; ++i) values.push_back(static_cast<T>(300 + 5 * std::sin(step * static_cast<double>(i))));
    return values;
}

TEST(Numbers, SmoothFieldsGetShorter) {
    EXPECT_LT(stored_bytes(bytes_of(smooth<double>(100'000, 0.0001))) * 10, 800'000u * 8);
    EXPECT_LT(stored_bytes(bytes_of(smooth<float>(100'000, 0.0001))) * 2, 400'000u);
    std::vector<std::uint32_t> counting;
    for (std::uint32_t i = 0; i < 100'000; ++i) counting.push_back(i * 7);
    EXPECT_LT(stored_bytes(bytes_of(counting)), 1000u) << "the same difference all along";
}

TEST(Numbers, RecordsAreFoundByThemselves) {
    std::vector<double> records;  // of three numbers that have nothing to do with each other
    for (int i = 0; i < 40'000; ++i) records.insert(records.end(), {1e6 + i, -3.0 * i, 0.5});
    const Bytes raw = bytes_of(records);
    EXPECT_LT(stored_bytes(raw) * 8, raw.size());
}

TEST(Numbers, EveryBitComesBack) {
    std::vector<double> values = smooth<double>(20'000, 0.001);
    std::uint64_t payload = 0x7FF8'0000'DEAD'BEEF;
    std::memcpy(&values[77], &payload, sizeof payload);
    values[78] = -0.0;
    values[79] = std::numeric_limits<double>::denorm_min();
    values[80] = -std::numeric_limits<double>::infinity();
    Bytes raw = bytes_of(values);
    EXPECT_NE(stored_bytes(raw), 0u);
    for (int more = 1; more < 16; ++more) {
        raw.push_back(std::byte(more));
        EXPECT_NE(stored_bytes(raw), 0u) << more << " bytes behind the last number";
    }
}

TEST(Numbers, AnyLengthComesBack) {
    std::mt19937_64 random(11);
    for (int round = 0; round < 500; ++round) {
        Bytes raw(1 + random() % 40'000);
        const std::size_t period = 1 + random() % 40;
        for (std::size_t i = 0; i < raw.size(); ++i) raw[i] = static_cast<std::byte>(i < period || random() % 50 == 0 ? random() : std::to_integer<unsigned>(raw[i - period]) + 1);
        (void)stored_bytes(raw);
    }
}

TEST(Numbers, EachMibHasItsOwnShapeAndNoiseAmongThemIsKept) {
    std::mt19937_64 random(14);
    Bytes raw = bytes_of(smooth<double>(1 << 17, 0.0001));
    const std::size_t one = raw.size();
    ASSERT_EQ(one, std::size_t{1} << 20);
    for (std::size_t i = 0; i < one; ++i) raw.push_back(static_cast<std::byte>(random()));
    const Bytes floats = bytes_of(smooth<float>(300'000, 0.0001));
    raw.insert(raw.end(), floats.begin(), floats.end());
    const std::uint64_t stored = stored_bytes(raw);
    EXPECT_GT(stored, one);
    EXPECT_LT(stored, one + one / 2 + floats.size() / 2);
}

TEST(Numbers, NoiseIsLeftAndNoByteBeyondTheRoomIsWritten) {
    std::mt19937_64 random(12);
    std::vector<std::uint64_t> noise(50'000);
    for (std::uint64_t& each : noise) each = random();
    EXPECT_EQ(stored_bytes(bytes_of(noise)), 0u);
    const Bytes zeros(100'000);
    for (const std::size_t room : {0u, 1u, 2u, 3u, 8u, 12u}) {
        Bytes into(room + 8, std::byte(0xAA));
        EXPECT_LE(encode_numbers(zeros, std::span(into).first(room)), room);
        for (std::size_t i = room; i < into.size(); ++i) EXPECT_EQ(into[i], std::byte(0xAA)) << room;
    }
    EXPECT_EQ(encode_numbers({}, {}), 0u);
}

TEST(Numbers, HostileBytesAreRefused) {
    const Bytes raw = bytes_of(smooth<double>(4000, 0.01));
    Bytes stored(raw.size());
    stored.resize(encode_numbers(raw, stored));
    ASSERT_FALSE(stored.empty());
    const auto code = [](const Bytes& bytes, std::size_t raw_bytes) {
        Bytes into(raw_bytes);
        return decode_numbers(bytes, into).code();
    };
    for (std::size_t length = 0; length < stored.size(); length += 1 + length / 16) EXPECT_EQ(code(Bytes(stored.begin(), stored.begin() + static_cast<std::ptrdiff_t>(length)), raw.size()), Code::corrupt) << length;
    for (const std::size_t other : {std::size_t{0}, std::size_t{1}, raw.size() - 1, raw.size() + 1}) EXPECT_EQ(code(stored, other), Code::corrupt) << other;
    for (const auto& [at, value] : {std::pair(0, 0), {3, 255}, {4, 0}, {4, 3}, {4, 16}, {5, 65}, {5, 255}}) {
        Bytes lying = stored;
        lying[static_cast<std::size_t>(at)] = static_cast<std::byte>(value);
        EXPECT_EQ(code(lying, raw.size()), Code::corrupt) << at << " " << value;
    }
    std::mt19937_64 random(13);
    for (int round = 0; round < 5000; ++round) {
        Bytes damaged = stored;
        for (std::uint64_t n = 1 + random() % 4; n > 0; --n) damaged[random() % std::min<std::size_t>(damaged.size(), 200)] ^= std::byte(1 << random() % 8);
        (void)code(damaged, raw.size());  // whatever it says, it stays within both
    }
}

}  // namespace
}  // namespace cairn
