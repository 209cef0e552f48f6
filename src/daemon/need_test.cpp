// Which class a flush gets: the rule alone, then flushes of a machine of busy processors that gives each class its share.
#include "daemon/need.hpp"

#include <gmock/gmock.h>

#include <map>

#include "daemon/processors.hpp"

namespace cairn {
namespace {

constexpr std::uint64_t flush_bytes = 256 << 20;

// A node on which `busy` of its processors are taken by others, and flushes cost `cost` ns of processor time a byte.
struct Machine {
    double processors = 2, busy = 2;
    double cost = 3;
    double others_s = 0;  // that each flush takes besides, whatever the class

    Need need{{0.5, processors}};
    Nanos now = second;
    Nanos used = 0, waited = 0;

    struct Flush {
        double took_s = 0;
        CpuClass first = CpuClass::idle, highest = CpuClass::idle;
    };

    NeedLook seen(std::uint64_t left_bytes) const { return {now, left_bytes, used, waited, processors - busy}; }
    double power(CpuClass own) const { return processors - busy + busy * share_beside_busy(own); }

    Flush flush(Version version, std::uint64_t bytes = flush_bytes) {
        constexpr Nanos step = 10 * millisecond;
        const Nanos begun = now;
        need.begins({"job", version, {1, 1}}, bytes, seen(bytes));
        Flush result;
        result.first = result.highest = need.wanted();
        const double all_ns = cost * static_cast<double>(bytes);
        double done_ns = 0, other_s = 0;
        while (done_ns < all_ns || other_s < others_s) {
            const bool is_by_processor = other_s >= others_s;
            if (is_by_processor) {
                const double got = std::min(all_ns - done_ns, power(need.wanted()) * step);
                done_ns += got;
                used += static_cast<Nanos>(got);
                waited += step;
            } else {
                other_s += static_cast<double>(step) / second;
            }
            now += step;
            need.look(seen(static_cast<std::uint64_t>(static_cast<double>(bytes) * std::max(0.0, 1 - done_ns / all_ns))));
            result.highest = std::max(result.highest, need.wanted());
        }
        need.ended(seen(0));
        result.took_s = static_cast<double>(now - begun) / second;
        return result;
    }
    // So that versions are `interval` apart.
    void compute(double interval_s, const Flush& flush) { now += static_cast<Nanos>(std::max(0.0, interval_s - flush.took_s) * second); }
};

TEST(Need, IdleProcessorsAreEnough) {
    Machine machine{.processors = 4, .busy = 2};
    machine.need.job_opened({1, 1}, machine.now);
    machine.now += 2 * second;
    for (Version version = 1; version < 6; ++version) {
        const auto flush = machine.flush(version);
        EXPECT_EQ(flush.highest, CpuClass::idle) << version;
        machine.compute(2, flush);
    }
}

TEST(Need, AnIntervalThatTheIdleClassMeetsTakesNoStep) {
    Machine machine;
    machine.cost = 0.1;  // 27 ms of a processor, of which there are six thousandths
    machine.need.job_opened({1, 1}, machine.now);
    machine.now += 20 * second;
    for (Version version = 1; version < 6; ++version) {
        const auto flush = machine.flush(version);
        EXPECT_EQ(flush.highest, CpuClass::idle) << version << ", " << flush.took_s;
        machine.compute(20, flush);
    }
}

// The first checkpoint, too: how long the job computed before it stands for the interval.
TEST(Need, WithoutAnIdleProcessorEveryFlushIsInTimeWhereTheNormalClassWouldBe) {
    for (const double interval_s : {2.0, 5.0, 20.0, 60.0}) {
        Machine machine;
        machine.need.job_opened({1, 1}, machine.now);
        machine.now += static_cast<Nanos>(interval_s * second);
        for (Version version = 1; version < 8; ++version) {
            const auto flush = machine.flush(version);
            const double part = flush.took_s / interval_s;
            EXPECT_LE(part, 0.5) << version << " at " << interval_s;
            machine.compute(interval_s, flush);
        }
    }
}

TEST(Need, NoMoreThanItTakes) {
    Machine machine;
    machine.need.job_opened({1, 1}, machine.now);
    machine.now += 60 * second;
    Machine::Flush flush;
    for (Version version = 1; version < 10; ++version) {
        flush = machine.flush(version);
        machine.compute(60, flush);
    }
    EXPECT_LT(flush.highest, CpuClass::normal) << "0.8 s of processor time within 30 s";
    EXPECT_GT(flush.highest, CpuClass::idle);
}

TEST(Need, WhatWaitsForNoProcessorIsNotHelpedByAClass) {
    Machine machine{.busy = 1.99, .cost = 0.001, .others_s = 4};  // storage is slow
    machine.need.job_opened({1, 1}, machine.now);
    machine.now += 2 * second;
    const auto first = machine.flush(1, 1 << 20);
    EXPECT_EQ(first.highest, CpuClass::idle);
}

TEST(Need, TheShortestOfTheLastIntervalsCounts) {
    Machine machine;
    const std::vector<double> intervals_s = {10, 3, 10, 10};
    for (Version version = 1; version <= intervals_s.size(); ++version) {
        const auto flush = machine.flush(version, 1 << 20);
        machine.compute(intervals_s[version - 1], flush);
    }
    machine.need.begins({"job", 5, {1, 1}}, 1 << 20, machine.seen(1 << 20));
    EXPECT_NEAR(static_cast<double>(machine.need.time_limit()) / second, 1.5, 0.01);
}

TEST(Need, AVersionThatIsTriedAgainIsNoNewInterval) {
    Machine machine;
    machine.compute(10, machine.flush(1, 1 << 20));
    machine.compute(0.1, machine.flush(2, 1 << 20));
    machine.flush(2, 1 << 20);
    machine.need.begins({"job", 2, {1, 1}}, 1 << 20, machine.seen(1 << 20));
    EXPECT_NEAR(static_cast<double>(machine.need.time_limit()) / second, 5, 0.1);
}

TEST(Need, OneThatIsStillUnderWayWhenTheNextBeginsGoesHigher) {
    Machine machine;
    machine.need.job_opened({1, 1}, machine.now);
    machine.now += 2000 * second;  // nobody hurries the first
    machine.need.begins({"job", 1, {1, 1}}, flush_bytes, machine.seen(flush_bytes));
    const CpuClass before = machine.need.wanted();
    machine.now += 30 * second;
    machine.need.begins({"job", 2, {1, 1}}, flush_bytes, machine.seen(2 * flush_bytes - flush_bytes / 10));
    EXPECT_GT(machine.need.wanted(), before);
    machine.need.ended(machine.seen(0));
    EXPECT_EQ(machine.need.wanted(), CpuClass::idle);
}

TEST(Need, AJobOfWhichNothingIsKnownIsNotHurried) {
    Machine machine;
    machine.need.begins({"job", 1, {1, 1}}, flush_bytes, machine.seen(flush_bytes));
    EXPECT_EQ(machine.need.time_limit(), 30 * second);
    EXPECT_EQ(machine.need.wanted(), CpuClass::idle);
}

TEST(Need, TheLoopIsReadyUnlessItFlushes) {
    Machine machine;
    EXPECT_EQ(machine.need.wanted_of_loop(), CpuClass::normal);
    machine.need.begins({"job", 1, {1, 1}}, flush_bytes, machine.seen(flush_bytes));
    EXPECT_EQ(machine.need.wanted(), CpuClass::idle);
    EXPECT_EQ(machine.need.wanted_of_loop(), CpuClass::idle);
    machine.need.ended(machine.seen(0));
    EXPECT_EQ(machine.need.wanted_of_loop(), CpuClass::normal);
}

TEST(Processors, EachSumIsWhereItBelongs) {
    Processors processors;
    const Nanos used = Processors::used(), waited = processors.waited();
    const Processors::Seen seen = processors.look(second);
    EXPECT_GE(seen.used, used);
    EXPECT_LE(seen.used, Processors::used());
    EXPECT_GE(seen.waited, waited);
    EXPECT_LE(seen.waited, processors.waited());
    EXPECT_EQ(seen.idle, processors.count()) << "nothing is known before the second look";
}

TEST(Processors, IdleTicksAreOfTheOnesThatAreAllowed) {
    const std::string text = "cpu  10 0 10 500 7 0 0\ncpu0 1 0 2 100 3 0 0\ncpu1 1 0 2 200 4 0 0\ncpu11 0 0 0 200 0\nintr 5\n";
    EXPECT_EQ(idle_ticks(text, {0, 1}), 307u);
    EXPECT_EQ(idle_ticks(text, {1}), 204u);
    EXPECT_EQ(idle_ticks(text, {5}), std::nullopt);
    EXPECT_EQ(idle_ticks("", {0}), std::nullopt);
}

TEST(Processors, WhatThisProcessUsesIsNotTheOthers) {
    Processors processors;
    EXPECT_GE(processors.in_machine(), processors.count());
    const Nanos before = Processors::used();
    volatile std::uint64_t sum = 0;
    while (Processors::used() - before < 20 * millisecond) sum = sum + 1;
    EXPECT_GE(Processors::used() - before, 20 * millisecond);
    const double idle = processors.idle(second);
    EXPECT_GE(idle, 0);
    EXPECT_LE(idle, processors.count());
}

}  // namespace
}  // namespace cairn
