// Clock: monotonic time, timers, and the queue of coroutines that are ready to run. Never compared across nodes; safety rests
// on epochs and names, not on time (rule 6).
#pragma once

#include <coroutine>
#include <cstdint>
#include <functional>

#include "world/task.hpp"

namespace cairn {

using Nanos = std::int64_t;  // a point in monotonic time, or a span of it, nanoseconds
inline constexpr Nanos microsecond = 1'000;
inline constexpr Nanos millisecond = 1'000'000;
inline constexpr Nanos second = 1'000'000'000;
inline constexpr Nanos never = INT64_MAX;

class Clock {
  public:
    using TimerId = std::uint64_t;  // 0 is no timer
    virtual ~Clock() = default;

    virtual Nanos now() const = 0;
    // Seconds since 1970, for people who read a manifest, and for the first epoch of a series (claim_epoch). 0 where there is no such time.
    virtual std::uint64_t wall_time_s() const { return 0; }
    // Resumes `handle` from the loop, soon, never from within this call.
    virtual void post(std::coroutine_handle<> handle) = 0;
    // Takes a posted handle back; called when its frame is destroyed before it ran.
    virtual void unpost(std::coroutine_handle<> handle) = 0;
    // Calls `action` from the loop at `when`, or soon if that is past. cancel() of a timer that fired or of 0 does nothing.
    virtual TimerId at(Nanos when, std::function<void()> action) = 0;
    virtual void cancel(TimerId timer) = 0;

    Nanos in(Nanos span) const { return span >= never - now() ? never : now() + span; }

    struct SleepAwaiter {
        Clock& clock;
        Nanos until;
        TimerId timer = 0;
        std::coroutine_handle<> waiter = {};
        SleepAwaiter(Clock& c, Nanos u) : clock(c), until(u) {}
        SleepAwaiter(const SleepAwaiter&) = delete;
        ~SleepAwaiter() { clock.cancel(timer); }
        bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<> h) {
            waiter = h;
            timer = clock.at(until, [this] { timer = 0; waiter.resume(); });
        }
        void await_resume() const noexcept {}
    };
    SleepAwaiter sleep_until(Nanos when) { return {*this, when}; }
    SleepAwaiter sleep(Nanos span) { return {*this, in(span)}; }
};

}  // namespace cairn
