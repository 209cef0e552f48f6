#include "tune/statistics.hpp"

#include <gtest/gtest.h>

#include <random>

namespace cairn::tune {
namespace {

TEST(Statistics, MedianAndSpread) {
    EXPECT_EQ(median({}), 0);
    EXPECT_EQ(median({3}), 3);
    EXPECT_EQ(median({4, 1, 2}), 2);
    EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
    EXPECT_EQ(spread({5}), 0);
    EXPECT_NEAR(spread({1, 2, 3, 4, 100}), 1.4826, 1e-9);  // one that is far off does not count
}

TEST(Statistics, AnIntervalNeedsSixValues) {
    EXPECT_FALSE(median_interval({1, 2, 3, 4, 5}).known);
    const Interval six = median_interval({6, 1, 5, 2, 4, 3});
    ASSERT_TRUE(six.known);
    EXPECT_EQ(six.low, 1);
    EXPECT_EQ(six.high, 6);
    std::vector<double> twenty;
    for (int i = 1; i <= 20; ++i) twenty.push_back(i);
    const Interval wide = median_interval(twenty);  // the table of the sign test: 6th and 15th
    EXPECT_EQ(wide.low, 6);
    EXPECT_EQ(wide.high, 15);
}

TEST(Statistics, TheIntervalHoldsTheMedianAsOftenAsItSays) {
    std::mt19937 random(7);
    std::lognormal_distribution<double> skewed(0, 1);  // its median is 1
    int held = 0;
    for (int trial = 0; trial < 2000; ++trial) {
        std::vector<double> values;
        for (int i = 0; i < 9; ++i) values.push_back(skewed(random));
        const Interval interval = median_interval(values);
        held += interval.low <= 1 && 1 <= interval.high;
    }
    EXPECT_GE(held, 1900 - 30);
}

}  // namespace
}  // namespace cairn::tune
