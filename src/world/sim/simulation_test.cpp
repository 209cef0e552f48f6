// The queue itself: time, ties, pauses, deaths, and that one seed is one run.
#include "world/sim/simulation.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace cairn::sim {
namespace {

Task<void> note_after(Clock& clock, Nanos span, std::vector<int>& order, int what) {
    co_await clock.sleep(span);
    order.push_back(what);
}

TEST(Simulation, TimeIsVirtualAndOrdered) {
    Simulation sim(1);
    Process& process = sim.add_node().start_process("a");
    std::vector<int> order;
    World world = process.world();
    Gate gate(world.clock);
    gate.spawn(note_after(world.clock, 3 * second, order, 3));
    gate.spawn(note_after(world.clock, second, order, 1));
    gate.spawn(note_after(world.clock, 2 * second, order, 2));
    sim.run_until(2500 * millisecond);
    EXPECT_EQ(order, (std::vector<int>{1, 2}));
    EXPECT_EQ(sim.now(), 2500 * millisecond);
    sim.run_until(4 * second);
    EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(Simulation, SeedsOrderWhatHappensAtTheSameTime) {
    std::set<std::vector<int>> orders;
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
        Simulation sim(seed);
        World world = sim.add_node().start_process("a").world();
        std::vector<int> order;
        Gate gate(world.clock);
        for (int i = 0; i < 3; ++i) gate.spawn(note_after(world.clock, second, order, i));
        sim.run_until(second);
        orders.insert(order);
    }
    EXPECT_EQ(orders.size(), 6u);
}

TEST(Simulation, WhatIsFarOffComesInItsTurn) {
    Simulation sim(1);
    Process& process = sim.add_node().start_process("a");
    std::vector<Nanos> expected, seen;
    const auto schedule = [&](Nanos when) {
        expected.push_back(when);
        return sim.schedule(process.actor(), when, "test", [&] { seen.push_back(sim.now()); });
    };
    for (int i = 0; i < 20'000; ++i) {  // deadlines, and nearly all of them are met
        const std::uint64_t event = schedule(3600 * second + static_cast<Nanos>(sim.random().below(10 * second)));
        if (i % 100 == 0) continue;
        sim.cancel(process.actor(), event);
        expected.pop_back();
    }
    for (int i = 0; i < 1000; ++i) schedule(static_cast<Nanos>(sim.random().below(20 * second)));
    sim.at(3 * second, [&] { schedule(3 * second + millisecond), schedule(3500 * second); });
    sim.run_until(4000 * second);
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(seen, expected);
}

TEST(Simulation, APausedProcessWakesUpLate) {
    Simulation sim(1);
    Process& process = sim.add_node().start_process("a");
    std::vector<int> order;
    World world = process.world();
    Gate gate(world.clock);
    gate.spawn(note_after(world.clock, second, order, 1));
    process.pause();
    sim.run_until(5 * second);
    EXPECT_TRUE(order.empty());
    process.resume();
    sim.run_until(5 * second);
    EXPECT_EQ(order, std::vector<int>{1});
}

TEST(Simulation, AKilledProcessNeverRunsAgain) {
    Simulation sim(1);
    Process& process = sim.add_node().start_process("a");
    std::vector<int> order;
    World world = process.world();
    auto gate = std::make_unique<Gate>(world.clock);
    gate->spawn(note_after(world.clock, second, order, 1));
    process.kill();
    gate.reset();
    sim.run_until(2 * second);
    EXPECT_TRUE(order.empty());
    EXPECT_FALSE(sim.step());
}

Task<void> write_and_crash(World world, bool synced) {
    (void)co_await world.storage.make_directory("/persistent/d", 0755, never);
    (void)co_await write_file(world.storage, "/persistent/d/f", to_bytes("text"), 0644, never);
    if (synced) {
        (void)co_await world.storage.fsync_directory("/persistent/d", never);
        (void)co_await world.storage.fsync_directory("/persistent", never);
    }
}

TEST(Simulation, ACrashMayLoseNamesThatWereNotSynced) {
    int there[2] = {0, 0};
    for (int synced = 0; synced < 2; ++synced) {
        for (std::uint64_t seed = 0; seed < 40; ++seed) {
            Simulation sim(seed);
            SimNode& node = sim.add_node();
            ASSERT_TRUE(sim.run(write_and_crash(node.start_process("a").world(), synced == 1), second));
            node.crash();
            there[synced] += sim.persistent().find("/persistent/d/f").ok();
        }
    }
    EXPECT_EQ(there[1], 40);
    EXPECT_GT(there[0], 0);
    EXPECT_LT(there[0], 40);
}

}  // namespace
}  // namespace cairn::sim
