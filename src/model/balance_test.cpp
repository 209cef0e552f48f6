// Shifts end everybody at the same time and leave well alone; the number of leaders settles on the fewest that lose nothing.
#include "model/balance.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace cairn {
namespace {

constexpr std::uint64_t mib = 1u << 20;

LeaderLoad load(NodeIndex leader, std::uint64_t unstarted_mib, double mib_per_s) { return {leader, unstarted_mib * mib, 0, mib_per_s * mib, false, false, 0}; }

std::optional<Shift> next_shift(std::vector<LeaderLoad> loads, std::uint64_t block_bytes, double elapsed_s, bool settled) {
    const std::vector<Shift> shifts = next_shifts(std::move(loads), block_bytes, elapsed_s, settled);
    if (shifts.empty()) return std::nullopt;
    return shifts.front();
}

TEST(Shift, NothingToDoNothingMoves) {
    EXPECT_FALSE(next_shift({}, mib, 10, true));
    EXPECT_FALSE(next_shift({load(0, 0, 10), load(1, 0, 10)}, mib, 10, true));
    EXPECT_FALSE(next_shift({load(0, 100, 10)}, mib, 10, true));                    // nobody else
    EXPECT_FALSE(next_shift({load(0, 100, 0), load(1, 100, 0)}, mib, 10, true));    // nothing measured
    EXPECT_FALSE(next_shift({load(0, 100, 10), load(1, 100, 10)}, mib, 10, true));  // all even
    EXPECT_FALSE(next_shift({load(0, 100, 10), load(1, 80, 10)}, mib, 10, true));   // not worth the trouble while both are busy
}

TEST(Shift, AnIdleLeaderTakesHalfOfWhatAnEquallyFastOneHas) {
    EXPECT_EQ(next_shift({load(0, 0, 10), load(1, 100, 10)}, mib, 10, false), (Shift{1, 0, 50 * mib}));
}

TEST(Shift, AnIdleLeaderTakesByItsRate) {
    EXPECT_EQ(next_shift({load(0, 0, 30), load(1, 100, 10)}, mib, 10, false), (Shift{1, 0, 75 * mib}));
    EXPECT_EQ(next_shift({load(0, 0, 0), load(1, 100, 10)}, mib, 10, false), (Shift{1, 0, 50 * mib}));  // not measured: as fast as the rest
}

TEST(Shift, ABusyLeaderTakesOnlyFromOneThatIsMuchSlowerAndOnceRatesHaveSettled) {
    const std::vector<LeaderLoad> loads = {load(0, 100, 10), load(1, 100, 10), load(2, 100, 1)};
    EXPECT_FALSE(next_shift(loads, mib, 10, false));
    const auto shift = next_shift(loads, mib, 10, true);
    ASSERT_TRUE(shift);
    EXPECT_EQ(shift->from, 2u);
    EXPECT_NEAR(static_cast<double>(shift->bytes / mib), 42, 1);  // all end after 300 / 21 s, when leader 0 could have written 142
}

TEST(Shift, WhatIsBegunStays) {
    std::vector<LeaderLoad> loads = {load(0, 0, 10), load(1, 0, 10)};
    loads[1].begun_bytes = 100 * mib;
    EXPECT_FALSE(next_shift(loads, mib, 10, true));
    loads[0].begun_bytes = 100 * mib;  // idle, but no sooner done than the other one
    loads[1].unstarted_bytes = mib;
    EXPECT_FALSE(next_shift(loads, mib, 10, true));
}

LeaderLoad of_part(std::uint32_t part, std::uint32_t target, std::uint64_t unstarted_mib, double mib_per_s) {
    LeaderLoad each = load(0, unstarted_mib, mib_per_s);
    each.part = part;
    each.target = target;
    return each;
}

// Of what is done one part counts, with what the card has left.
TEST(Loads, APartThatIsDoneCountsForWhatTheCardHasLeft) {
    const double most = 50.0 * mib;
    EXPECT_EQ(loads_of({of_part(0, 0, 10, 25), of_part(1, 1, 20, 25)}, most, true).size(), 2u);
    EXPECT_EQ(loads_of({of_part(0, 0, 0, 25), of_part(1, 1, 20, 50)}, most, true).size(), 1u);  // the other part has all of it
    const auto slow = loads_of({of_part(0, 0, 0, 45), of_part(1, 1, 20, 5)}, most, true);
    ASSERT_EQ(slow.size(), 2u);
    EXPECT_EQ(slow[1].part, 0u);
    EXPECT_EQ(slow[1].bytes_per_s, 45.0 * mib);
    EXPECT_EQ(loads_of({of_part(0, 0, 0, 45), of_part(1, 1, 20, 0)}, most, false).size(), 1u);  // it has just begun
    EXPECT_EQ(loads_of({of_part(0, 0, 0, 45), of_part(1, 1, 20, 0)}, most, true).size(), 2u);   // it is stuck
    const auto done = loads_of({of_part(0, 0, 0, 10), of_part(1, 1, 0, 30), of_part(2, 2, 0, 20)}, most, true);
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].part, 1u);
}

TEST(Loads, APartWithoutRoomStandsForNoOther) {
    LeaderLoad full = of_part(0, 0, 0, 40);
    full.full = true;
    const auto loads = loads_of({full, of_part(1, 1, 0, 10), of_part(2, 2, 10, 5)}, 50.0 * mib, true);
    ASSERT_EQ(loads.size(), 2u);
    EXPECT_EQ(loads[1].part, 1u);
}

// A leader whose one part lies on a slow target moves work to its other one.
TEST(Shift, ALeaderHelpsItselfInAnotherPart) {
    const auto shift = next_shift(loads_of({of_part(3, 0, 100, 5), of_part(7, 1, 0, 45)}, 50.0 * mib, true), mib, 10, true);
    ASSERT_TRUE(shift);
    EXPECT_EQ(shift->from, shift->to);
    EXPECT_EQ(shift->from_part, 3u);
    EXPECT_EQ(shift->to_part, 7u);
    EXPECT_EQ(shift->bytes, 90 * mib);
}

TEST(Shift, WhoTookAMomentAgoGivesNone) {
    std::vector<LeaderLoad> loads = {load(0, 0, 10), load(1, 100, 0)};
    EXPECT_EQ(next_shift(loads, mib, 10, true)->from, 1u);
    EXPECT_FALSE(next_shift(loads, mib, 10, false));  // it may just have begun
    loads[1].took = true;
    EXPECT_FALSE(next_shift(loads, mib, 10, true));
}

TEST(Shift, WhoeverIsMovingIsLeftAlone) {
    std::vector<LeaderLoad> loads = {load(0, 0, 10), load(1, 100, 10), load(2, 90, 10)};
    loads[1].moving = true;
    EXPECT_EQ(next_shift(loads, mib, 10, false)->from, 2u);
    loads[0].full = true;
    EXPECT_FALSE(next_shift(loads, mib, 10, false));
    loads[0] = {0, 0, 0, 10.0 * mib, true, false, 0};
    EXPECT_FALSE(next_shift(loads, mib, 10, false));
}

TEST(Shift, TargetsStayEqualUnlessItIsWorthIt) {
    std::vector<LeaderLoad> loads = {load(0, 0, 10), load(1, 4, 10), load(2, 0, 10), load(3, 6, 10)};
    for (NodeIndex i : {2u, 3u}) loads[i].target = 1;
    EXPECT_EQ(next_shift(loads, mib, 10, false), (Shift{1, 0, 2 * mib}));  // 0.2 s behind, on the same target
    loads[1].moving = loads[3].moving = true;
    EXPECT_FALSE(next_shift(loads, mib, 10, false));
    loads = {load(0, 0, 10), load(1, 4, 10)};
    loads[1].target = 1;
    EXPECT_FALSE(next_shift(loads, mib, 10, false));
    EXPECT_TRUE(next_shift(loads, mib, 1, false));  // of a second it is much
    loads[1].unstarted_bytes = 40 * mib;
    EXPECT_EQ(next_shift(loads, mib, 10, false), (Shift{1, 0, 20 * mib}));
}

// Applied until nothing moves, any loads end together, to a block a leader or to what is not worth it.
TEST(Shift, RepeatedEndsEverybodyTogether) {
    std::mt19937_64 random(3);
    for (int round = 0; round < 300; ++round) {
        std::vector<LeaderLoad> loads;
        const auto count = 2 + random() % 9;
        double bytes = 0, rates = 0;
        for (NodeIndex i = 0; i < count; ++i) {
            loads.push_back(load(i, i == 0 ? 0 : random() % 2000, 1.0 + static_cast<double>(random() % 50)));
            bytes += static_cast<double>(loads.back().unstarted_bytes);
            rates += loads.back().bytes_per_s;
        }
        int shifts = 0;
        for (; shifts < 100; ++shifts) {
            const auto shift = next_shift(loads, mib, 10, true);
            if (!shift) break;
            ASSERT_GE(shift->bytes, mib);
            ASSERT_LE(shift->bytes, loads[shift->from].unstarted_bytes);
            loads[shift->from].unstarted_bytes -= shift->bytes;
            loads[shift->to].unstarted_bytes += shift->bytes;
        }
        EXPECT_LT(shifts, 100);
        for (const LeaderLoad& l : loads)
            EXPECT_LE(static_cast<double>(l.unstarted_bytes) / l.bytes_per_s, 2 * bytes / rates + 1.5) << "leader " << l.leader << " of round " << round;
    }
}

TEST(LeaderChoice, SettlesOnTheFewestThatLoseNothing) {
    // Four cards saturate storage.
    const auto flush_s = [](std::uint32_t leaders) { return 1000.0 / std::min(45.0 * leaders, 180.0); };
    LeaderChoice choice;
    EXPECT_EQ(choice.next(1, 8), 8u);
    int others = 0;
    for (int flush = 0; flush < 60; ++flush) {
        const std::uint32_t leaders = choice.next(1, 8);
        if (flush > 7) others += leaders != 4;
        choice.record(leaders, 1000, flush_s(leaders));
    }
    EXPECT_EQ(choice.next(1, 8), 4u);
    EXPECT_LE(others, 3);  // it looks again now and then
    EXPECT_EQ(choice.next(8, 8), 8u);  // as many files
}

TEST(LeaderChoice, EachPartHasAsManyLeadersAndNoTryCostsMuch) {
    const auto second = [](std::uint32_t files, std::uint32_t most) {
        LeaderChoice choice;
        EXPECT_EQ(choice.next(files, most), most);
        choice.record(most, 1000, 10);  // cold
        EXPECT_EQ(choice.next(files, most), most);
        choice.record(most, 1000, 1);
        return choice.next(files, most);
    };
    EXPECT_EQ(second(1, 8), 7u);
    EXPECT_EQ(second(2, 8), 6u);
    EXPECT_EQ(second(3, 8), 6u);
    EXPECT_EQ(second(4, 8), 8u);  // four would be half
    EXPECT_EQ(second(8, 8), 8u);
    EXPECT_EQ(second(16, 8), 8u);
    EXPECT_EQ(second(1, 1), 1u);
    EXPECT_EQ(second(512, 4096), 3584u);
}

TEST(LeaderChoice, AllWriteWhereEveryCardCounts) {
    LeaderChoice choice;
    int fewer = 0;
    for (int flush = 0; flush < 40; ++flush) {
        const std::uint32_t leaders = choice.next(1, 8);
        fewer += leaders != 8;
        EXPECT_GE(leaders, 7u);  // a try costs an eighth
        choice.record(leaders, 1000, 1000.0 / (22.0 * leaders));
    }
    EXPECT_EQ(fewer, 1);
    EXPECT_EQ(choice.next(1, 8), 8u);
    EXPECT_EQ(LeaderChoice().next(1, 4096), 4096u);
}

TEST(Loads, OfOneCardEndTogether) {
    const LeaderLoad large{0, 80, 10, 12, false, false, 1, 1, false}, small{0, 0, 10, 12, false, false, 0, 0, false}, done{0, 0, 0, 15, false, false, 2, 2, false};
    const std::vector<LeaderLoad> loads = loads_of_card({large, small, done});
    ASSERT_EQ(loads.size(), 2u);  // no room for the one that is done
    EXPECT_DOUBLE_EQ(loads[0].bytes_per_s, 24 * 0.9);
    EXPECT_DOUBLE_EQ(loads[1].bytes_per_s, 24 * 0.1);
    ASSERT_EQ(loads_of_card({done}).size(), 1u);
    EXPECT_EQ(loads_of_card({done})[0].bytes_per_s, 15);
}

TEST(LeaderChoice, KeepsWhatEachHoldsWhereCardsDecide) {
    LeaderChoice choice;
    EXPECT_FALSE(choice.keep_own());
    choice.record_cards(1, 0);
    EXPECT_TRUE(choice.keep_own());
    choice.record_cards(0, 0);
    choice.record_cards(1, 1);
    EXPECT_TRUE(choice.keep_own());
    choice.record_cards(1, 2);
    EXPECT_FALSE(choice.keep_own());
    choice.record(8, 1000, 1);  // the first flush says nothing
    choice.record(8, 1000, 1);
    EXPECT_LT(choice.next(1, 8), 8u);
    choice.record_cards(3, 0);
    for (int flush = 0; flush < 9; ++flush) {
        EXPECT_EQ(choice.next(1, 8), 8u);  // fewer cards would be slower
        choice.record(8, 1000, 1);
    }
    choice.record_cards(0, 1);
    EXPECT_EQ(choice.next(1, 8), 8u);  // another plan: measured anew
}

TEST(Shift, EachLeaderIsInOneShiftAtATime) {
    // Two targets, on each one leader far behind and one idle; and a third idle one that finds nobody left who could give.
    std::vector<LeaderLoad> loads = {load(0, 100, 10), load(1, 0, 10), load(2, 100, 10), load(3, 0, 10), load(4, 0, 10)};
    for (std::size_t i : {2, 3, 4}) loads[i].target = 1;
    const std::vector<Shift> shifts = next_shifts(loads, mib, 1, true);
    ASSERT_EQ(shifts.size(), 2u);
    EXPECT_EQ(shifts[0].from, 0u);
    EXPECT_EQ(shifts[0].to, 1u);
    EXPECT_EQ(shifts[1].from, 2u);
    EXPECT_TRUE(shifts[1].to == 3 || shifts[1].to == 4);
}

}  // namespace
}  // namespace cairn
