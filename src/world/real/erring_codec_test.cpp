// A codec that errs once, at whichever call: the library makes something valid of other bytes. What is stored is nevertheless what comes back.
//
// An error in a million outputs would hardly ever meet a test; here each single call of a run errs in its turn.
#include <gtest/gtest.h>
#include <zstd.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "world/real/cpu.hpp"
#include "world/real/test_world.hpp"

namespace cairn {
namespace {

std::atomic<std::uint64_t> calls{0}, errs_at{0};  // 0: at none

// What the library gets: with one bit turned around where it is to err.
class Input {
  public:
    Input(const void* from, std::size_t bytes) : from_(from) {
        if (++calls != errs_at || bytes == 0) return;
        other_.assign(static_cast<const std::byte*>(from), static_cast<const std::byte*>(from) + bytes);
        other_[bytes / 2] ^= std::byte{4};
        from_ = other_.data();
    }
    const void* data() const { return from_; }

  private:
    const void* from_;
    Bytes other_;
};

}  // namespace
}  // namespace cairn

// The linker puts these in the library's place (--wrap), and gives them the library's own by another name.
extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
std::size_t __real_ZSTD_compress2(ZSTD_CCtx* by, void* into, std::size_t room, const void* from, std::size_t bytes);
std::size_t __wrap_ZSTD_compress2(ZSTD_CCtx* by, void* into, std::size_t room, const void* from, std::size_t bytes) {
    return __real_ZSTD_compress2(by, into, room, cairn::Input(from, bytes).data(), bytes);
}
std::size_t __real_ZSTD_compressCCtx(ZSTD_CCtx* by, void* into, std::size_t room, const void* from, std::size_t bytes, int level);
std::size_t __wrap_ZSTD_compressCCtx(ZSTD_CCtx* by, void* into, std::size_t room, const void* from, std::size_t bytes, int level) {
    return __real_ZSTD_compressCCtx(by, into, room, cairn::Input(from, bytes).data(), bytes, level);
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
}

namespace cairn {
namespace {

Bytes bytes_of(const std::vector<double>& values) {
    Bytes bytes(values.size() * sizeof(double));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
}

// A wave that repeats itself: its planes have words as well as values.
Bytes waves(std::size_t count) {
    std::vector<double> values;
    for (std::size_t i = 0; i < count; ++i) values.push_back(2 + std::sin(0.01 * static_cast<double>(i % 500)));
    return bytes_of(values);
}

// Of 13 bytes: a number that grows, a counter and a kind.
Bytes records(std::size_t count) {
    Bytes raw;
    for (std::size_t i = 0; i < count; ++i) {
        const double value = 2 + std::sin(1e-3 * static_cast<double>(i % 700));
        const auto counter = static_cast<std::int32_t>(i / 3);
        std::array<std::byte, 13> record;
        std::memcpy(record.data(), &value, sizeof value);
        std::memcpy(&record[8], &counter, sizeof counter);
        record[12] = static_cast<std::byte>(i % 7 % 4);
        raw.insert(raw.end(), record.begin(), record.end());
    }
    return raw;
}

// Rows of noise, each one of a few: nothing but that they were there already makes them shorter.
Bytes rows(std::size_t kinds, std::size_t count) {
    std::mt19937_64 random(7);
    std::vector<Bytes> kind(kinds, Bytes(2048));
    for (Bytes& row : kind)
        for (std::byte& each : row) each = static_cast<std::byte>(random());
    Bytes raw;
    for (std::size_t i = 0; i < count; ++i) {
        const Bytes& row = kind[i < kinds ? i : random() % kinds];
        raw.insert(raw.end(), row.begin(), row.end());
    }
    return raw;
}

struct Encoder {
    std::unique_ptr<Loop> loop = test::make_loop();
    RealCpu cpu{*loop, 1};
    Codec codec = Codec::planes;
    std::vector<NumberArray> known = {};

    // As it is stored; none: raw. calls: how many there were of the library.
    Bytes stored(const Bytes& raw, std::uint64_t errs) {
        calls = 0;
        errs_at = errs;
        const Slice into = Slice::of(Bytes(raw.size() - raw.size() / 16));
        const Result<Encoded> made = loop->run(cpu.encode(Coding(codec), Slice::of(raw), BaseBytes(), [this] { return known; }, into, loop->in(test::patience)));
        errs_at = 0;
        EXPECT_TRUE(made.ok());
        return Bytes(into.data(), into.data() + (made.ok() ? made->bytes : 0));
    }
    Bytes back(const Bytes& stored, std::size_t bytes) {
        const Slice into = Slice::of(Bytes(bytes));
        const Status decoded = loop->run(cpu.decode(codec, Slice::of(stored), Slice(), into, loop->in(test::patience)));
        EXPECT_TRUE(decoded.ok()) << decoded.to_string();
        return Bytes(into.data(), into.data() + bytes);
    }
};

void expect_all_comes_back(Encoder encoder, const Bytes& raw) {
    const Bytes right = encoder.stored(raw, 0);
    ASSERT_FALSE(right.empty());
    const std::uint64_t all = calls;
    unsigned longer = 0;  // an error costs room
    for (std::uint64_t call = 1; call <= all; ++call) {
        const Bytes stored = encoder.stored(raw, call);
        longer += stored.empty() || stored.size() > right.size();
        EXPECT_TRUE(stored.empty() || encoder.back(stored, raw.size()) == raw) << "an error in call " << call << " of " << all << " is stored";
    }
    EXPECT_GT(longer, 0u) << "no call of " << all << " made anything of what is stored";
}

TEST(ErringCodec, OfNumbersNoErrorIsStored) { expect_all_comes_back({.codec = Codec::numbers}, waves(20'000)); }

TEST(ErringCodec, OfArraysNoErrorIsStored) {
    const Bytes raw = waves(20'000);
    for (const Codec codec : {Codec::planes, Codec::planes_small}) expect_all_comes_back({.codec = codec, .known = {{0, raw.size(), 8, true, false, 0, 0}}}, raw);
}

TEST(ErringCodec, OfRecordsNoErrorIsStored) {
    for (const Codec codec : {Codec::planes, Codec::planes_small}) expect_all_comes_back({.codec = codec}, records(12'000));
}

TEST(ErringCodec, OfWordsNoErrorIsStored) { expect_all_comes_back({}, rows(20, 200)); }

}  // namespace
}  // namespace cairn
