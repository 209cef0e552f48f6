// What every Clock must do (the contract of clock.hpp), and what Task, Event, Channel and Gate do on top of it. See
// conformance.hpp. No test says how long something may take, only how short it can not be and what comes before what.
#pragma once

#include "world/conformance.hpp"

namespace cairn::conformance {

template <class Bench>
class ClockConformance : public ::testing::Test {
  protected:
    using Body = Task<void> (*)(Bench&);
    void run(Body body) { EXPECT_TRUE(bench_.run(body(bench_))) << "the test did not end within the bench's limit"; }
    Bench bench_;
};
TYPED_TEST_SUITE_P(ClockConformance);

template <class Bench>
Task<void> clock_sleeps(Bench& bench) {
    Clock& clock = bench.clock();
    const Nanos start = clock.now();
    co_await clock.sleep(20 * millisecond);
    EXPECT_GE(clock.now(), start + 20 * millisecond);
    const Nanos then = clock.now();
    co_await clock.sleep_until(then - second);  // past: soon
    co_await clock.sleep(0);
    co_await clock.sleep(-second);
    EXPECT_GE(clock.now(), then);
    EXPECT_EQ(clock.in(never), never);
    EXPECT_EQ(clock.in(never - 1), never);
    EXPECT_GE(clock.in(second), then + second);
}

template <class Bench>
Task<void> clock_timers(Bench& bench) {
    Clock& clock = bench.clock();
    std::vector<int> fired;
    const Nanos start = clock.now();
    clock.at(start + 30 * millisecond, [&] { fired.push_back(3); });
    const Clock::TimerId cancelled = clock.at(start + 15 * millisecond, [&] { fired.push_back(2); });
    clock.at(start + 5 * millisecond, [&] {
        fired.push_back(1);
        clock.cancel(cancelled);
    });
    const Clock::TimerId first = clock.at(start - second, [&] { fired.push_back(0); });
    EXPECT_NE(first, 0u);
    EXPECT_NE(first, cancelled);
    EXPECT_TRUE(fired.empty());  // never from within the call
    co_await clock.sleep_until(start + 60 * millisecond);
    EXPECT_EQ(fired, (std::vector<int>{0, 1, 3}));
    clock.cancel(first);  // fired long ago
    clock.cancel(cancelled);
    clock.cancel(0);
    Clock::TimerId itself = 0;
    itself = clock.at(clock.now(), [&] { clock.cancel(itself); fired.push_back(4); });
    co_await clock.sleep(5 * millisecond);
    EXPECT_EQ(fired.back(), 4);
}

struct PostedTwice {
    Clock& clock;
    bool& resumed;
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> handle) const {
        clock.post(handle);
        clock.unpost(handle);
        EXPECT_FALSE(resumed);
        clock.post(handle);
    }
    void await_resume() const { resumed = true; }
};

template <class Bench>
Task<void> clock_post(Bench& bench) {
    bool resumed = false;
    PostedTwice posted{bench.clock(), resumed};
    co_await posted;
    EXPECT_TRUE(resumed);
    co_await bench.clock().sleep(5 * millisecond);  // a second resumption would run on from here too early
    EXPECT_TRUE(resumed);
}

inline Task<void> wait_event(Event& event, Nanos deadline, int& notified, int& late) {
    const bool told = co_await event.wait(deadline);
    ++(told ? notified : late);
}

template <class Bench>
Task<void> event_wakes(Bench& bench) {
    Clock& clock = bench.clock();
    Event event(clock);
    int notified = 0, late = 0;
    Gate gate(clock);
    for (int i = 0; i < 3; ++i) gate.spawn(wait_event(event, never, notified, late));
    gate.spawn(wait_event(event, clock.in(5 * millisecond), notified, late));
    event.notify_one();
    EXPECT_EQ(notified, 0);  // not from within
    co_await clock.sleep(20 * millisecond);
    EXPECT_EQ(notified, 1);
    EXPECT_EQ(late, 1);
    event.notify_all();
    const bool closed = co_await gate.close(never);
    EXPECT_TRUE(closed);
    EXPECT_EQ(notified, 3);
    event.notify_all();  // nobody
}

// Waiters that were woken but are destroyed before they run, and waiters that outlive their event.
template <class Bench>
Task<void> event_outlived(Bench& bench) {
    Clock& clock = bench.clock();
    int notified = 0, late = 0;
    auto event = std::make_unique<Event>(clock);
    auto gone = std::make_unique<Gate>(clock);
    gone->spawn(wait_event(*event, never, notified, late));
    gone->spawn(wait_event(*event, clock.in(millisecond), notified, late));
    event->notify_all();
    gone.reset();  // posted, but destroyed before they run
    gone = std::make_unique<Gate>(clock);
    gone->spawn(wait_event(*event, clock.in(millisecond), notified, late));
    event.reset();  // before its waiter
    gone.reset();
    co_await clock.sleep(10 * millisecond);
    EXPECT_EQ(notified + late, 0);
}

inline Task<void> consume(Channel<int>& channel, std::vector<int>& got, Code& end, Nanos deadline) {
    for (;;) {
        Result<int> item = co_await channel.receive(deadline);
        if (!item.ok()) {
            end = item.code();
            co_return;
        }
        got.push_back(*item);
    }
}
inline Task<void> produce(Channel<int>& channel, int from, int count, int& sent, Code& end, Nanos deadline) {
    for (int i = 0; i < count; ++i) {
        Status status = co_await channel.send(from + i, deadline);
        end = status.code();
        if (!status.ok()) co_return;
        ++sent;
    }
}

template <class Bench>
Task<void> channel_passes(Bench& bench) {
    Clock& clock = bench.clock();
    Channel<int> channel(clock, 3);
    std::vector<int> got;
    Code received = Code::ok, produced[2] = {Code::internal, Code::internal};
    int sent = 0;
    Gate gate(clock);
    gate.spawn(produce(channel, 0, 50, sent, produced[0], never));
    gate.spawn(produce(channel, 1000, 50, sent, produced[1], never));
    EXPECT_EQ(channel.size(), 3u);  // bounded
    EXPECT_FALSE(channel.try_send(1));
    gate.spawn(consume(channel, got, received, never));
    const bool produced_all = co_await gate.wait_active_at_most(1, never);
    CO_ASSERT(produced_all);
    channel.close();
    const bool closed = co_await gate.close(never);
    CO_ASSERT(closed);
    EXPECT_EQ(sent, 100);
    EXPECT_EQ(got.size(), 100u);
    EXPECT_EQ(received, Code::cancelled);
    std::vector<int> low;
    for (int item : got)
        if (item < 1000) low.push_back(item);
    EXPECT_TRUE(std::is_sorted(low.begin(), low.end()));  // one sender's items keep their order
    EXPECT_TRUE(produced[0] == Code::ok && produced[1] == Code::ok);
}

template <class Bench>
Task<void> channel_closes(Bench& bench) {
    Clock& clock = bench.clock();
    Channel<int> channel(clock, 2);
    int sent = 0;
    Code produced = Code::ok;
    Gate gate(clock);
    gate.spawn(produce(channel, 0, 5, sent, produced, never));
    channel.close();
    const bool closed = co_await gate.close(never);
    CO_ASSERT(closed);
    EXPECT_EQ(produced, Code::cancelled);
    EXPECT_EQ(sent, 2);
    Result<int> item = co_await channel.receive(never);  // what was in it is still had
    EXPECT_TRUE(item.ok() && *item == 0);
    std::optional<int> second_item = channel.try_receive();
    EXPECT_TRUE(second_item && *second_item == 1);
    item = co_await channel.receive(never);
    EXPECT_EQ(item.code(), Code::cancelled);
    EXPECT_FALSE(channel.try_send(9));
    Status status = co_await channel.send(9, never);
    EXPECT_EQ(status.code(), Code::cancelled);
}

template <class Bench>
Task<void> channel_deadlines(Bench& bench) {
    Clock& clock = bench.clock();
    Channel<int> channel(clock, 1);
    const Nanos start = clock.now();
    Result<int> item = co_await channel.receive(clock.in(5 * millisecond));
    EXPECT_EQ(item.code(), Code::deadline);
    EXPECT_GE(clock.now(), start + 5 * millisecond);
    Status status = co_await channel.send(1, clock.now());
    EXPECT_TRUE(status.ok());  // there was room
    status = co_await channel.send(2, clock.in(5 * millisecond));
    EXPECT_EQ(status.code(), Code::deadline);
    item = co_await channel.receive(clock.now() - 1);  // what is there needs no time
    EXPECT_TRUE(item.ok() && *item == 1);
    item = co_await channel.receive(clock.now() - 1);
    EXPECT_EQ(item.code(), Code::deadline);
}

// Who was woken but is destroyed before it runs passes the wake-up on: nobody waits beside an item, or beside room.
template <class Bench>
Task<void> channel_survives_deaths(Bench& bench) {
    Clock& clock = bench.clock();
    for (int end : {0, 1}) {  // of receivers, of senders
        auto channel = std::make_unique<Channel<int>>(clock, 1);
        std::vector<int> got;
        Code code = Code::ok;
        int sent = 0;
        auto first = std::make_unique<Gate>(clock), second_gate = std::make_unique<Gate>(clock);
        if (end == 0) {
            first->spawn(consume(*channel, got, code, never));
            second_gate->spawn(consume(*channel, got, code, never));
            EXPECT_TRUE(channel->try_send(7));
            first.reset();
            co_await clock.sleep(5 * millisecond);
            EXPECT_EQ(got, std::vector<int>{7});
        } else {
            EXPECT_TRUE(channel->try_send(1));
            first->spawn(produce(*channel, 10, 1, sent, code, never));
            second_gate->spawn(produce(*channel, 20, 1, sent, code, never));
            EXPECT_TRUE(channel->try_receive().has_value());
            first.reset();
            co_await clock.sleep(5 * millisecond);
            EXPECT_EQ(sent, 1);
            std::optional<int> item = channel->try_receive();
            EXPECT_TRUE(item && *item == 20);
        }
        channel.reset();  // before its waiters
        second_gate.reset();
    }
    co_await clock.sleep(5 * millisecond);
}

inline Task<int> depth(Clock& clock, int levels) {
    if (levels == 0) {
        co_await clock.sleep(millisecond);
        co_return 0;
    }
    const int below = co_await depth(clock, levels - 1);
    co_return below + 1;
}
struct Counted {
    int& alive;
    explicit Counted(int& a) : alive(a) { ++alive; }
    Counted(const Counted&) = delete;
    ~Counted() { --alive; }
};
inline Task<void> hold(Clock& clock, int& alive, Nanos span) {
    Counted counted(alive);
    (void)co_await depth(clock, 3);
    co_await clock.sleep(span);
}

template <class Bench>
Task<void> task_nests(Bench& bench) {
    const int levels = co_await depth(bench.clock(), 5'000);
    EXPECT_EQ(levels, 5'000);
    int alive = 0;
    {
        Task<void> never_started = hold(bench.clock(), alive, 0);
        EXPECT_EQ(alive, 0);
        Task<void> task = hold(bench.clock(), alive, 0);
        task.start();
        EXPECT_EQ(alive, 1);
        EXPECT_FALSE(task.done());
        Task<void> moved = std::move(task);
        EXPECT_TRUE(task.done());
        moved = hold(bench.clock(), alive, 0);  // destroys the one that was running
        EXPECT_EQ(alive, 0);
    }
    co_await bench.clock().sleep(5 * millisecond);
    EXPECT_EQ(alive, 0);
}

template <class Bench>
Task<void> gate_closes(Bench& bench) {
    Clock& clock = bench.clock();
    int alive = 0;
    Gate gate(clock);
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(gate.spawn(hold(clock, alive, (i % 2) * 20 * millisecond)));
    EXPECT_EQ(gate.active(), 4u);
    EXPECT_EQ(alive, 4);
    const bool few = co_await gate.wait_active_at_most(2, never);
    EXPECT_TRUE(few);
    EXPECT_EQ(alive, 2);
    EXPECT_TRUE(gate.spawn(hold(clock, alive, second * 1000)));
    bool closed = co_await gate.close(clock.in(5 * millisecond));
    EXPECT_FALSE(closed);  // at the deadline
    EXPECT_TRUE(gate.is_closed());
    EXPECT_FALSE(gate.spawn(hold(clock, alive, 0)));
    const bool two = co_await gate.wait_active_at_most(1, never);
    EXPECT_TRUE(two);
    EXPECT_EQ(alive, 1);
    {
        Gate dying(clock);
        for (int i = 0; i < 4; ++i) dying.spawn(hold(clock, alive, second * 1000));
        EXPECT_EQ(alive, 5);
    }
    EXPECT_EQ(alive, 1);
}

// A coordinator's daemon that stood still finds a hundred thousand messages: each starts a task. Looking at all of them each time takes minutes.
template <class Bench>
Task<void> gate_of_many(Bench& bench) {
    constexpr int many = 200'000;
    Clock& clock = bench.clock();
    Event event(clock);
    int notified = 0, late = 0;
    Gate gate(clock);
    for (int i = 0; i < many; ++i) gate.spawn(wait_event(event, never, notified, late));
    EXPECT_EQ(gate.active(), static_cast<std::size_t>(many));
    event.notify_all();
    const bool closed = co_await gate.close(never);
    EXPECT_TRUE(closed);
    EXPECT_EQ(notified, many);
}

TYPED_TEST_P(ClockConformance, Sleeps) { this->run(clock_sleeps<TypeParam>); }
TYPED_TEST_P(ClockConformance, Timers) { this->run(clock_timers<TypeParam>); }
TYPED_TEST_P(ClockConformance, Post) { this->run(clock_post<TypeParam>); }
TYPED_TEST_P(ClockConformance, EventWakes) { this->run(event_wakes<TypeParam>); }
TYPED_TEST_P(ClockConformance, EventOutlivedByWaiters) { this->run(event_outlived<TypeParam>); }
TYPED_TEST_P(ClockConformance, ChannelPasses) { this->run(channel_passes<TypeParam>); }
TYPED_TEST_P(ClockConformance, ChannelCloses) { this->run(channel_closes<TypeParam>); }
TYPED_TEST_P(ClockConformance, ChannelDeadlines) { this->run(channel_deadlines<TypeParam>); }
TYPED_TEST_P(ClockConformance, ChannelSurvivesDeaths) { this->run(channel_survives_deaths<TypeParam>); }
TYPED_TEST_P(ClockConformance, TaskNestsAndDies) { this->run(task_nests<TypeParam>); }
TYPED_TEST_P(ClockConformance, GateCloses) { this->run(gate_closes<TypeParam>); }
TYPED_TEST_P(ClockConformance, GateOfMany) { this->run(gate_of_many<TypeParam>); }
REGISTER_TYPED_TEST_SUITE_P(ClockConformance, Sleeps, Timers, Post, EventWakes, EventOutlivedByWaiters, ChannelPasses,
                            ChannelCloses, ChannelDeadlines, ChannelSurvivesDeaths, TaskNestsAndDies, GateCloses, GateOfMany);

}  // namespace cairn::conformance
