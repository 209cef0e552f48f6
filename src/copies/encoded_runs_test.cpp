// What encoded runs take together: never more than the bound, but for one that is alone.
#include "copies/encoded_runs.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "world/sim/simulation.hpp"

namespace cairn {
namespace {

class Encoded : public ::testing::Test {
  protected:
    // Holds so much for a second.
    Task<void> use(std::uint64_t bytes) {
        Result<EncodedRuns::Room> room = co_await runs_.take(bytes, 3 * second);
        if (!room.ok()) {
            refused_.push_back(room.status());
            co_return;
        }
        held_ += bytes;
        peak_ = std::max(peak_, held_);
        alone_ &= held_ <= 100 || held_ == bytes;
        co_await world_.clock.sleep(second);
        held_ -= bytes;
    }

    sim::Simulation sim_{1};
    sim::Process& process_ = sim_.add_node().start_process("reader");
    World world_ = process_.world();
    EncodedRuns runs_{world_, 100};
    std::uint64_t held_ = 0, peak_ = 0;
    bool alone_ = true;
    std::vector<Status> refused_;
    Gate gate_{world_.clock};
};

TEST_F(Encoded, RunsTakeNoMoreThanTheBoundTogether) {
    for (int i = 0; i < 8; ++i) gate_.spawn(use(40));
    sim_.run_until(10 * second);
    EXPECT_EQ(gate_.active(), 0u);
    EXPECT_EQ(peak_, 80u);
    EXPECT_TRUE(refused_.empty());
}

TEST_F(Encoded, ALargerOneHasItsTurnAlone) {
    for (const std::uint64_t bytes : {40, 250, 40, 30, 300, 40}) gate_.spawn(use(bytes));
    sim_.run_until(10 * second);
    EXPECT_EQ(gate_.active(), 0u);
    EXPECT_EQ(peak_, 300u);
    EXPECT_TRUE(alone_);
    EXPECT_TRUE(refused_.empty());
}

// A buffer that an operation holds beyond its deadline counts as long as it is there.
TEST_F(Encoded, WhatDoesNotComeBackIsWaitedForWithABound) {
    Slice kept;
    const auto take = [](EncodedRuns& runs, Slice& out) -> Task<void> {
        Result<EncodedRuns::Room> room = co_await runs.take(70, second);
        if (!room.ok()) co_return;
        Result<Slice> made = runs.allocate(*room, 70);
        if (made.ok()) out = std::move(made).value();
    };
    gate_.spawn(take(runs_, kept));
    ASSERT_EQ(kept.length, 70u);
    gate_.spawn(use(40));
    sim_.run_until(4 * second);
    EXPECT_EQ(gate_.active(), 0u);
    ASSERT_EQ(refused_.size(), 1u);
    EXPECT_EQ(refused_[0].code(), Code::deadline);
    kept = {};
    gate_.spawn(use(40));
    EXPECT_EQ(held_, 40u);
}

// Five want it: the first decodes it and fails, the second tries again, and the others have what it made.
TEST_F(Encoded, WhatSeveralWantIsDecodedByOneAtATime) {
    const EncodedRuns::Which which{1, 2, 3};
    int decoded = 0, had = 0;
    const auto want = [](EncodedRuns& runs, Clock& clock, EncodedRuns::Which of, int& made, int& given) -> Task<void> {
        Slice raw = co_await runs.share(of, 10 * second);
        if (raw.buffer) {
            ++given;
            co_return;
        }
        const bool fails = made++ == 0;
        co_await clock.sleep(second);
        runs.shared(of, fails ? Slice() : Slice::of(Bytes(8)));
    };
    for (int i = 0; i < 5; ++i) gate_.spawn(want(runs_, world_.clock, which, decoded, had));
    sim_.run_until(5 * second);
    EXPECT_EQ(gate_.active(), 0u);
    EXPECT_EQ(decoded, 2);
    EXPECT_EQ(had, 3);
    EXPECT_FALSE(runs_.take_kept({1, 2, 0}).buffer) << "of another version";
}

// Who decodes it does not come back: nobody waits for ever.
TEST_F(Encoded, WhoWaitsForAnothersDecodingDoesItHimselfInTheEnd) {
    const EncodedRuns::Which which{1, 2, 3};
    bool is_own = false;
    const auto want = [](EncodedRuns& runs, EncodedRuns::Which of, bool& is_decoder) -> Task<void> {
        const Slice first = co_await runs.share(of, second);
        const Slice again = co_await runs.share(of, second);
        is_decoder = !first.buffer && !again.buffer;
        runs.shared(of, Slice());
        runs.shared(of, Slice());
    };
    gate_.spawn(want(runs_, which, is_own));
    sim_.run_until(5 * second);
    EXPECT_EQ(gate_.active(), 0u);
    EXPECT_TRUE(is_own);
}

}  // namespace
}  // namespace cairn
