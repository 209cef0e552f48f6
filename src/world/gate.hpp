// Gate: background coroutines need an owner that outlives them, and shutdown must wait for them.
// spawn() starts one; close() refuses new ones and waits, to a deadline, for the rest. Destroying a Gate destroys what still
// runs in it (see task.hpp): that is how a simulated process dies, and never how a real one shuts down.
#pragma once

#include <list>

#include "world/channel.hpp"

namespace cairn {

class Gate {
  public:
    explicit Gate(Clock& clock) : clock_(&clock), changed_(clock) {}
    Gate(const Gate&) = delete;
    ~Gate() { *alive_ = false; }

    // Runs `task` to its first suspension now. False, and the task is dropped unrun, when the gate is closed.
    bool spawn(Task<void> task) {
        if (closed_) return false;
        reap();
        running_.emplace_back();
        auto place = std::prev(running_.end());
        *place = run(std::move(task), this, place, alive_);
        ++active_;
        place->start();
        return true;
    }
    // What the arguments of tasks that have ended hold goes now, and not only when another one is spawned.
    void reap() {
        for (auto it = ended_.begin(); it != ended_.end();) it = it->done() ? ended_.erase(it) : std::next(it);
    }
    std::size_t active() const noexcept { return active_; }
    bool is_closed() const noexcept { return closed_; }
    void refuse_new() { closed_ = true; }

    // True when all have ended, false at the deadline.
    Task<bool> close(Nanos deadline = never) {
        closed_ = true;
        while (active_ != 0) {
            if (clock_->now() >= deadline) co_return false;
            co_await changed_.wait(deadline);
        }
        co_return true;
    }
    // Waits until at most `count` run.
    Task<bool> wait_active_at_most(std::size_t count, Nanos deadline = never) {
        while (active_ > count) {
            if (clock_->now() >= deadline) co_return false;
            co_await changed_.wait(deadline);
        }
        co_return true;
    }

  private:
    using Place = std::list<Task<void>>::iterator;

    // What has ended is set aside: a gate may have tens of thousands running (a coordinator's messages), and looks at none of them to start another.
    static Task<void> run(Task<void> task, Gate* gate, Place place, std::shared_ptr<bool> alive) {
        co_await task;
        if (*alive) {
            --gate->active_;
            gate->ended_.splice(gate->ended_.end(), gate->running_, place);
            gate->changed_.notify_all();
        }
    }

    Clock* clock_;
    bool closed_ = false;
    std::size_t active_ = 0;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
    Event changed_;
    std::list<Task<void>> ended_;
    std::list<Task<void>> running_;  // last: destroyed first
};

}  // namespace cairn
