#include "model/card.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

// Four seconds, of which it sends for two: writes of a quarter second each.
Card seen(std::uint64_t beside_per_s, std::uint64_t alone_per_s, std::uint64_t sent_per_s) {
    CardUse use;
    use.sending(0, +1);
    for (int i = 1; i <= 16; ++i) {
        const double now = i / 4.0;
        use.wrote(now, (i <= 8 ? beside_per_s : alone_per_s) / 4);
        if (i <= 8) use.sent(sent_per_s / 4);
        if (i == 8) use.sending(now, -1);
    }
    return use.seen();
}

TEST(CardUse, IsFullWhenSendingTakesFromWriting) {
    EXPECT_EQ(seen(12'000'000, 24'000'000, 12'000'000), Card::full);
    EXPECT_EQ(seen(16'000'000, 24'000'000, 8'000'000), Card::full);
    EXPECT_EQ(seen(22'000'000, 23'000'000, 20'000'000), Card::has_room);
    EXPECT_EQ(seen(22'000'000, 12'000'000, 20'000'000), Card::has_room);  // the target got slower
    EXPECT_EQ(seen(20'000'000, 24'000'000, 12'000'000), Card::unknown);
    EXPECT_EQ(seen(12'000'000, 24'000'000, 0), Card::unknown);
    CardUse brief;
    brief.sending(0, +1);
    brief.wrote(0.5, 1);
    brief.sent(1'000'000);
    brief.sending(1, -1);
    brief.wrote(4, 1'000'000'000);
    EXPECT_EQ(brief.seen(), Card::unknown);
}

constexpr std::uint64_t block = 1000;

TEST(Portions, GrowWhileTheCardHasRoomForBothAndEndWhereItHasNot) {
    Portions roomy;  // a slow target: writes 2 MB/s, sends 40
    EXPECT_EQ(roomy.allowed(2e6, block), 1'000'000u);
    std::uint64_t written = 50, sum = 0;
    for (int i = 0; i < 5; ++i) {
        const std::uint64_t portion = roomy.allowed(2e6, block);
        roomy.given(portion, portion);
        EXPECT_EQ(roomy.allowed(2e6, block), 0u);  // one at a time
        roomy.sending(written);
        EXPECT_FALSE(roomy.sent(portion / 2, written += portion / 40));
        EXPECT_TRUE(roomy.sent(portion - portion / 2, written += portion / 40));
        sum += portion;
    }
    EXPECT_GT(sum, 250'000'000u);
    Portions full;  // the card is shared by halves
    written = 0;
    sum = 0;
    for (int i = 0; i < 30; ++i) {
        const std::uint64_t portion = full.allowed(20e6, block);
        if (portion == 0) break;
        full.given(portion, portion);
        full.sending(written);
        EXPECT_TRUE(full.sent(portion, written += portion));
        sum += portion;
    }
    EXPECT_LT(sum, 20'000'000u);
    EXPECT_EQ(full.allowed(20e6, block), 0u);
}

TEST(Portions, HaveNoBoundWhereNothingIsWritten) {
    Portions stuck;
    EXPECT_EQ(stuck.allowed(0, block), UINT64_MAX);
    stuck.given(0, UINT64_MAX);  // had nothing
    EXPECT_EQ(stuck.allowed(0, block), UINT64_MAX);
    stuck.given(1000, UINT64_MAX);
    EXPECT_FALSE(stuck.sent(1000, 0));  // planned data that were under way before the portion was asked for
    stuck.sending(0);
    EXPECT_TRUE(stuck.sent(1000, 0));
    EXPECT_GE(stuck.allowed(0, block), 1'000'000'000'000'000'000u);
}

// A write that stands still for long makes the rate tend to nothing: what waits behind it must still get away.
TEST(Portions, BeginWithSomeBlocksHoweverSlowTheWrites) {
    for (const double bytes_per_s : {1e-3, 1.0, 900.0}) {
        Portions stalled;
        std::uint64_t sum = 0, portions = 0;
        for (; sum < 10'000'000'000 / block * block && portions < 20; ++portions) {
            const std::uint64_t portion = stalled.allowed(bytes_per_s, block) / block * block;
            ASSERT_GE(portion, block);
            stalled.given(portion, portion);
            stalled.sending(sum);
            EXPECT_TRUE(stalled.sent(portion, sum));  // nothing was written meanwhile
            sum += portion;
        }
        EXPECT_LT(portions, 20u);
    }
}

}  // namespace
}  // namespace cairn
