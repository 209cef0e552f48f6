#include "world/real/worker_pool.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "world/real/test_world.hpp"

namespace cairn {
namespace {

using test::make_loop;
using test::patience;

class FunctionJob final : public Job {
  public:
    FunctionJob(std::function<void()> work, std::function<void()> then)
        : work_(std::move(work)), then_(std::move(then)) {}
    void run() override { work_(); }
    void finished() override { then_(); }

  private:
    std::function<void()> work_, then_;
};

std::shared_ptr<Job> job(
    std::function<void()> work, std::function<void()> then = [] {}) {
    return std::make_shared<FunctionJob>(std::move(work), std::move(then));
}

// Blocks the jobs that call it until it is opened. Jobs share the state: they may outlive the test.
class Barrier {
  public:
    std::function<void()> blocker() const {
        return [state = state_] {
            ++state->arrived;
            state->opened.wait(false);
        };
    }
    void await_arrived(int count) const {
        while (state_->arrived < count) std::this_thread::yield();
    }
    void open() {
        state_->opened = true;
        state_->opened.notify_all();
    }

  private:
    struct State {
        std::atomic<bool> opened = false;
        std::atomic<int> arrived = 0;
    };
    std::shared_ptr<State> state_ = std::make_shared<State>();
};

Task<void> short_sleep(Clock& clock) { co_await clock.sleep(millisecond); }

// By new threads, while the old ones are held by what they are at.
TEST(WorkerPool, AnotherClassIsForAllThatHasNotBegun) {
    const auto loop = make_loop();
    constexpr unsigned threads = 2;
    WorkerPool pool(loop->remote(), {.threads_max = threads, .thread_class = {CpuClass::low, IoClass::normal}});
    Barrier barrier;
    std::atomic<int> finished = 0, low = 0, nice_10 = 0;
    const auto count = [&] {
        const int nice = ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()));
        ++(nice == 19 ? low : nice_10);
    };
    const auto then = [&] { ++finished; };
    for (unsigned i = 0; i < threads; ++i) ASSERT_TRUE(pool.submit(job([&, block = barrier.blocker()] { count(), block(); }, then)).ok());
    barrier.await_arrived(threads);
    ASSERT_TRUE(pool.submit(job(count, then)).ok());  // none is free
    pool.set_class({CpuClass::nice_10, IoClass::normal});
    ASSERT_TRUE(pool.submit(job(count, then)).ok());
    while (finished < 2) loop->run(short_sleep(*loop));
    EXPECT_EQ(low, 2);
    EXPECT_EQ(nice_10, 2);
    barrier.open();
    while (finished < 4 || pool.threads() > threads) loop->run(short_sleep(*loop));
    pool.set_class({CpuClass::low, IoClass::normal});
    ASSERT_TRUE(pool.submit(job(count, then)).ok());
    while (finished < 5) loop->run(short_sleep(*loop));
    EXPECT_EQ(low, 3);
}

// What was written off in a class that was left counts among those that may be.
TEST(WorkerPool, StuckThreadsAreBoundedOverAllClasses) {
    const auto loop = make_loop();
    WorkerPool pool(loop->remote(), {.threads_max = 1, .stuck_max = 1, .exit_wait = millisecond});
    Barrier barrier;
    int finished = 0;
    const auto stuck = job(barrier.blocker(), [&] { ++finished; });
    ASSERT_TRUE(pool.submit(stuck).ok());
    barrier.await_arrived(1);
    EXPECT_FALSE(pool.abandon(stuck));
    pool.set_class({CpuClass::low, IoClass::normal});
    const auto second = job(barrier.blocker(), [&] { ++finished; });
    ASSERT_TRUE(pool.submit(second).ok());
    barrier.await_arrived(2);
    EXPECT_FALSE(pool.abandon(second));
    EXPECT_EQ(pool.stuck(), 2u);
    bool ran = false;
    ASSERT_TRUE(pool.submit(job([&] { ran = true; }, [&] { ++finished; })).ok());
    for (int i = 0; i < 20; ++i) loop->run(short_sleep(*loop));
    EXPECT_FALSE(ran) << "two may be stuck and none is left to run it";
    barrier.open();
    while (finished < 3) loop->run(short_sleep(*loop));
    EXPECT_TRUE(ran);
    EXPECT_EQ(pool.stuck(), 0u);
}

TEST(WorkerPool, RunsInThreadsAndFinishesOnTheLoop) {
    const auto loop = make_loop();
    WorkerPool pool(loop->remote(), {.threads_max = 3});
    EXPECT_EQ(pool.threads(), 0u) << "threads before there is work";
    const auto here = std::this_thread::get_id();
    std::atomic<int> ran = 0;
    int finished = 0;
    for (int i = 0; i < 100; ++i) {
        const auto work = [&] {
            EXPECT_NE(std::this_thread::get_id(), here);
            ++ran;
        };
        const auto then = [&] {
            EXPECT_EQ(std::this_thread::get_id(), here);
            if (++finished == 100) loop->stop();
        };
        ASSERT_TRUE(pool.submit(job(work, then)).ok());
    }
    loop->run();
    EXPECT_EQ(ran, 100);
    EXPECT_LE(pool.threads(), 3u);
}

TEST(WorkerPool, ThreadsEndWhenIdle) {
    const auto loop = make_loop();
    WorkerPool pool(loop->remote(), {.threads_max = 2, .idle = millisecond});
    ASSERT_TRUE(pool.submit(job([] {}, [&] { loop->stop(); })).ok());
    loop->run();
    const Nanos limit = loop->in(patience);
    while (pool.threads() != 0 && loop->now() < limit) std::this_thread::yield();
    EXPECT_EQ(pool.threads(), 0u);
    ASSERT_TRUE(pool.submit(job([] {}, [&] { loop->stop(); })).ok());
    loop->run();
}

TEST(WorkerPool, ThreadsTakeNoSignals) {
    const auto loop = make_loop();
    WorkerPool pool(loop->remote(), {});
    bool blocked = false;
    const auto look = [&] {
        sigset_t mask;
        pthread_sigmask(SIG_SETMASK, nullptr, &mask);
        blocked =
            sigismember(&mask, SIGINT) == 1 && sigismember(&mask, SIGALRM) == 1 && sigismember(&mask, SIGUSR1) == 1 &&
                  sigismember(&mask, SIGBUS) == 0;
    };
    ASSERT_TRUE(pool.submit(job(look, [&] { loop->stop(); })).ok());
    loop->run();
    EXPECT_TRUE(blocked);
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    EXPECT_EQ(sigismember(&mask, SIGINT), 0) << "the caller's own mask changed";
}

TEST(WorkerPool, StuckThreadsAreReplacedAndRetireWhenTheyComeBack) {
    const auto loop = make_loop();
    Barrier barrier;
    WorkerPool pool(loop->remote(), {.threads_max = 2, .stuck_max = 4});
    int late = 0;
    std::vector<std::shared_ptr<Job>> stuck;
    for (int round = 1; round <= 2; ++round) {
        for (int i = 0; i < 2; ++i) {
            stuck.push_back(job(barrier.blocker(), [&] { ++late; }));
            ASSERT_TRUE(pool.submit(stuck.back()).ok());
        }
        barrier.await_arrived(2 * round);
        for (int i = 0; i < 2; ++i) EXPECT_FALSE(pool.abandon(stuck[stuck.size() - 1 - static_cast<std::size_t>(i)]));
        EXPECT_EQ(pool.stuck(), 2u * static_cast<unsigned>(round));
    }
    ASSERT_TRUE(pool.submit(job([] {}, [&] { loop->stop(); })).ok());
    loop->run();  // ends: there was a thread for it
    barrier.open();
    const Nanos limit = loop->in(patience);
    while (late < 4 && loop->now() < limit) {
        const bool slept = loop->run_until_done(short_sleep(*loop), limit);
        EXPECT_TRUE(slept);
    }
    EXPECT_EQ(late, 4) << "finished() comes for abandoned jobs too";
    EXPECT_EQ(pool.stuck(), 0u);
    while (pool.threads() > 2 && loop->now() < limit) std::this_thread::yield();
    EXPECT_LE(pool.threads(), 2u);
}

TEST(WorkerPool, ReplacementIsBounded) {
    const auto loop = make_loop();
    Barrier barrier;
    {
        WorkerPool pool(loop->remote(), {.threads_max = 1, .stuck_max = 2});
        std::vector<std::shared_ptr<Job>> stuck;
        for (int i = 1; i <= 3; ++i) {
            stuck.push_back(job(barrier.blocker()));
            ASSERT_TRUE(pool.submit(stuck.back()).ok());
            barrier.await_arrived(i);
            pool.abandon(stuck.back());
        }
        EXPECT_EQ(pool.threads(), 3u);
        const auto waiting = job([] { FAIL() << "ran without a thread"; });
        ASSERT_TRUE(pool.submit(waiting).ok()) << "work waits for its deadline";
        EXPECT_EQ(pool.threads(), 3u);
        EXPECT_TRUE(pool.abandon(waiting));
    }  // does not wait for the stuck ones
    barrier.open();
}

TEST(WorkerPool, AbandonedInTheQueueIsNeverRun) {
    const auto loop = make_loop();
    Barrier barrier;
    WorkerPool pool(loop->remote(), {.threads_max = 1});
    ASSERT_TRUE(pool.submit(job(barrier.blocker())).ok());
    barrier.await_arrived(1);
    const auto unwanted = job([] { FAIL() << "ran"; }, [] { FAIL() << "finished"; });
    ASSERT_TRUE(pool.submit(unwanted).ok());
    EXPECT_TRUE(pool.abandon(unwanted));
    ASSERT_TRUE(pool.submit(job([] {}, [&] { loop->stop(); })).ok());
    barrier.open();
    loop->run();
}

TEST(WorkerPool, DestructorWaitsForWorkAndDisposerOutlivesIt) {
    const auto loop = make_loop();
    std::atomic<bool> ran = false;
    WorkerPool::Disposer dispose;
    {
        WorkerPool pool(loop->remote(), {.exit_wait = patience});
        dispose = pool.disposer();
        dispose([&] { ran = true; });
    }
    EXPECT_TRUE(ran);
    Barrier held;
    const auto let_go = std::make_shared<std::atomic<bool>>(false);
    dispose([work = held.blocker(), let_go] {
        work();
        *let_go = true;
    });
    EXPECT_FALSE(*let_go) << "who ends a world does not wait for a file system that hangs";
    held.open();
    for (int tries = 0; !*let_go && tries < 5000; ++tries) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_TRUE(*let_go);
}

TEST(WorkerPool, JobComesBackAfterPoolAndLoopAreGone) {
    auto loop = make_loop();
    Barrier barrier;
    auto held = std::make_shared<int>(7);
    const std::weak_ptr<int> watched = held;
    {
        WorkerPool pool(loop->remote(), {.exit_wait = patience});
        auto blocked = job([work = barrier.blocker(), held = std::move(held)] { work(); }, [] { FAIL() << "no loop"; });
        ASSERT_TRUE(pool.submit(blocked).ok());
        barrier.await_arrived(1);
        pool.abandon(blocked);
    }
    loop.reset();
    EXPECT_FALSE(watched.expired()) << "a stuck job lost what it holds";
    barrier.open();
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!watched.expired() && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
    EXPECT_TRUE(watched.expired());
}

}  // namespace
}  // namespace cairn
