// Task<T>: a lazily started coroutine with one awaiter. The engine is written in these.
//
// A Task owns its frame; destroying a suspended Task destroys the frame and, through its locals, everything it was waiting
// for. Every awaitable in world/ takes its waiter out of its queue in its destructor, so that this is always safe: it is how the
// simulated world kills a process in the middle of anything.
//
// House rule for coroutines (GCC 12 miscompiles the alternatives): arguments are named values, and `co_await` never stands
// inside a braced initialiser, a conditional expression or another call's arguments.
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

#include "base/status.hpp"

namespace cairn {

template <class T = void>
class Task;

namespace detail {

struct FinalAwaiter {
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> self) const noexcept {
        auto next = self.promise().continuation;
        return next ? next : std::noop_coroutine();
    }
    void await_resume() const noexcept {}
};

struct PromiseBase {
    std::coroutine_handle<> continuation;
    std::suspend_always initial_suspend() const noexcept { return {}; }
    FinalAwaiter final_suspend() const noexcept { return {}; }
    [[noreturn]] void unhandled_exception() const noexcept { std::terminate(); }  // nothing in the core throws but bad_alloc
};

template <class T>
struct Promise : PromiseBase {
    std::optional<T> value;
    Task<T> get_return_object();
    template <class U>
    void return_value(U&& result) { value.emplace(std::forward<U>(result)); }
};

template <>
struct Promise<void> : PromiseBase {
    Task<void> get_return_object();
    void return_void() const noexcept {}
};

}  // namespace detail

template <class T>
class [[nodiscard]] Task {
  public:
    using promise_type = detail::Promise<T>;
    using Handle = std::coroutine_handle<promise_type>;

    Task() noexcept = default;
    explicit Task(Handle handle) noexcept : handle_(handle) {}
    Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
    Task& operator=(Task&& other) noexcept {
        if (this != &other) {
            if (handle_) handle_.destroy();
            handle_ = std::exchange(other.handle_, {});
        }
        return *this;
    }
    ~Task() {
        if (handle_) handle_.destroy();
    }

    // Awaiting starts the coroutine and resumes the awaiter when it ends.
    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiter) noexcept {
        handle_.promise().continuation = awaiter;
        return handle_;
    }
    T await_resume() {
        if constexpr (!std::is_void_v<T>) return std::move(*handle_.promise().value);
    }

    // For Gate and for the loops at the edges: runs to the first suspension, nobody awaits.
    void start() { handle_.resume(); }
    bool done() const noexcept { return !handle_ || handle_.done(); }
    Handle handle() const noexcept { return handle_; }

  private:
    Handle handle_;
};

namespace detail {
template <class T>
Task<T> Promise<T>::get_return_object() { return Task<T>(std::coroutine_handle<Promise>::from_promise(*this)); }
inline Task<void> Promise<void>::get_return_object() {
    return Task<void>(std::coroutine_handle<Promise>::from_promise(*this));
}
}  // namespace detail

}  // namespace cairn
