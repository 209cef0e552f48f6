// Channel<T>: a bounded queue between coroutines of one loop. Closing wakes everybody: senders are refused, receivers take
// what is left and then learn that it is closed. Waits take a deadline; nothing waits without a bound (rule 6).
// Event: "something changed", for waiters that look for themselves.
#pragma once

#include <deque>
#include <list>
#include <memory>
#include <optional>

#include "world/clock.hpp"

namespace cairn {

namespace detail {

// A coroutine waiting in some queue until woken or until its deadline. Lives in the waiting frame.
struct Waiter {
    Clock* clock = nullptr;
    std::list<Waiter*>* queue = nullptr;
    std::list<Waiter*>::iterator place;
    Clock::TimerId timer = 0;
    std::coroutine_handle<> handle;
    bool posted = false;
    bool timed_out = false;

    Waiter() = default;
    Waiter(const Waiter&) = delete;
    ~Waiter() {
        leave();
        if (posted) clock->unpost(handle);
    }
    void enter(Clock& c, std::list<Waiter*>& q, std::coroutine_handle<> h, Nanos deadline) {
        clock = &c;
        queue = &q;
        handle = h;
        place = q.insert(q.end(), this);
        if (deadline != never)
            timer = c.at(deadline, [this] { timer = 0; timed_out = true; wake(); });
    }
    void leave() {
        if (queue) { queue->erase(place); queue = nullptr; }
        if (timer) { clock->cancel(timer); timer = 0; }
    }
    void wake() {
        leave();
        posted = true;
        clock->post(handle);
    }
};

inline void wake_one(std::list<Waiter*>& queue) {
    if (!queue.empty()) queue.front()->wake();
}
inline void wake_all(std::list<Waiter*>& queue) {
    while (!queue.empty()) queue.front()->wake();
}

}  // namespace detail

class Event {
    struct State { std::list<detail::Waiter*> waiters; };

  public:
    explicit Event(Clock& clock) : clock_(&clock), state_(std::make_shared<State>()) {}

    void notify_all() { detail::wake_all(state_->waiters); }
    void notify_one() { detail::wake_one(state_->waiters); }

    struct Awaiter {
        std::shared_ptr<State> state;
        Clock* clock;
        Nanos deadline;
        detail::Waiter waiter;
        Awaiter(std::shared_ptr<State> s, Clock* c, Nanos d) : state(std::move(s)), clock(c), deadline(d) {}
        bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<> h) { waiter.enter(*clock, state->waiters, h, deadline); }
        bool await_resume() noexcept { waiter.posted = false; return !waiter.timed_out; }
    };
    // True when notified, false when the deadline came first. Check the condition again either way.
    Awaiter wait(Nanos deadline = never) { return {state_, clock_, deadline}; }

  private:
    Clock* clock_;
    std::shared_ptr<State> state_;
};

template <class T>
class Channel {
    struct State {
        std::deque<T> items;
        std::size_t capacity;
        bool closed = false;
        std::list<detail::Waiter*> receivers, senders;
    };

  public:
    Channel(Clock& clock, std::size_t capacity) : clock_(&clock), state_(std::make_shared<State>()) {
        state_->capacity = capacity;
    }

    bool try_send(T item) {
        State& s = *state_;
        if (s.closed || s.items.size() >= s.capacity) return false;
        s.items.push_back(std::move(item));
        detail::wake_one(s.receivers);
        return true;
    }
    std::optional<T> try_receive() {
        State& s = *state_;
        if (s.items.empty()) return std::nullopt;
        std::optional<T> item(std::move(s.items.front()));
        s.items.pop_front();
        detail::wake_one(s.senders);
        return item;
    }
    void close() {
        state_->closed = true;
        detail::wake_all(state_->receivers);
        detail::wake_all(state_->senders);
    }
    bool closed() const noexcept { return state_->closed; }
    bool empty() const noexcept { return state_->items.empty(); }
    std::size_t size() const noexcept { return state_->items.size(); }

    // cancelled: closed and empty. deadline: nothing came in time.
    Task<Result<T>> receive(Nanos deadline = never) {
        const std::shared_ptr<State> state = state_;
        Clock& clock = *clock_;
        for (;;) {
            if (!state->items.empty()) {
                T item = std::move(state->items.front());
                state->items.pop_front();
                detail::wake_one(state->senders);
                co_return item;
            }
            if (state->closed) co_return Status(Code::cancelled, "channel closed");
            if (clock.now() >= deadline) co_return deadline_passed("nothing came in time");
            Wait wait(state, clock, state->receivers, deadline);
            co_await wait;
        }
    }
    // Waits while the channel is full. cancelled: closed. deadline: no room in time; the item is lost to the caller.
    Task<Status> send(T item, Nanos deadline = never) {
        const std::shared_ptr<State> state = state_;
        Clock& clock = *clock_;
        for (;;) {
            if (state->closed) co_return Status(Code::cancelled, "channel closed");
            if (state->items.size() < state->capacity) {
                state->items.push_back(std::move(item));
                detail::wake_one(state->receivers);
                co_return Status();
            }
            if (clock.now() >= deadline) co_return deadline_passed("no room in time");
            Wait wait(state, clock, state->senders, deadline);
            co_await wait;
        }
    }

  private:
    struct Wait {
        std::shared_ptr<State> state;
        Clock& clock;
        std::list<detail::Waiter*>& queue;
        Nanos deadline;
        detail::Waiter waiter;
        Wait(std::shared_ptr<State> s, Clock& c, std::list<detail::Waiter*>& q, Nanos d)
            : state(std::move(s)), clock(c), queue(q), deadline(d) {}
        ~Wait() {
            // Woken for an item, or for room, but destroyed before it ran: pass the wake-up on.
            const bool for_item = &queue == &state->receivers;
            if (waiter.posted && (for_item ? !state->items.empty() : state->items.size() < state->capacity)) {
                waiter.posted = false;
                clock.unpost(waiter.handle);
                detail::wake_one(queue);
            }
        }
        bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<> h) { waiter.enter(clock, queue, h, deadline); }
        void await_resume() noexcept { waiter.posted = false; }
    };

    Clock* clock_;
    std::shared_ptr<State> state_;
};

}  // namespace cairn
