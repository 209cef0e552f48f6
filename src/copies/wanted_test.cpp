// What is wanted of an image: against a look at every range, and how few runs are left to look at.
#include "copies/wanted.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace cairn {
namespace {

TEST(Wanted, NoRangeIsTheWholeImage) {
    EXPECT_TRUE(Wanted({}).touches(0, 1));
    EXPECT_TRUE(Wanted({}).touches(1u << 30, 4096));
}

TEST(Wanted, RangesOfNoBytesAreNotTheWholeImage) { EXPECT_FALSE(Wanted({{5, 0}}).touches(0, 4096)); }

TEST(Wanted, AnswersWhatALookAtEveryRangeWould) {
    std::mt19937_64 random(7);
    for (int round = 0; round < 200; ++round) {
        std::vector<ImageRange> ranges;
        for (std::uint64_t i = 0, count = 1 + random() % 12; i < count; ++i) ranges.push_back({random() % 200, random() % 20});
        const Wanted wanted(ranges);
        for (std::uint64_t offset = 0; offset < 230; ++offset)
            for (const std::uint64_t length : {1u, 7u, 64u}) {
                const bool expected = std::any_of(ranges.begin(), ranges.end(), [&](const ImageRange& range) {
                    return range.length != 0 && range.offset < offset + length && offset < range.offset + range.length;
                });
                ASSERT_EQ(wanted.touches(offset, length), expected) << offset << "+" << length;
            }
    }
}

TEST(Wanted, BlocksAreThoseThatAreTouched) {
    std::mt19937_64 random(8);
    constexpr std::uint64_t block = 16;
    for (int round = 0; round < 300; ++round) {
        std::vector<ImageRange> ranges;
        for (std::uint64_t i = 0, count = 1 + random() % 6; i < count; ++i) ranges.push_back({random() % 300, random() % 40});
        const Wanted wanted(ranges);
        const std::uint64_t offset = random() % 10 * block, length = 1 + random() % 200;
        std::vector<bool> expected, got;
        for (std::uint64_t at = 0; at < length; at += block) expected.push_back(wanted.touches(offset + at, std::min(block, length - at)));
        got.assign(expected.size(), false);
        std::uint64_t end = 0;
        for (const ImageRange& run : wanted.blocks_in(offset, length, block)) {
            EXPECT_TRUE(end == 0 || run.offset > end) << "with gaps between them";
            end = run.offset + run.length;
            EXPECT_EQ((run.offset - offset) % block, 0u);
            EXPECT_TRUE((end - offset) % block == 0 || end == offset + length);
            ASSERT_LE(end, offset + length);
            for (std::uint64_t at = run.offset - offset; at < end - offset; at += block) got[at / block] = true;
        }
        ASSERT_EQ(got, expected) << round;
    }
    EXPECT_EQ(Wanted({}).blocks_in(32, 100, block), (std::vector<ImageRange>{{32, 100}}));
}

TEST(Wanted, WhatTouchesIsOneRun) {
    std::vector<ImageRange> regions;
    for (std::uint64_t i = 0; i < 1000; ++i) regions.push_back({64 * (999 - i), 64});
    EXPECT_EQ(Wanted(regions).runs(), (std::vector<ImageRange>{{0, 64'000}}));
}

}  // namespace
}  // namespace cairn
