// Arrays within a range.
#include "model/number_array.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

// A chunk of an image need not begin or end where a number does.
TEST(NumberArrays, OfARangeOnlyWholeNumbersAreTold) {
    const std::vector<NumberArray> arrays = {{3, 80, 8, true, false, 5, 0}, {90, 40, 4, false, false, 0, 0}, {200, 16, 8, true, false, 0, 0}};
    EXPECT_EQ(within(arrays, 0, 1000), arrays);
    const std::vector<NumberArray> expected = {{1, 72, 8, true, false, 5, 0}, {80, 8, 4, false, false, 0, 0}};
    EXPECT_EQ(within(arrays, 10, 91), expected);
    EXPECT_TRUE(within(arrays, 76, 13).empty()) << "less than a number of the first, and none of the second";
    EXPECT_TRUE(within(arrays, 216, 100).empty());
    EXPECT_TRUE(within(arrays, 0, 0).empty());
}

TEST(NumberArray, WhatIsToldOfBytesCanBe) {
    EXPECT_TRUE(are_sound({}, 0));
    EXPECT_TRUE(are_sound({{0, 800, 8, true, false, 10, 50, 7}, {804, 6, 2}, {810, 1, 1}}, 811));
    const std::vector<std::vector<NumberArray>> wrong = {{{0, 8, 3}}, {{0, 8, 0}}, {{0, 32, 16}}, {{0, 9, 8}}, {{0, 0, 8}}, {{0, 16, 8}, {8, 8, 8}}, {{8, 8, 8}, {0, 8, 8}}, {{UINT64_MAX - 7, 16, 8}}, {{8, UINT64_MAX - 7, 8}}, {{808, 8, 8}}};
    for (const std::vector<NumberArray>& arrays : wrong) EXPECT_FALSE(are_sound(arrays, 811)) << arrays.front().offset << " " << arrays.front().length;
}

}  // namespace
}  // namespace cairn
