// Loop: the real world's clock and the one thread of the engine: an asio io_context with Cairn's timers and queue of
// ready coroutines. It starts no thread and installs no signal handler, so a client library may own one and drive it
// from whichever thread calls (one at a time).
//
// Everything belongs to the thread that drives the loop, but for what says "any thread".
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/status.hpp"
#include "world/clock.hpp"

namespace asio {
class io_context;
}

namespace cairn {

// A way into the loop for threads that may outlive it.
class LoopRemote {
  public:
    virtual ~LoopRemote() = default;
    // Any thread. Calls `action` on the loop's thread, soon. When the loop is gone the action is dropped unrun, and
    // false.
    virtual bool call_soon(std::function<void()> action) = 0;
};

class Loop final : public Clock {
  public:
    // unavailable when the process has no file descriptors left.
    static Result<std::unique_ptr<Loop>> create();
    ~Loop() override;

    Nanos now() const override;
    std::uint64_t wall_time_s() const override;
    void post(std::coroutine_handle<> handle) override;
    void unpost(std::coroutine_handle<> handle) override;
    TimerId at(Nanos when, std::function<void()> action) override;
    void cancel(TimerId timer) override;

    // Runs until stop(). A stop() that came first ends it at once.
    void run();
    void stop();  // any thread

    // Drives one task from start to end on the calling thread, and whatever else is in the loop meanwhile; stop() does
    // not end it. Not from within the loop. False when `deadline`, a point of now(), came first: the task has been
    // destroyed.
    bool run_until_done(Task<void> task, Nanos deadline);
    template <class T>
    T run(Task<T> task) {
        task.start();
        drive(task.handle(), never);
        return task.await_resume();
    }

    // Any thread.
    void call_soon(std::function<void()> action) { remote_->call_soon(std::move(action)); }
    const std::shared_ptr<LoopRemote>& remote() const noexcept { return remote_; }

    // Calls `action` after `fd` became readable, again and again until unwatch(). The action must take away what made
    // it readable. The descriptor stays the caller's: unwatch it, then close it. Fails on regular files and on a
    // descriptor watched already.
    using WatchId = std::uint64_t;  // 0 is no watch
    Result<WatchId> watch_readable(int fd, std::function<void()> action);
    void unwatch(WatchId watch);

    asio::io_context& context() noexcept;

  private:
    struct Impl;
    explicit Loop(std::unique_ptr<Impl> impl);
    void drive(std::coroutine_handle<> task, Nanos deadline);

    std::unique_ptr<Impl> impl_;
    std::shared_ptr<LoopRemote> remote_;
};

}  // namespace cairn
