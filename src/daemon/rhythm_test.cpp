// The rule by itself, on times that a test gives.
#include "daemon/rhythm.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

constexpr Nanos ms = millisecond, lead = 100 * ms;

TEST(Rhythm, ExpectsTheNextOneWhenTheLastFewAgree) {
    Rhythm rhythm;
    rhythm.flush_begins(0);
    for (const Nanos at : {1000 * ms, 2010 * ms}) rhythm.exchange_begins(at);
    EXPECT_FALSE(rhythm.interval());
    EXPECT_FALSE(rhythm.expects_one(3000 * ms, lead));
    rhythm.exchange_begins(3000 * ms);
    ASSERT_TRUE(rhythm.interval());
    EXPECT_NEAR(static_cast<double>(*rhythm.interval()), 1000e6, 20e6);
    EXPECT_FALSE(rhythm.expects_one(3500 * ms, lead));
    EXPECT_TRUE(rhythm.expects_one(3950 * ms, lead));
    EXPECT_TRUE(rhythm.expects_one(4100 * ms, lead));   // a little late
    EXPECT_FALSE(rhythm.expects_one(4300 * ms, lead));  // it does not come
    EXPECT_FALSE(rhythm.expects_one(5000 * ms, lead));
}

TEST(Rhythm, ExpectsNothingOfWhatIsNotRegular) {
    Rhythm rhythm;
    rhythm.flush_begins(0);
    Nanos at = 0;
    for (const Nanos pause : {1000 * ms, 300 * ms, 2000 * ms, 700 * ms, 1500 * ms}) {
        rhythm.exchange_begins(at += pause);
        EXPECT_FALSE(rhythm.expects_one(at + 900 * ms, lead));
    }
}

TEST(Rhythm, OneIntervalThatWasNotTheUsualIsForgotten) {
    Rhythm rhythm;
    rhythm.flush_begins(0);
    Nanos at = 0;
    for (const Nanos pause : {1000 * ms, 1000 * ms, 1000 * ms, 5000 * ms}) rhythm.exchange_begins(at += pause);
    EXPECT_FALSE(rhythm.interval());
    for (int i = 0; i < 5; ++i) rhythm.exchange_begins(at += 1000 * ms);
    EXPECT_EQ(rhythm.interval(), 1000 * ms);
}

TEST(Rhythm, OneOfFourMayBeAnother) {
    Rhythm rhythm;
    rhythm.flush_begins(0);
    Nanos at = 1000 * ms;
    rhythm.exchange_begins(at);
    for (const Nanos pause : {1700 * ms, 1000 * ms, 1010 * ms}) {
        rhythm.exchange_begins(at += pause);
        EXPECT_FALSE(rhythm.interval());
    }
    rhythm.exchange_begins(at += 990 * ms);
    EXPECT_EQ(rhythm.interval(), 1000 * ms);
    rhythm.exchange_begins(at += 300 * ms);
    EXPECT_FALSE(rhythm.interval()) << "two others of five";
}

TEST(Rhythm, TheFirstExchangeOfAFlushComesWhenTheLastFlushsDid) {
    Rhythm rhythm;
    rhythm.flush_begins(10'000 * ms);
    EXPECT_FALSE(rhythm.expects_one(10'790 * ms, lead));
    for (const Nanos at : {10'800 * ms, 11'800 * ms, 12'800 * ms}) rhythm.exchange_begins(at);
    rhythm.flush_begins(60'000 * ms);
    EXPECT_EQ(rhythm.interval(), 1000 * ms);  // what lay between the flushes is no interval
    EXPECT_FALSE(rhythm.expects_one(60'500 * ms, lead));
    EXPECT_TRUE(rhythm.expects_one(60'750 * ms, lead));
    rhythm.exchange_begins(60'850 * ms);
    EXPECT_FALSE(rhythm.expects_one(61'500 * ms, lead));
    EXPECT_TRUE(rhythm.expects_one(61'800 * ms, lead));
}

}  // namespace
}  // namespace cairn
