// Efforts key by key: what is left as it is, what is told of each, and that all of it comes back.
#include "codec/by_key.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "codec/codec.hpp"

namespace cairn {
namespace {

constexpr std::size_t array_bytes = 512 << 10;
constexpr std::uint32_t smooth_key = 7, rough_key = 9;

std::uint64_t tick() {
    static std::uint64_t now = 0;
    return now += 10;
}

// A smooth_key array, one of which half of each number is noise, and bytes that nothing describes.
struct TwoKeys {
    Bytes raw = Bytes(2 * array_bytes + 4096);
    std::vector<NumberArray> arrays;
    TwoKeys() {
        std::mt19937_64 random(5);
        for (std::size_t i = 0; i < array_bytes / 8; ++i) {
            const double value = std::sin(static_cast<double>(i) * 1e-3);
            std::memcpy(&raw[8 * i], &value, 8);
            const std::uint64_t bits = 0x4000'0000'0000'0000 | (random() & 0xFFFF'FFFF);
            std::memcpy(&raw[array_bytes + 8 * i], &bits, 8);
        }
        for (const std::uint32_t key : {smooth_key, rough_key}) {
            NumberArray array;
            array.offset = key == smooth_key ? 0 : array_bytes;
            array.length = array_bytes;
            array.width = 8;
            array.is_float = true;
            array.key = key;
            arrays.push_back(array);
        }
    }
    // As many bytes as it takes.
    std::size_t encoded(Codec codec, const KeyEfforts& efforts, ByKey& keys, std::size_t room) const {
        keys = ByKey{&efforts, tick};
        Bytes stored(room);
        stored.resize(encode(codec, raw, arrays, stored, nullptr, &keys));
        if (stored.empty()) return 0;
        Bytes back(raw.size(), std::byte{0xAA});
        EXPECT_TRUE(decode(codec, stored, back).ok());
        EXPECT_TRUE(back == raw);
        return stored.size();
    }
};

const KeyEncoded* row_of(const ByKey& keys, std::uint32_t key) {
    const auto found = std::find_if(keys.seen.begin(), keys.seen.end(), [&](const KeyEncoded& each) { return each.key == key; });
    return found == keys.seen.end() ? nullptr : &*found;
}

TEST(ByKey, EachKeyIsToldOfByItself) {
    const TwoKeys run;
    ByKey keys;
    const std::size_t made = run.encoded(Codec::planes, {}, keys, run.raw.size());
    ASSERT_EQ(keys.seen.size(), 2u);
    std::uint64_t stored = 0;
    for (const std::uint32_t key : {smooth_key, rough_key}) {
        const KeyEncoded* const row = row_of(keys, key);
        ASSERT_TRUE(row);
        EXPECT_EQ(row->effort, Effort::fast);
        EXPECT_EQ(row->raw_bytes, array_bytes);
        EXPECT_EQ(row->took_ns, 20u) << "two stretches, each from one look at the clock to the next";
        stored += row->stored_bytes;
    }
    EXPECT_LT(row_of(keys, smooth_key)->stored_bytes, row_of(keys, rough_key)->stored_bytes);
    EXPECT_LT(row_of(keys, rough_key)->stored_bytes, array_bytes);
    EXPECT_LE(stored, made);
    EXPECT_GE(stored + 4096 + 64, made);
}

TEST(ByKey, AKeyThatIsNotWorthItIsLeftAsItIs) {
    const TwoKeys run;
    ByKey all, some;
    const std::size_t alike = run.encoded(Codec::planes, {}, all, run.raw.size());
    const std::size_t without = run.encoded(Codec::planes, {{rough_key, Effort::none}}, some, run.raw.size());
    EXPECT_EQ(row_of(some, rough_key)->effort, Effort::none);
    EXPECT_GE(row_of(some, rough_key)->stored_bytes, array_bytes);
    EXPECT_LE(row_of(some, rough_key)->stored_bytes, array_bytes + 64);
    EXPECT_EQ(row_of(some, smooth_key)->stored_bytes, row_of(all, smooth_key)->stored_bytes);
    EXPECT_EQ(without - alike, row_of(some, rough_key)->stored_bytes - row_of(all, rough_key)->stored_bytes);
}

TEST(ByKey, AKeyMayBeWorkedOnHarderOrLess) {
    const TwoKeys run;
    ByKey fast, small, mixed;
    run.encoded(Codec::planes, {}, fast, run.raw.size());
    run.encoded(Codec::planes_small, {}, small, run.raw.size());
    for (const Codec codec : {Codec::planes, Codec::planes_small}) {
        const KeyEffort other{codec == Codec::planes ? smooth_key : rough_key, codec == Codec::planes ? Effort::small : Effort::fast};
        run.encoded(codec, {other}, mixed, run.raw.size());
        EXPECT_EQ(row_of(mixed, smooth_key)->effort, Effort::small);
        EXPECT_EQ(row_of(mixed, rough_key)->effort, Effort::fast);
        EXPECT_EQ(row_of(mixed, smooth_key)->stored_bytes, row_of(small, smooth_key)->stored_bytes);
        EXPECT_EQ(row_of(mixed, rough_key)->stored_bytes, row_of(fast, rough_key)->stored_bytes);
    }
}

TEST(ByKey, ARunThatDoesNotFitSavesNothingOfAnyKey) {
    const TwoKeys run;
    ByKey keys;
    EXPECT_EQ(run.encoded(Codec::planes, {{smooth_key, Effort::none}, {rough_key, Effort::none}}, keys, run.raw.size() - run.raw.size() / 16), 0u);
    ASSERT_FALSE(keys.seen.empty());
    EXPECT_EQ(run.encoded(Codec::planes, {}, keys, array_bytes / 2), 0u);
    ASSERT_FALSE(keys.seen.empty());
    for (const KeyEncoded& each : keys.seen) EXPECT_EQ(each.stored_bytes, each.raw_bytes);
}

TEST(ByKey, WhatIsStoredAsWordsIsOfNoKey) {
    TwoKeys run;
    std::mt19937_64 random(6);
    Bytes cell(24 << 10);
    for (std::byte& byte : cell) byte = static_cast<std::byte>(random());
    for (std::size_t at = 0; at < run.raw.size(); at += cell.size()) std::copy_n(cell.begin(), std::min(cell.size(), run.raw.size() - at), run.raw.begin() + static_cast<std::ptrdiff_t>(at));
    ByKey keys;
    EXPECT_LT(run.encoded(Codec::planes, {}, keys, run.raw.size()), run.raw.size() / 8);
    EXPECT_TRUE(keys.seen.empty());
}

TEST(ByKey, OfAKeyThatIsNotNamedTheCodecSaysTheEffort) {
    const KeyEfforts efforts{{3, Effort::none}, {5, Effort::small}};
    EXPECT_EQ(effort_of(efforts, 3, Effort::fast), Effort::none);
    EXPECT_EQ(effort_of(efforts, 5, Effort::fast), Effort::small);
    for (const std::uint32_t key : {0u, 1u, 4u, 6u}) EXPECT_EQ(effort_of(efforts, key, Effort::fast), Effort::fast);
    const KeyEfforts of_all_else{{0, Effort::none}};
    EXPECT_EQ((ByKey{&of_all_else}.of(0, Effort::small)), Effort::small) << "arrays without a key are nobody's";
    EXPECT_EQ(effort_of(Codec::planes), Effort::fast);
    EXPECT_EQ(effort_of(Codec::planes_small), Effort::small);
    EXPECT_EQ(effort_of(Codec::zero_runs), std::nullopt);
}

}  // namespace
}  // namespace cairn
