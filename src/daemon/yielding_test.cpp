// The rule by itself, the application's traffic on real connections, a card's counters from a folder of the test's own.
#include "daemon/yielding.hpp"

#include <gtest/gtest.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "world/real/loop.hpp"

namespace cairn {
namespace {

constexpr double card = 100e6;

YieldSettings settings() {
    YieldSettings s;
    s.caps.cores = 2;
    s.share_busy = 0.2;
    s.busy_bytes_s = 1'000'000;
    return s;
}

// A policy that is asked every 25 ms.
struct Asked {
    explicit Asked(const YieldSettings& s, bool knows_the_card = true) : policy(s) {
        policy.begin(now - 200 * millisecond);
        policy.next({now, 0, knows_the_card ? static_cast<std::uint64_t>(card / 5) : 0, 0, false});
    }
    PaceLimits next(std::uint64_t application, std::uint64_t link = 0, bool all_wait = false) {
        now += 25 * millisecond;
        return policy.next({now, application, link, 0, all_wait});
    }
    // The application communicates for ten seconds on end.
    void without_pauses() {
        for (int i = 0; i < 400; ++i) next(1'000'000);
    }
    Nanos now = 10 * second;
    YieldPolicy policy;
};

TEST(YieldPolicy, ClosesAtOnceAndOpensWhenItHasBeenQuiet) {
    Asked asked(settings());
    EXPECT_EQ(asked.next(0), settings().caps);
    const PaceLimits busy = asked.next(1'000'000);
    EXPECT_TRUE(busy.closed);
    EXPECT_EQ(busy.cores, 2);
    EXPECT_EQ(busy.under_way_bytes, 4'000'000u);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(asked.next(0), busy);  // for 100 ms
    const PaceLimits wary = asked.next(0);
    EXPECT_FALSE(wary.closed);
    EXPECT_EQ(wary.under_way_bytes, busy.under_way_bytes);  // it may come back
    for (int i = 0; i < 200; ++i) asked.next(0);
    EXPECT_EQ(asked.next(0), settings().caps);
    EXPECT_EQ(asked.policy.communicated(), 4 * 25 * millisecond);
}

TEST(YieldPolicy, WithoutPausesAShareIsTaken) {
    Asked asked(settings());
    asked.without_pauses();
    const PaceLimits busy = asked.next(1'000'000);
    EXPECT_FALSE(busy.closed);
    EXPECT_EQ(busy.in_bytes_s, 0.2 * card);
    EXPECT_EQ(busy.out_bytes_s, 0.2 * card);
    EXPECT_EQ(busy.under_way_bytes, 4'000'000u);
    for (int i = 0; i < 100; ++i) asked.next(0);  // and when they are back it keeps to them
    EXPECT_TRUE(asked.next(1'000'000).closed);
}

TEST(YieldPolicy, MemoryTightensWithTheCardWhereThereIsACap) {
    YieldSettings s = settings();
    s.caps.memory_bytes_s = 1e9;
    Asked capped(s), uncapped(settings());
    capped.without_pauses();
    uncapped.without_pauses();
    EXPECT_EQ(capped.next(1'000'000).memory_bytes_s, 0.2e9);
    EXPECT_EQ(uncapped.next(1'000'000).memory_bytes_s, 0);
    EXPECT_EQ(capped.next(0, 0, true), PaceLimits{});
    for (int i = 0; i < 10; ++i) capped.next(0);
    EXPECT_EQ(capped.next(0).memory_bytes_s, 1e9);
}

// Exchanges of 0.3 s, a second from one to the next.
TEST(YieldPolicy, ClosesShortlyBeforeTheNextExchangeOfARegularProgram) {
    Asked asked(settings());
    for (int exchange = 1; exchange <= 5; ++exchange) {
        for (int i = 0; i < 12; ++i) EXPECT_TRUE(asked.next(1'000'000).closed);
        int closed = 0;
        for (int i = 0; i < 28; ++i) closed += asked.next(0).closed;
        if (exchange < 3) EXPECT_EQ(closed, 3) << exchange;  // the quiet after it
        else EXPECT_TRUE(closed >= 5 && closed <= 8) << closed;
    }
    int closed = 0;
    for (int i = 0; i < 200; ++i) closed += asked.next(0).closed;
    EXPECT_LE(closed, 9);  // it does not come: not waited for
}

// Steps so short that nothing would be left between the quiet after an exchange and the next one.
TEST(YieldPolicy, ARegularProgramOfShortStepsDoesNotStopTheFlush) {
    Asked asked(settings());
    int closed = 0, shared = 0;
    for (int step = 0; step < 200; ++step)
        for (int i = 0; i < 8; ++i) {
            const PaceLimits limits = asked.next(i < 2 ? 1'000'000 : 0);
            if (step >= 100) closed += limits.closed, shared += !limits.closed;
        }
    EXPECT_GT(shared, closed);
}

TEST(YieldPolicy, IsWaryFromTheBeginningOfAFlushAfterOneThatMetTheApplication) {
    Asked asked(settings());
    EXPECT_EQ(asked.next(0).under_way_bytes, 0u);
    asked.next(1'000'000);
    asked.now += 60 * second;
    asked.policy.begin(asked.now);
    EXPECT_EQ(asked.next(0).under_way_bytes, 4'000'000u);
    for (int i = 0; i < 200; ++i) asked.next(0);
    EXPECT_EQ(asked.next(0).under_way_bytes, 0u);
}

TEST(YieldPolicy, AFewBytesAreNotCommunication) {
    Asked asked(settings());
    for (int i = 0; i < 100; ++i) EXPECT_EQ(asked.next(24'000), settings().caps);
    EXPECT_TRUE(asked.next(25'000).closed);
}

TEST(YieldPolicy, IsOpenWhileEveryRankWaits) {
    Asked asked(settings());
    EXPECT_NE(asked.next(1'000'000), PaceLimits{});
    EXPECT_EQ(asked.next(1'000'000, 0, true), PaceLimits{});
    EXPECT_NE(asked.next(0), PaceLimits{});
    EXPECT_EQ(asked.policy.all_waited(), 25 * millisecond);
}

// Storage has a card of its own, and the daemon's carries heartbeats: a share of those would stop the flush.
TEST(YieldPolicy, OfACardThatTheFlushDoesNotUseNoShareIsTaken) {
    YieldPolicy policy(settings());
    Nanos now = 10 * second;
    policy.begin(now);
    for (int i = 0; i < 100; ++i) {
        now += 25 * millisecond;
        EXPECT_EQ(policy.next({now, 1'000'000, 1'000, 10'000'000, false}), settings().caps);
    }
}

TEST(YieldPolicy, ACapBelowTheShareStays) {
    YieldSettings capped = settings();
    capped.caps.out_bytes_s = 1e6;
    Asked asked(capped);
    asked.without_pauses();
    const PaceLimits busy = asked.next(1'000'000);
    EXPECT_EQ(busy.out_bytes_s, 1e6);
    EXPECT_EQ(busy.in_bytes_s, 0.2 * card);
}

TEST(YieldPolicy, MeasuresTheCard) {
    Asked asked(settings(), false);
    asked.without_pauses();
    EXPECT_EQ(asked.next(1'000'000), settings().caps);  // a share of what?
    for (int i = 0; i < 15; ++i) asked.next(0, 1'250'000);
    EXPECT_NEAR(asked.policy.link_bytes_s(), 50e6, 1);
    for (int i = 0; i < 8; ++i) asked.next(0, 10'000);
    asked.without_pauses();
    EXPECT_NEAR(asked.next(1'000'000).in_bytes_s, 10e6, 1);
}

TEST(YieldPolicy, AShareOfOneDoesNotLook) {
    YieldSettings off = settings();
    off.share_busy = 1;
    Asked asked(off);
    EXPECT_EQ(asked.next(1'000'000), off.caps);
}

// ---- the application's traffic ----

// Two ends of a connection over the loopback interface.
struct Pair {
    Pair() {
        const Descriptor listening(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in name{};
        name.sin_family = AF_INET;
        name.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
        socklen_t bytes = sizeof name;
        EXPECT_EQ(::bind(listening.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
        EXPECT_EQ(::listen(listening.get(), 1), 0);
        EXPECT_EQ(::getsockname(listening.get(), reinterpret_cast<sockaddr*>(&name), &bytes), 0);
        one.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        EXPECT_EQ(::connect(one.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
        other.reset(::accept(listening.get(), nullptr, nullptr));
    }
    void pass(std::size_t bytes) {
        std::string data(bytes, 'x');
        EXPECT_EQ(::send(one.get(), data.data(), bytes, 0), static_cast<ssize_t>(bytes));
        EXPECT_EQ(::recv(other.get(), data.data(), bytes, MSG_WAITALL), static_cast<ssize_t>(bytes));
    }
    Descriptor one, other;
};

ApplicationTraffic open_traffic(ApplicationTraffic::Count count) {
    Result<ApplicationTraffic> opened = ApplicationTraffic::open(count);
    EXPECT_TRUE(opened.ok()) << opened.status().to_string();
    return std::move(opened).value();
}

Traffic moved(ApplicationTraffic& traffic, const std::set<std::uint64_t>& processes, Nanos now) {
    Result<Traffic> result = traffic.since_last(processes, now);
    EXPECT_TRUE(result.ok()) << result.status().to_string();
    return result.ok() ? *result : Traffic{};
}

TEST(ApplicationTraffic, CountsWhatItsProcessesMoveAndNothingElse) {
    const std::set<std::uint64_t> us = {static_cast<std::uint64_t>(::getpid())};
    auto ours = open_traffic(ApplicationTraffic::Count::all), others = open_traffic(ApplicationTraffic::Count::all),
         leaving = open_traffic(ApplicationTraffic::Count::leaving);
    Pair pair;
    pair.pass(50'000);
    EXPECT_EQ(moved(ours, us, 0).larger_bytes(), 0u);  // before it was looked at
    moved(others, {1}, 0);
    moved(leaving, us, 0);
    pair.pass(100'000);
    const Traffic first = moved(ours, us, millisecond);
    EXPECT_EQ(first.received_bytes, 100'000u);
    EXPECT_GE(first.sent_bytes, 50'000u);  // what was acknowledged so far
    EXPECT_LE(first.sent_bytes, 150'000u);
    EXPECT_EQ(moved(ours, us, 2 * millisecond).received_bytes, 0u);
    EXPECT_EQ(moved(others, {1}, millisecond).larger_bytes(), 0u);
    EXPECT_EQ(moved(leaving, us, millisecond).larger_bytes(), 0u);
}

TEST(ApplicationTraffic, FindsNewConnectionsWithinASecond) {
    const std::set<std::uint64_t> us = {static_cast<std::uint64_t>(::getpid())};
    auto traffic = open_traffic(ApplicationTraffic::Count::all);
    moved(traffic, us, 0);
    Pair pair;
    moved(traffic, us, millisecond);
    moved(traffic, us, 1001 * millisecond);
    pair.pass(10'000);
    EXPECT_EQ(moved(traffic, us, 1002 * millisecond).received_bytes, 10'000u);
    pair.other.reset(-1);
    pair.one.reset(-1);
    EXPECT_EQ(moved(traffic, us, 1003 * millisecond).larger_bytes(), 0u);
}

// ---- the card ----

class Card : public ::testing::Test {
  protected:
    void SetUp() override {
        std::string pattern = ::testing::TempDir() + "cairn_card_XXXXXX";
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        folder = pattern;
    }
    void TearDown() override { std::filesystem::remove_all(folder); }
    void write(const std::string& name, std::uint64_t value) { std::ofstream(folder + "/" + name) << value << '\n'; }
    std::string folder;
};

TEST_F(Card, ReadsBothKindsOfCounters) {
    const LinkCounters counters = LinkCounters::in(folder);
    EXPECT_EQ(counters.read().code(), Code::not_found);
    write("rx_bytes", 5);
    write("tx_bytes", 18446744073709551615ull);
    Result<Traffic> read = counters.read();
    ASSERT_TRUE(read.ok()) << read.status().to_string();
    EXPECT_EQ(read->received_bytes, 5u);
    EXPECT_EQ(read->sent_bytes, 18446744073709551615ull);
    write("port_rcv_data", 10);
    write("port_xmit_data", 20);
    read = counters.read();
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(read->received_bytes, 40u);
    EXPECT_EQ(read->sent_bytes, 80u);
}

TEST(Interface, IsFoundByAddressAndLoopbackIsNone) {
    EXPECT_EQ(interface_of("tcp://127.0.0.1:4000"), "");
    EXPECT_EQ(interface_of("tcp://[::1]:4000"), "");
    EXPECT_EQ(interface_of("efa://0011223344"), "");
    EXPECT_EQ(interface_of(""), "");
    const Result<Traffic> loopback = LinkCounters::of("lo").read();
    EXPECT_TRUE(loopback.ok()) << loopback.status().to_string();
    EXPECT_EQ(LinkCounters::of("o").read().code(), Code::not_found);
}

// The whole: counters that a folder holds, one flush that moves data of its own and one that meets somebody else's.
Task<void> flush_and_look(Loop& loop, Pace& pace, std::function<void(std::uint64_t)> carry, std::uint64_t others, PaceLimits& tightest) {
    std::uint64_t carried = 0;
    for (int i = 0; i < 60; ++i) {
        const std::function<bool()> over = [] { return false; };
        const Pace::Pass pass = co_await pace.admit(Pace::Step::serve, 1'000'000, over);
        carried += 1'000'000 + others;
        carry(carried);
        co_await loop.sleep(10 * millisecond);
        if (pace.limits().closed) tightest = pace.limits();
    }
}

TEST_F(Card, AFlushDoesNotTakeItselfForTheApplicationAndFindsTheOther) {
    for (const std::uint64_t others : {0ull, 20'000'000ull}) {
        Result<std::unique_ptr<Loop>> loop = Loop::create();
        ASSERT_TRUE(loop.ok());
        Pace pace(**loop, second);
        YieldSettings s = settings();
        s.caps = {};
        s.link = folder;
        write("rx_bytes", 0);
        write("tx_bytes", 0);
        Yielding yielding(**loop, pace, s, [] { return std::string(); });
        Gate gate(**loop);
        gate.spawn(yielding.run([] { return Yielding::Ranks{}; }));
        PaceLimits tightest;
        const auto carry = [&](std::uint64_t bytes) { write("tx_bytes", bytes); };
        ASSERT_TRUE((*loop)->run_until_done(flush_and_look(**loop, pace, carry, others, tightest), (*loop)->in(60 * second)));
        EXPECT_EQ(tightest.closed, others > 0);
    }
}

}  // namespace
}  // namespace cairn
