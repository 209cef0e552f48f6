// Pace in virtual time: rates hold exactly, limits change under those who wait, and nobody waits in vain or for ever.
#include "engine/pace.hpp"

#include <gtest/gtest.h>

#include "proof/cluster.hpp"

namespace cairn {
namespace {

using Step = Pace::Step;
constexpr std::uint64_t mib = 1 << 20;

bool still_wanted() { return false; }

class PaceTest : public ::testing::Test {
  protected:
    // `count` chunks one after the other, each under way for `span`.
    Task<void> move(Step step, std::uint64_t bytes, int count, Nanos span = 0) {
        for (int i = 0; i < count; ++i) {
            const std::function<bool()> over = over_;
            const Pace::Pass pass = co_await pace_.admit(step, bytes, over);
            ++admitted_;
            most_under_way_ = std::max(most_under_way_, pace_.under_way_in() + pace_.under_way_out());
            if (span > 0) co_await clock().sleep(span);
        }
        ended_ = clock().now();
    }
    void start(Step step, std::uint64_t bytes, int count, Nanos span = 0) { gate_.spawn(move(step, bytes, count, span)); }
    void run(Nanos span) { sim_.run_until(sim_.now() + span); }
    Clock& clock() { return world_.clock; }

    sim::Simulation sim_{1};
    World world_ = sim_.add_node().start_process("daemon").world();
    Pace pace_{world_.clock, 100 * second};
    std::function<bool()> over_ = still_wanted;
    int admitted_ = 0;
    std::uint64_t most_under_way_ = 0;
    Nanos begun_ = world_.clock.now(), ended_ = 0;
    Gate gate_{world_.clock};
};

TEST_F(PaceTest, WithoutLimitsNobodyWaits) {
    start(Step::fetch, 64 * mib, 1000);
    EXPECT_EQ(admitted_, 1000);  // at once, without a turn of the loop
    EXPECT_EQ(pace_.counters().waited, 0);
    EXPECT_EQ(pace_.counters().in_bytes, 64'000 * mib);
    EXPECT_EQ(pace_.piece_bytes() % mib, 0u);
    EXPECT_GT(pace_.piece_bytes(), 1ull << 40);
    EXPECT_FALSE(pace_.holds_back());
}

TEST_F(PaceTest, EachLimitHoldsOverTimeWhateverTheSizeOfChunks) {
    struct Case {
        PaceLimits limits;
        Step step;
        double seconds;  // for 100 MB
    };
    const Case cases[] = {{{10e6, 0, 0, 0, 0}, Step::fetch, 10},          {{0, 10e6, 0, 0, 0}, Step::serve, 10},
                          {{0, 10e6, 0, 0, 0}, Step::write_local, 10},    {{0, 10e6, 0, 0, 0}, Step::write_received, 10},
                          {{0, 0, 60e6, 0, 0}, Step::fetch, 5},           {{0, 0, 40e6, 0, 0}, Step::write_received, 5},
                          {{0, 10e6, 60e6, 0, 0}, Step::write_local, 10}, {{10e6, 0, 0, 0, 0}, Step::serve, 0}};
    for (const Case& each : cases)
        for (const std::uint64_t bytes : {100'000ull, 1'000'000ull, 20'000'000ull}) {
            Pace pace(clock(), 100 * second);
            pace.set_limits(each.limits);
            const Nanos begun = clock().now();
            Nanos last = begun;
            const auto task = [](Pace& p, Step step, std::uint64_t n, Clock& c, Nanos& end) -> Task<void> {
                for (std::uint64_t done = 0; done < 100'000'000; done += n) {
                    const std::function<bool()> over = still_wanted;
                    const Pace::Pass pass = co_await p.admit(step, n, over);
                    end = c.now();
                }
            };
            ASSERT_TRUE(sim_.run(task(pace, each.step, bytes, clock(), last), sim_.now() + 1000 * second));
            // The last one leaves when the one before is paid for.
            const double due = each.seconds * (1 - static_cast<double>(bytes) / 100e6);
            EXPECT_NEAR(static_cast<double>(last - begun) / second, due, 0.02 * each.seconds) << bytes;
        }
}

TEST_F(PaceTest, CpuSpentIsPaidForBeforeMoreIsAdmitted) {
    pace_.set_limits({0, 0, 0, 0.5, 0});
    start(Step::fetch, mib, 1);
    EXPECT_EQ(admitted_, 1);
    pace_.spent_cpu(2 * second);  // four seconds' worth
    start(Step::write_local, mib, 1);
    run(3900 * millisecond);
    EXPECT_EQ(admitted_, 1);
    run(200 * millisecond);
    EXPECT_EQ(admitted_, 2);
}

TEST_F(PaceTest, TheWaysDoNotWaitForEachOther) {
    pace_.set_limits({1, 0, 0, 0, 0});
    start(Step::fetch, mib, 2);
    EXPECT_EQ(admitted_, 1);
    start(Step::serve, mib, 5);
    start(Step::write_local, mib, 5);
    EXPECT_EQ(admitted_, 11);
}

TEST_F(PaceTest, WhatTheApplicationWaitsForDoesNotWaitAndOthersPayForIt) {
    pace_.set_limits({0, 10e6, 0, 0, 0});
    start(Step::serve_at_once, 10'000'000, 3);
    EXPECT_EQ(admitted_, 3);  // at once, without a turn of the loop
    EXPECT_EQ(pace_.counters().out_bytes, 30'000'000u);
    start(Step::serve, 1'000'000, 1);
    run(second);
    EXPECT_EQ(admitted_, 3);
    run(3 * second);
    EXPECT_EQ(admitted_, 4);
}

TEST_F(PaceTest, FirstComeFirstServed) {
    pace_.set_limits({0, 10e6, 0, 0, 0});
    start(Step::serve, 10'000'000, 1);
    std::vector<int> order;
    const auto task = [](Pace& p, int number, std::vector<int>& out) -> Task<void> {
        const std::function<bool()> over = still_wanted;
        const Pace::Pass pass = co_await p.admit(Step::serve, 1'000'000, over);
        out.push_back(number);
    };
    for (int i = 0; i < 20; ++i) gate_.spawn(task(pace_, i, order));
    run(10 * second);
    ASSERT_EQ(order.size(), 20u);
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST_F(PaceTest, LimitsChangeUnderThoseWhoWait) {
    pace_.set_limits({1e6, 0, 0, 0, 0});
    start(Step::fetch, 60'000'000, 3);
    run(second);
    EXPECT_EQ(admitted_, 1);
    pace_.set_limits({118e6, 0, 0, 0, 0});  // a second has paid 1 of 60; half a second pays the rest
    run(499 * millisecond);
    EXPECT_EQ(admitted_, 1);
    run(2 * millisecond);
    EXPECT_EQ(admitted_, 2);
    pace_.set_limits({1, 0, 0, 0, 0});
    run(10 * second);
    EXPECT_EQ(admitted_, 2);
    pace_.set_limits({});
    run(0);
    EXPECT_EQ(admitted_, 3);
}

TEST_F(PaceTest, NoMoreIsUnderWayThanAllowedButOneAlwaysMayBe) {
    pace_.set_limits({0, 0, 0, 0, 3 * mib});
    for (int i = 0; i < 8; ++i) start(Step::write_local, mib, 10, 100 * millisecond);
    run(60 * second);
    EXPECT_EQ(admitted_, 80);
    EXPECT_EQ(most_under_way_, 3 * mib);
    EXPECT_EQ(pace_.under_way_out(), 0u);
    EXPECT_NEAR(static_cast<double>(ended_ - begun_) / second, 80 / 3.0 * 0.1, 0.11);
    start(Step::write_local, 64 * mib, 2, 100 * millisecond);
    run(second);
    EXPECT_EQ(admitted_, 82);
}

// Whoever waits behind it does not pay for what did not go.
TEST_F(PaceTest, WhatIsGivenBackWasNeverTaken) {
    pace_.set_limits({0, 1e6, 0, 0, 100 * mib});
    std::optional<Pace::Pass> held;
    const auto task = [](Pace& p, std::optional<Pace::Pass>& out) -> Task<void> {
        const std::function<bool()> over = still_wanted;
        Pace::Pass pass = co_await p.admit(Step::serve, 60'000'000, over);
        out.emplace(std::move(pass));
    };
    gate_.spawn(task(pace_, held));
    start(Step::serve, 50'000'000, 1);
    EXPECT_EQ(admitted_, 0);
    pace_.give_back(*held, 59'000'000);
    EXPECT_EQ(pace_.counters().out_bytes, 1'000'000u);
    EXPECT_EQ(pace_.under_way_out(), 1'000'000u);
    run(second + 10 * millisecond);
    EXPECT_EQ(admitted_, 1) << "the rest is paid in a second";
    pace_.give_back(*held, 2'000'000);  // more than there is
    EXPECT_EQ(pace_.counters().out_bytes, 50'000'000u);
    held.reset();
    EXPECT_EQ(pace_.under_way_out(), 0u);
    EXPECT_EQ(pace_.counters().in_bytes, 0u);
}

TEST_F(PaceTest, AWaitEndsAtOnceWhenThereIsNoUseInItAnyMore) {
    pace_.set_limits({1, 0, 0, 0, 0});
    bool over = false;
    over_ = [&over] { return over; };
    start(Step::fetch, mib, 1);
    for (int i = 0; i < 3; ++i) start(Step::fetch, mib, 1);
    run(10 * second);
    EXPECT_EQ(admitted_, 1);
    over = true;
    pace_.wake();
    run(0);
    EXPECT_EQ(admitted_, 4);
}

TEST_F(PaceTest, AWaitEndsAtItsBoundWhateverTheLimits) {
    Pace pace(clock(), 5 * second);
    pace.set_limits({1, 0, 0, 0, 0});
    const auto task = [](Pace& p, Nanos until, int& count) -> Task<void> {
        for (int i = 0; i < 3; ++i) {
            const std::function<bool()> over = still_wanted;
            const Pace::Pass pass = co_await p.admit(Step::fetch, 1ull << 30, over, until);
            ++count;
        }
    };
    int bounded = 0, until = 0, after = 0;
    Gate gate(clock());
    gate.spawn(task(pace, never, bounded));
    run(4900 * millisecond);
    EXPECT_EQ(bounded, 1);
    EXPECT_TRUE(pace.holds_back());
    run(5200 * millisecond);
    EXPECT_EQ(bounded, 3);
    run(6 * second);
    EXPECT_FALSE(pace.holds_back());
    gate.spawn(task(pace, clock().in(second), until));
    run(1100 * millisecond);
    EXPECT_EQ(until, 3);
    // A limit of one byte a second for so much made a debt; it is forgotten with the limit.
    pace.set_limits({});
    pace.set_limits({1e9, 0, 0, 0, 0});
    gate.spawn(task(pace, never, after));
    EXPECT_EQ(after, 1);
}

TEST_F(PaceTest, WhoeverWaitsMayBeDestroyed) {
    pace_.set_limits({1e6, 0, 0, 0, 0});
    start(Step::fetch, 1'000'000, 1);
    {
        Gate dying(clock());
        dying.spawn(move(Step::fetch, 1'000'000, 1));
        start(Step::fetch, 1'000'000, 1);
        run(500 * millisecond);
        EXPECT_EQ(admitted_, 1);
    }
    run(600 * millisecond);
    EXPECT_EQ(admitted_, 2);  // the one behind took the dead one's turn
}

TEST_F(PaceTest, ClosedAdmitsNobodyUntilItOpensOrTheWaitEnds) {
    PaceLimits closed;
    closed.closed = true;
    pace_.set_limits(closed);
    start(Step::fetch, mib, 1);
    start(Step::serve, mib, 1);
    run(50 * second);
    EXPECT_EQ(admitted_, 0);
    EXPECT_TRUE(pace_.active());
    EXPECT_TRUE(pace_.holds_back());
    pace_.set_limits({});
    run(millisecond);
    EXPECT_EQ(admitted_, 2);
    pace_.set_limits(closed);
    start(Step::write_local, mib, 1);
    run(99 * second);
    EXPECT_EQ(admitted_, 2);
    run(2 * second);
    EXPECT_EQ(admitted_, 3);  // it delays, it fails nothing
}

TEST_F(PaceTest, PiecesShrinkWithTheLimits) {
    pace_.set_limits({0, 20e6, 0, 0, 0});
    EXPECT_EQ(pace_.piece_bytes(), 15u * (64 << 10));  // a twentieth of a second, in grains
    pace_.set_limits({0, 100, 0, 0, 0});
    EXPECT_EQ(pace_.piece_bytes(), 64u << 10);
    pace_.set_limits({0, 0, 0, 0, 8 * mib});
    EXPECT_EQ(pace_.piece_bytes(), 2 * mib);
    pace_.set_limits({1000, 0, 0, 0, 0});  // of the other way
    EXPECT_GT(pace_.piece_bytes(), 1ull << 40);
}

TEST_F(PaceTest, ItIsKnownWhenDataMoves) {
    EXPECT_FALSE(pace_.active());
    int begun = 0;
    const auto task = [](Pace& p, int& count) -> Task<void> {
        for (;;) {
            co_await p.begun().wait();
            ++count;
        }
    };
    gate_.spawn(task(pace_, begun));
    start(Step::fetch, mib, 5, 400 * millisecond);
    run(2500 * millisecond);
    EXPECT_TRUE(pace_.active());
    EXPECT_EQ(begun, 1);
    run(2 * second);
    EXPECT_FALSE(pace_.active());
    start(Step::serve, mib, 1);
    run(0);
    EXPECT_EQ(begun, 2);
}

// ---- in a flush ----

testing::ClusterOptions cluster_options() {
    testing::ClusterOptions options;
    options.ranks_per_node = {2, 1, 2};
    options.files = 2;
    options.image_bytes = [](Rank rank, Version) { return 400'000 + 1000 * rank; };
    options.settings.buffer_bytes = 64 << 10;
    options.settings.buffers = 2;
    options.settings.writers = 2;
    options.settings.io_wait = 4 * second;
    options.settings.heartbeat = 100 * millisecond;
    options.settings.peer_wait = second;  // shorter than a wait for one's turn
    return options;
}

// Seconds from capture to commit of one version under these limits; fails the test where an attempt failed.
double flush_s(const PaceLimits& limits, testing::ClusterOptions options = cluster_options()) {
    testing::Cluster cluster(std::move(options));
    EXPECT_TRUE(cluster.open_job().ok());
    for (testing::Host& host : cluster.hosts) host.daemon->pace().set_limits(limits);
    const Nanos begun = cluster.sim.now();
    const Status captured = cluster.capture_all(1);
    EXPECT_TRUE(captured.ok()) << captured.to_string();
    EXPECT_TRUE(cluster.run_until_committed(1, 600 * second));
    for (const testing::Host& host : cluster.hosts) EXPECT_EQ(host.daemon->counters().attempts_failed, 0u);
    const Nanos ended = cluster.sim.now();
    const Status whole = cluster.check_committed(cluster.key(1));
    EXPECT_TRUE(whole.ok()) << whole.to_string();
    return static_cast<double>(ended - begun) / second;
}

TEST(PaceInAFlush, LimitsStretchItAsTheySay) {
    const double free = flush_s({});
    // Nodes 0 and 1 lead a part each of about 1.2 and 0.8 MB, or one leads both: no node writes less than 0.6 MB, none more than 2.1 MB.
    const double out = flush_s({0, 100e3, 0, 0, 0});
    EXPECT_GT(out, free + 5);
    EXPECT_LT(out, free + 25);
    EXPECT_GT(flush_s({0, 0, 300e3, 0, 0}), free + 3);
    EXPECT_LT(flush_s({0, 0, 0, 0, 64 << 10}), free + 5);
}

TEST(PaceInAFlush, LimitsThatLetNothingThroughDelayItAndFailNothing) {
    for (const PaceLimits& limits : {PaceLimits{1, 0, 0, 0, 0}, PaceLimits{0, 1, 0, 0, 0}, PaceLimits{1, 1, 1, 0, 1}}) {
        const double stretched_s = flush_s(limits);
        EXPECT_GT(stretched_s, 4);
    }
}

// Its only buffer is held up at three places one after the other, each for half of io_wait: where it is asked for, at the other node, and where it is written.
TEST(PaceInAFlush, ABufferThatIsHeldUpByTheOtherNodeIsWaitedFor) {
    testing::ClusterOptions options = cluster_options();
    options.ranks_per_node = {2, 1};
    options.files = 1;
    options.image_bytes = [](Rank rank, Version) { return rank == 2 ? 4096 : 40'960; };  // the second node has next to nothing of its own to write
    options.settings.buffer_bytes = 4096;
    options.settings.buffers = options.settings.writers = 1;
    PaceLimits closed;
    closed.closed = true;
    EXPECT_GT(flush_s(closed, std::move(options)), 4);
}

TEST(PaceInAFlush, ACancelledVersionWaitsForNoTurn) {
    testing::ClusterOptions options = cluster_options();
    options.settings.io_wait = 4000 * second;
    testing::Cluster cluster(options);
    ASSERT_TRUE(cluster.open_job().ok());
    for (testing::Host& host : cluster.hosts) host.daemon->pace().set_limits({1, 1, 0, 0, 0});
    ASSERT_TRUE(cluster.capture_all(1).ok());
    cluster.sim.run_until(cluster.sim.now() + second);
    const auto cancel = [](Node& node, Clock& clock, VersionKey key) -> Task<void> {
        const Status status = co_await node.cancel(key, clock.in(60 * second));
        EXPECT_TRUE(status.ok()) << status.to_string();
    };
    ASSERT_TRUE(cluster.sim.run(cancel(*cluster.hosts[0].daemon, cluster.hosts[0].process->world().clock, cluster.key(1)), cluster.sim.now() + 60 * second));
    cluster.sim.run_until(cluster.sim.now() + 3 * second);
    for (const testing::Host& host : cluster.hosts) {
        EXPECT_FALSE(host.daemon->pace().active());
        EXPECT_EQ(host.daemon->pace().under_way_in() + host.daemon->pace().under_way_out(), 0u);
    }
}

// A node's own images in a run of several: nothing goes through the card, and memory is passed four times.
TEST_F(PaceTest, WhatIsGatheredCountsAgainstMemoryAlone) {
    pace_.set_limits({1, 1, 0, 0, 0});
    start(Step::gather, mib, 5);
    EXPECT_EQ(admitted_, 5);
    EXPECT_EQ(pace_.counters().in_bytes + pace_.counters().out_bytes, 0u);
    EXPECT_TRUE(pace_.active());
    pace_.set_limits({0, 0, 40e6, 0, 0});
    start(Step::gather, 10'000'000, 6);
    EXPECT_EQ(admitted_, 6);
    EXPECT_TRUE(pace_.holds_back());
    run(4900 * millisecond);
    EXPECT_EQ(admitted_, 10);
    run(200 * millisecond);
    EXPECT_EQ(admitted_, 11);
    EXPECT_EQ(pace_.counters().in_bytes + pace_.counters().out_bytes, 0u);
}

}  // namespace
}  // namespace cairn
