// The loop's way from thread to thread: one at a time, each of its class, and what io_uring has under way is not lost.
#include "world/real/relay.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <unistd.h>

#include <functional>
#include <set>
#include <vector>

#include "world/real/test_world.hpp"

namespace cairn {
namespace {

int own_nice() { return ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid())); }

TEST(Relay, EachTurnIsOfItsClassAndBack) {
    const auto loop = test::make_loop();
    Relay relay(*loop);
    const int before = own_nice();
    std::vector<int> nices;
    std::vector<std::thread::id> threads;
    const std::vector<CpuClass> ways = {CpuClass::nice_5, CpuClass::low, CpuClass::normal, CpuClass::low};
    std::vector<CpuClass> turns;
    relay.at_each_turn([&](CpuClass own) { turns.push_back(own); });
    std::function<void(std::size_t)> turn = [&](std::size_t i) {
        nices.push_back(own_nice());
        threads.push_back(std::this_thread::get_id());
        if (i == ways.size()) return relay.end();
        relay.hand_over(ways[i]);
        loop->call_soon([&, i] { turn(i + 1); });
    };
    loop->call_soon([&] { turn(0); });
    relay.run(CpuClass::low);
    const auto at_least = [&](int nice) { return std::max(nice, before); };
    EXPECT_EQ(nices, (std::vector<int>{at_least(19), at_least(5), at_least(19), before, at_least(19)}));
    EXPECT_EQ(turns, (std::vector<CpuClass>{CpuClass::low, CpuClass::nice_5, CpuClass::low, CpuClass::normal, CpuClass::low}));
    EXPECT_EQ(threads[0], threads[2]) << "a class keeps its thread";
    EXPECT_EQ(own_nice(), before) << "who started them never gave way";
}

TEST(Relay, TheLastWordCountsAlsoWhereItIsTheFirst) {
    const auto loop = test::make_loop();
    Relay relay(*loop);
    std::vector<CpuClass> turns;
    relay.at_each_turn([&](CpuClass own) { turns.push_back(own); });
    loop->call_soon([&] {
        relay.hand_over(CpuClass::nice_5);
        relay.hand_over(CpuClass::low);  // that it has
        loop->call_soon([&] { relay.end(); });
    });
    relay.run(CpuClass::low);
    EXPECT_EQ(turns, (std::vector<CpuClass>{CpuClass::low, CpuClass::low}));
}

TEST(Relay, AnEndCountsWhateverWasAskedBefore) {
    const auto loop = test::make_loop();
    Relay relay(*loop);
    loop->call_soon([&] {
        relay.hand_over(CpuClass::normal);
        relay.hand_over(CpuClass::low);  // the one that it has
        relay.hand_over(CpuClass::nice_10);
        relay.end();
    });
    relay.run(CpuClass::low);
    SUCCEED();
}

constexpr std::uint64_t file_bytes = 1 << 20;

Task<void> write_file(RealStorage& storage, std::string path, int& written) {
    OpenOptions options;
    options.mode = OpenMode::create;
    const auto file = co_await storage.open(path, options, never);
    EXPECT_TRUE(file.ok()) << file.status().to_string();
    if (!file.ok()) co_return;
    const auto buffer = storage.allocate(file_bytes);
    const Slice whole{*buffer, 0, file_bytes};
    const auto wrote = co_await storage.write_some(*file, 0, whole, never);
    EXPECT_TRUE(wrote.ok()) << wrote.status().to_string();
    ++written;
}

TEST(Relay, WhatIsUnderWayEndsWhileTheLoopGoesOn) {
    const auto loop = test::make_loop();
    const test::TemporaryDirectory folder;
    const auto storage = test::make_storage(*loop, {});
    Relay relay(*loop);
    relay.at_each_turn([&](CpuClass own) { storage->set_class({own, IoClass::normal}, {own, IoClass::normal}); });
    int written = 0;
    constexpr int files = 40;
    std::vector<Task<void>> tasks;
    for (int i = 0; i < files; ++i) tasks.push_back(write_file(*storage, folder / std::to_string(i), written));
    const std::vector<CpuClass> ways = {CpuClass::nice_10, CpuClass::low, CpuClass::nice_5, CpuClass::normal, CpuClass::idle};
    std::function<void(int)> turn = [&](int i) {
        if (written == files) return relay.end();
        relay.hand_over(ways[static_cast<std::size_t>(i) % ways.size()]);
        loop->at(loop->in(millisecond), [&, i] { turn(i + 1); });
    };
    loop->call_soon([&] {
        for (Task<void>& task : tasks) task.start();
        turn(0);
    });
    relay.run(CpuClass::low);
    EXPECT_EQ(written, files);
}

// The kernel keeps its workers for some seconds. One that was put into the idle class would hold up what its thread submits when it has the loop again.
TEST(Relay, TheKernelsWorkersKeepTheClassOfTheThreadThatSubmits) {
    const auto loop = test::make_loop();
    const test::TemporaryDirectory folder;
    const auto storage = test::make_storage(*loop, {});
    if (storage->backend_name() != "io_uring") return;
    Relay relay(*loop);
    relay.at_each_turn([&](CpuClass own) { storage->set_class({own, IoClass::normal}, {own, IoClass::normal}); });
    const std::vector<CpuClass> ways = {CpuClass::normal, CpuClass::idle, CpuClass::normal};
    std::set<pid_t> of_normal;
    int written = 0, wrong = 0;
    std::vector<Task<void>> tasks;
    std::function<void(std::size_t)> turn = [&](std::size_t i) {
        if (i == 0) of_normal.merge(kernel_io_threads(::gettid()));
        for (const pid_t each : of_normal) wrong += ::sched_getscheduler(each) == SCHED_IDLE;
        if (i + 1 == ways.size()) return relay.end();
        relay.hand_over(ways[i + 1]);
        loop->call_soon([&, i] { tasks.push_back(write_file(*storage, folder / std::to_string(i), written)), tasks.back().start(); });
        loop->at(loop->in(100 * millisecond), [&, i] { turn(i + 1); });
    };
    loop->call_soon([&] { tasks.push_back(write_file(*storage, folder / "first", written)), tasks.back().start(); });
    loop->at(loop->in(50 * millisecond), [&] { turn(0); });
    relay.run(CpuClass::normal);
    EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace cairn
