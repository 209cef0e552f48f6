#include "world/real/loop.hpp"

#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "world/channel.hpp"
#include "world/gate.hpp"
#include "world/real/test_world.hpp"

namespace cairn {
namespace {

using test::make_loop;
using test::patience;

struct Yield {
    Clock& clock;
    std::coroutine_handle<> handle = {};
    explicit Yield(Clock& c) : clock(c) {}
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h) {
        handle = h;
        clock.post(h);
    }
    void await_resume() noexcept { handle = {}; }
    ~Yield() {
        if (handle) clock.unpost(handle);
    }
};

Task<void> note_turns(Clock& clock, int turns, int name, std::vector<int>& notes) {
    for (int turn = 0; turn < turns; ++turn) {
        notes.push_back(name);
        Yield yield(clock);
        co_await yield;
    }
}

Task<void> both(Clock& clock, std::vector<int>& notes) {
    Gate gate(clock);
    gate.spawn(note_turns(clock, 3, 1, notes));
    gate.spawn(note_turns(clock, 3, 2, notes));
    co_await gate.close();
}

TEST(Loop, ReadyCoroutinesTakeTurns) {
    const auto loop = make_loop();
    std::vector<int> notes;
    EXPECT_TRUE(loop->run_until_done(both(*loop, notes), loop->in(patience)));
    EXPECT_EQ(notes, (std::vector<int>{1, 2, 1, 2, 1, 2}));
}

TEST(Loop, PostNeverResumesFromWithin) {
    const auto loop = make_loop();
    std::vector<int> notes;
    Task<void> task = note_turns(*loop, 2, 7, notes);
    task.start();
    EXPECT_EQ(notes.size(), 1u);
}

TEST(Loop, UnpostedHandleIsNotResumed) {
    const auto loop = make_loop();
    std::vector<int> dropped, kept;
    {
        Task<void> task = note_turns(*loop, 5, 1, dropped);
        task.start();
    }
    EXPECT_TRUE(loop->run_until_done(note_turns(*loop, 5, 2, kept), loop->in(patience)));
    EXPECT_EQ(dropped.size(), 1u);
    EXPECT_EQ(kept.size(), 5u);
}

TEST(Loop, TimersFireInOrderOfTimeThenOfSetting) {
    const auto loop = make_loop();
    const Nanos base = loop->now() + 5 * millisecond;
    std::vector<int> fired;
    loop->at(base + 2, [&] { fired.push_back(3); });
    loop->at(base, [&] { fired.push_back(1); });
    loop->at(base, [&] { fired.push_back(2); });
    loop->at(base + 3, [&] { loop->stop(); });
    loop->run();
    EXPECT_EQ(fired, (std::vector<int>{1, 2, 3}));
}

Task<void> note_event(Event& event, Nanos deadline, std::vector<int>& notes) {
    const bool told = co_await event.wait(deadline);
    notes.push_back(told ? 0 : 1);
}

TEST(Loop, LateTimersKeepTheOrderOfTime) {
    const auto loop = make_loop();
    Event event(*loop);
    std::vector<int> notes;
    const Nanos past = loop->now() - second;
    Task<void> waiter = note_event(event, past, notes);
    waiter.start();
    loop->at(past + 1, [&] {
        notes.push_back(2);
        loop->stop();
    });
    loop->run();
    EXPECT_EQ(notes, (std::vector<int>{1, 2}));
}

TEST(Loop, CancelledTimerDoesNotFire) {
    const auto loop = make_loop();
    bool fired = false;
    const auto timer = loop->at(loop->now() + millisecond, [&] { fired = true; });
    loop->cancel(timer);
    loop->cancel(timer);
    loop->cancel(0);
    loop->at(loop->now() + 5 * millisecond, [&] { loop->stop(); });
    loop->run();
    EXPECT_FALSE(fired);
}

TEST(Loop, TimerMayCancelAnotherOneDueWithIt) {
    const auto loop = make_loop();
    const Nanos when = loop->now();
    bool fired = false;
    Clock::TimerId second_timer = 0;
    loop->at(when, [&] { loop->cancel(second_timer); });
    second_timer = loop->at(when, [&] { fired = true; });
    loop->at(when, [&] { loop->stop(); });
    loop->run();
    EXPECT_FALSE(fired);
}

TEST(Loop, TimerThatSetsItselfForNowDoesNotHoldTheLoop) {
    const auto loop = make_loop();
    int fired = 0;
    std::function<void()> again = [&] {
        ++fired;
        loop->at(0, again);
    };
    loop->at(0, again);
    loop->at(loop->now() + 5 * millisecond, [&] { loop->stop(); });
    loop->run();
    EXPECT_GE(fired, 1);  // and the other timer had its turn, or this would not end
}

TEST(Loop, NeverMeansNever) {
    const auto loop = make_loop();
    bool fired = false;
    loop->at(never, [&] { fired = true; });
    loop->at(loop->now() + 2 * millisecond, [&] { loop->stop(); });
    loop->run();
    EXPECT_FALSE(fired);
}

Task<void> sleep_for(Clock& clock, Nanos span) { co_await clock.sleep(span); }

TEST(Loop, SleepLastsAtLeastItsTime) {
    const auto loop = make_loop();
    const Nanos began = loop->now();
    EXPECT_TRUE(loop->run_until_done(sleep_for(*loop, 3 * millisecond), loop->in(patience)));
    EXPECT_GE(loop->now() - began, 3 * millisecond);
}

TEST(Loop, RunUntilDoneEndsAtTheDeadlineAndDestroysTheTask) {
    const auto loop = make_loop();
    EXPECT_FALSE(loop->run_until_done(sleep_for(*loop, never), loop->in(2 * millisecond)));
    EXPECT_TRUE(loop->run_until_done(sleep_for(*loop, millisecond), loop->in(patience)));
}

Task<int> forty_two(Clock& clock) {
    co_await clock.sleep(millisecond);
    co_return 42;
}

TEST(Loop, RunGivesTheTasksValue) {
    const auto loop = make_loop();
    EXPECT_EQ(loop->run(forty_two(*loop)), 42);
}

TEST(Loop, StopBeforeRunEndsItAtOnce) {
    const auto loop = make_loop();
    loop->stop();
    loop->run();
    EXPECT_EQ(loop->run(forty_two(*loop)), 42);
}

TEST(Loop, CallSoonFromOtherThreads) {
    const auto loop = make_loop();
    int called = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            for (int n = 0; n < 1000; ++n) {
                loop->call_soon([&] {
                    if (++called == 4000) loop->stop();
                });
            }
        });
    }
    loop->run();
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(called, 4000);
}

TEST(Loop, RemoteOutlivesTheLoop) {
    auto loop = make_loop();
    const auto remote = loop->remote();
    EXPECT_TRUE(remote->call_soon([] { FAIL() << "ran without a loop"; }));
    loop.reset();
    EXPECT_FALSE(remote->call_soon([] { FAIL() << "ran without a loop"; }));
}

TEST(Loop, WatchTellsEachTimeUntilUnwatched) {
    const auto loop = make_loop();
    const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int told = 0;
    Loop::WatchId id = 0;
    Result<Loop::WatchId> watch = loop->watch_readable(fd, [&] {
        eventfd_t count;
        ::eventfd_read(fd, &count);
        if (++told == 3) {
            loop->unwatch(id);
            loop->stop();
        }
        ::eventfd_write(fd, 1);
    });
    ASSERT_TRUE(watch.ok()) << watch.status().to_string();
    id = *watch;
    ::eventfd_write(fd, 1);
    loop->run();
    loop->at(loop->now() + 2 * millisecond, [&] { loop->stop(); });
    loop->run();
    EXPECT_EQ(told, 3);
    EXPECT_EQ(::eventfd_write(fd, 1), 0) << "unwatch closed the descriptor";
    ::close(fd);
}

TEST(Loop, WatchTellsOfWhatWasReadableBefore) {
    const auto loop = make_loop();
    const int fd = ::eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    ASSERT_TRUE(loop->watch_readable(fd,
                                     [&] {
                                         eventfd_t count;
                                         ::eventfd_read(fd, &count);
                                         loop->stop();
                                     })
                    .ok());
    loop->run();
    ::close(fd);
}

TEST(Loop, WatchRefusesFilesAndBadDescriptors) {
    const auto loop = make_loop();
    FILE* const file = ::tmpfile();
    EXPECT_EQ(loop->watch_readable(::fileno(file), [] {}).code(), Code::invalid_argument);
    ::fclose(file);
    EXPECT_FALSE(loop->watch_readable(-1, [] {}).ok());
}

std::vector<void (*)(int)> signal_handlers() {
    std::vector<void (*)(int)> handlers;
    for (int number = 1; number < NSIG; ++number) {
        struct sigaction action = {};
        ::sigaction(number, nullptr, &action);  // two are the C library's own: left empty
        handlers.push_back(action.sa_handler);
    }
    return handlers;
}

TEST(Loop, InstallsNoSignalHandler) {
    const auto before = signal_handlers();
    const auto loop = make_loop();
    loop->run(forty_two(*loop));
    EXPECT_EQ(signal_handlers(), before);
}

TEST(Loop, NoDescriptorsLeftIsAnError) {
    rlimit before = {};
    ::getrlimit(RLIMIT_NOFILE, &before);
    rlimit none = before;
    none.rlim_cur = 0;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    Result<std::unique_ptr<Loop>> loop = Loop::create();
    ::setrlimit(RLIMIT_NOFILE, &before);
    EXPECT_EQ(loop.code(), Code::unavailable);
}

}  // namespace
}  // namespace cairn
