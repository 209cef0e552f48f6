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

TEST(Wanted, UnitsAreThoseThatAreTouched) {
    std::mt19937_64 random(8);
    constexpr std::uint64_t block = 16;
    for (int round = 0; round < 500; ++round) {
        std::vector<ImageRange> ranges;
        for (std::uint64_t i = 0, count = 1 + random() % 6; i < count; ++i) ranges.push_back({random() % 300, random() % 40});
        const Wanted wanted(ranges);
        const std::uint64_t offset = random() % 160, length = 1 + random() % 200, bytes_max = block * (1 + random() % 4);
        std::vector<std::uint64_t> cuts;
        for (std::uint64_t at = 0; (at += 1 + random() % 60) < 400;) cuts.push_back(at);
        const Units units(block, offset, cuts);
        const std::vector<std::uint64_t> ends = unit_ends(units, length);
        std::vector<bool> expected, got(ends.size(), false);
        for (std::size_t i = 0, begin = 0; i < ends.size(); begin = ends[i++]) expected.push_back(wanted.touches(offset + begin, ends[i] - begin));
        std::uint64_t end = 0;
        for (const ImageRange& run : wanted.units_in(units, length, bytes_max)) {
            ASSERT_GE(run.offset, end);
            ASSERT_TRUE(run.offset != end || end == offset || end % block == 0) << "what is read on from there is read from a block on";
            ASSERT_LE(run.length, bytes_max);
            end = run.offset + run.length;
            for (std::size_t i = 0, begin = 0; i < ends.size(); begin = ends[i++]) {
                const bool inside = offset + begin >= run.offset && offset + ends[i] <= end;
                ASSERT_TRUE(inside || offset + ends[i] <= run.offset || offset + begin >= end) << "whole units";
                if (inside) got[i] = true;
            }
        }
        ASSERT_EQ(got, expected) << round;
    }
    EXPECT_EQ(Wanted({}).units_in({16, 32, {}}, 100, 128), (std::vector<ImageRange>{{32, 100}}));
    EXPECT_EQ(Wanted({}).units_in(16, 0, 128), std::vector<ImageRange>());
    EXPECT_EQ(Wanted({{1005, 3000}}).units_in({4096, 0, {1000, 4010}}, 9000, 8192), (std::vector<ImageRange>{{1000, 3010}})) << "one region, and no byte of another";
}

TEST(Wanted, WhatTouchesIsOneRun) {
    std::vector<ImageRange> regions;
    for (std::uint64_t i = 0; i < 1000; ++i) regions.push_back({64 * (999 - i), 64});
    EXPECT_EQ(Wanted(regions).runs(), (std::vector<ImageRange>{{0, 64'000}}));
}

}  // namespace
}  // namespace cairn
