// Shares by hand, and the two ways of sharing against each other.
#include "world/sim/bandwidth.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "world/sim/simulation.hpp"

namespace cairn::sim {
namespace {

using Sharing = Bandwidth::Sharing;

double seconds(Nanos span) { return static_cast<double>(span) / 1e9; }

class Shares : public ::testing::TestWithParam<Sharing> {
  protected:
    Simulation sim{1};
    Bandwidth bandwidth{sim, GetParam()};

    // When each of the transfers, all begun now, is done.
    std::vector<double> run(const std::vector<Bandwidth::Uses>& transfers) {
        std::vector<double> ends(transfers.size(), -1);
        for (std::size_t i = 0; i < transfers.size(); ++i) bandwidth.begin(transfers[i], i, [&, i] { ends[i] = seconds(sim.now()); });
        sim.run_until(1000 * second);
        return ends;
    }
};
INSTANTIATE_TEST_SUITE_P(Both, Shares, ::testing::Values(Sharing::exact, Sharing::queued),
                         [](const auto& which) { return which.param == Sharing::exact ? "Exact" : "Queued"; });

TEST_P(Shares, OneAloneHasAll) {
    const auto link = bandwidth.add({100});
    EXPECT_NEAR(run({{{link, 250}}})[0], 2.5, 1e-6);
    EXPECT_EQ(bandwidth.carried_bytes(link), 250u);
    EXPECT_NEAR(bandwidth.busy_s(link), 2.5, 1e-6);
}

TEST_P(Shares, TwoHaveHalfUntilOneIsDone) {
    const auto link = bandwidth.add({100});
    const auto ends = run({{{link, 100}}, {{link, 300}}});
    EXPECT_NEAR(ends[0], 2, 1e-6);
    EXPECT_NEAR(ends[1], 4, 1e-6);
}

TEST_P(Shares, TheSlowestResourceDecides) {
    const auto fast = bandwidth.add({1000}), slow = bandwidth.add({10});
    EXPECT_NEAR(run({{{fast, 100}, {slow, 100}}})[0], 10, 1e-6);
}

TEST_P(Shares, NothingAndTheInfinitelyFastTakeNoTime) {
    const auto link = bandwidth.add({0}), slow = bandwidth.add({1});
    const auto ends = run({{{link, 1u << 30}}, {{slow, 0}}, {}});
    for (const double end : ends) EXPECT_EQ(end, 0);
}

TEST_P(Shares, WritersThatCrowdCostAll) {
    // Two streams beyond the first: 100 / (1 + 0.5 x 2) = 50 for the three of them, then 66.7 for two, then 100.
    const auto target = bandwidth.add({100, 0.5, 1});
    const auto ends = run({{{target, 50}}, {{target, 150}}, {{target, 250}}});
    EXPECT_NEAR(ends[0], 3, 1e-6);
    EXPECT_NEAR(ends[1], 3 + 200 / (100 / 1.5), 1e-6);
    EXPECT_NEAR(ends[2], ends[1] + 1, 1e-6);
}

TEST_P(Shares, OfOneStreamNoneCrowds) {
    const auto target = bandwidth.add({100, 10, 1});
    double last = 0;
    for (int i = 0; i < 4; ++i) bandwidth.begin({{target, 100}}, 7, [&] { last = seconds(sim.now()); });
    sim.run_until(100 * second);
    EXPECT_NEAR(last, 4, 1e-6);
}

TEST_P(Shares, ANewRateHoldsAtOnce) {
    const auto link = bandwidth.add({100});
    sim.at(second, [&] { bandwidth.set(link, {400}); });
    EXPECT_NEAR(run({{{link, 500}}})[0], 2, 1e-6);
}

TEST_P(Shares, TheSameTwice) {
    const auto fingerprint = [] {
        Simulation once(5);
        Bandwidth shared(once, GetParam());
        const auto a = shared.add({97}), b = shared.add({31});
        for (int i = 0; i < 50; ++i) shared.begin({{a, 10u + i}, {b, 7u * i}}, i, [] {});
        once.run_until(100 * second);
        return once.fingerprint();
    };
    EXPECT_EQ(fingerprint(), fingerprint());
}

// Three transfers over two resources: the one that passes both gets half of the narrower one, the other there the rest.
TEST(ExactShares, AreMaxMinFair) {
    Simulation sim(1);
    Bandwidth bandwidth(sim, Sharing::exact);
    const auto wide = bandwidth.add({100}), narrow = bandwidth.add({20});
    double both = 0, only_wide = 0, only_narrow = 0;
    bandwidth.begin({{wide, 100}, {narrow, 100}}, 1, [&] { both = seconds(sim.now()); });
    bandwidth.begin({{wide, 900}}, 2, [&] { only_wide = seconds(sim.now()); });
    bandwidth.begin({{narrow, 100}}, 3, [&] { only_narrow = seconds(sim.now()); });
    sim.run_until(100 * second);
    EXPECT_NEAR(both, 10, 1e-6);
    EXPECT_NEAR(only_narrow, 10, 1e-6);
    EXPECT_NEAR(only_wide, 10, 1e-6);
}

TEST(ExactShares, AUseOfMoreBytesTakesMore) {
    Simulation sim(1);
    Bandwidth bandwidth(sim, Sharing::exact);
    const auto card = bandwidth.add({100}), target = bandwidth.add({100});
    double end = 0;
    bandwidth.begin({{card, 100}, {target, 150}}, 1, [&] { end = seconds(sim.now()); });
    sim.run_until(100 * second);
    EXPECT_NEAR(end, 1.5, 1e-6);
}

// ---- the two against each other ----

// An aggregation: followers' cards out, leaders' cards in and out, targets; each leader keeps so many chunks under way, received ones first.
struct Aggregation {
    std::uint32_t nodes, leaders, targets, chunks, window;
    double card, target, spread;
};

double makespan(Sharing sharing, const Aggregation& a, std::uint64_t seed) {
    Simulation sim(seed);
    Bandwidth bandwidth(sim, sharing);
    Prng prng(seed);
    const auto about = [&](double rate) { return rate * (1 + a.spread * (2 * static_cast<double>(prng.below(1000)) / 1000 - 1)); };
    std::vector<Bandwidth::Resource> out, in, targets;
    for (std::uint32_t i = 0; i < a.nodes; ++i) {
        out.push_back(bandwidth.add({about(a.card)}));
        in.push_back(bandwidth.add({about(a.card)}));
    }
    for (std::uint32_t i = 0; i < a.targets; ++i) targets.push_back(bandwidth.add({about(a.target)}));
    std::vector<std::uint32_t> left(a.leaders, a.chunks);
    double last = 0;
    std::function<void(std::uint32_t)> next = [&](std::uint32_t leader) {
        if (left[leader] == 0) return;
        const std::uint32_t number = left[leader]--;
        const std::uint32_t group = a.nodes / a.leaders, from = leader * group + number % group;
        const std::uint32_t self = leader * group;
        const auto written = [&, leader] {
            last = seconds(sim.now());
            next(leader);
        };
        const auto write = [&, self, leader, written] { bandwidth.begin({{out[self], 1000}, {targets[leader % a.targets], 1000}}, leader, written); };
        if (from == self) write();
        else bandwidth.begin({{out[from], 1000}, {in[self], 1000}}, 0, write);
    };
    for (std::uint32_t leader = 0; leader < a.leaders; ++leader)
        for (std::uint32_t i = 0; i < a.window; ++i) next(leader);
    sim.run_until(100000 * second);
    return last;
}

TEST(Sharing, BothWaysAgreeWithinFivePercent) {
    Prng prng(3);
    double worst = 0;
    for (std::uint64_t seed = 0; seed < 64; ++seed) {
        Aggregation a;
        a.leaders = static_cast<std::uint32_t>(prng.between(1, 12));
        a.nodes = a.leaders * static_cast<std::uint32_t>(prng.between(1, 5));
        a.targets = static_cast<std::uint32_t>(prng.between(1, 12));
        a.chunks = static_cast<std::uint32_t>(prng.between(60, 120));
        a.window = static_cast<std::uint32_t>(prng.between(4, 12));
        a.card = static_cast<double>(prng.between(500, 4000));
        a.target = static_cast<double>(prng.between(500, 4000));
        a.spread = static_cast<double>(prng.below(30)) / 100;
        const double exact = makespan(Sharing::exact, a, seed), queued = makespan(Sharing::queued, a, seed);
        const double off = queued / exact - 1;
        worst = std::max(worst, std::abs(off));
        EXPECT_LT(std::abs(off), 0.05) << "seed " << seed << ": exact " << exact << " s, queued " << queued << " s, " << a.nodes << " nodes, " << a.leaders
                                       << " leaders, " << a.targets << " targets, window " << a.window << ", card " << a.card << ", target " << a.target;
    }
    std::printf("exact and queued differ by at most %.2f %%\n", 100 * worst);
}

// Work is conserved: while anything is at a resource it gives all it has.
TEST(Sharing, AQueuedResourceHasNoGaps) {
    Simulation sim(9);
    Bandwidth bandwidth(sim, Sharing::queued);
    const auto target = bandwidth.add({1000});
    std::vector<Bandwidth::Resource> cards;
    for (int i = 0; i < 8; ++i) cards.push_back(bandwidth.add({100.0 * (i + 1)}));
    double last = 0;
    for (int i = 0; i < 400; ++i) bandwidth.begin({{cards[i % 8], 1000}, {target, 1000}}, 0, [&] { last = seconds(sim.now()); });
    sim.run_until(100000 * second);
    EXPECT_NEAR(bandwidth.busy_s(target), 400, 1e-3);
    EXPECT_NEAR(last, 500, 1e-3);  // the slowest card: 50 x 1000 at 100
}

TEST(Sharing, ManyTransfersCostLittleEach) {
    Simulation sim(2);
    Bandwidth bandwidth(sim, Sharing::queued);
    std::vector<Bandwidth::Resource> cards, targets;
    for (int i = 0; i < 4096; ++i) cards.push_back(bandwidth.add({2.5e9}));
    for (int i = 0; i < 1350; ++i) targets.push_back(bandwidth.add({3.4e9, 0.01, 8}));
    constexpr int chunks = 25;
    std::uint64_t done = 0;
    std::vector<int> left(4096, chunks);
    std::function<void(int)> next = [&](int node) {
        if (left[node]-- <= 0) return;
        bandwidth.begin({{cards[node], 64 << 20}, {targets[node % 1350], 64 << 20}}, node, [&, node] {
            ++done;
            next(node);
        });
    };
    for (int node = 0; node < 4096; ++node)
        for (int i = 0; i < 8; ++i) next(node);
    sim.run_until(10000 * second);
    EXPECT_EQ(done, 4096u * chunks);
    EXPECT_EQ(bandwidth.under_way(), 0u);
}

}  // namespace
}  // namespace cairn::sim
