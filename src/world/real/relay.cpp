#include "world/real/relay.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <system_error>

namespace cairn {

namespace {

// It has to answer within a heartbeat.
ThreadClass loop_class(CpuClass wanted) { return {std::max(wanted, CpuClass::low), IoClass::normal}; }

}  // namespace

Relay::~Relay() {
    {
        const std::lock_guard lock(mutex_);
        closing_ = true;
        turns_.notify_all();
    }
    for (auto& [own, runner] : runners_)
        if (runner->thread.joinable()) runner->thread.join();
}

CpuClass Relay::current() const {
    const std::lock_guard lock(mutex_);
    return current_;
}

void Relay::hand_over(CpuClass next) {
    const std::lock_guard lock(mutex_);
    if (next == (next_ ? *next_ : current_)) return;
    next_ = next;
    loop_.stop();
}

void Relay::end() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    loop_.stop();
}

void Relay::wait_and_drive(CpuClass own, Runner& self) {
    (void)set_thread_class(loop_class(own));
    pthread_setname_np(pthread_self(), "cairn-loop");
    std::unique_lock lock(mutex_);
    for (;;) {
        turns_.wait(lock, [&] { return self.has_turn || closing_; });
        if (!self.has_turn) return;
        lock.unlock();
        if (at_turn_) at_turn_(own);
        loop_.run();
        lock.lock();
        self.has_turn = false;
        turns_.notify_all();
    }
}

// Under the lock. Null: there is no thread to be had.
Relay::Runner* Relay::runner_of(CpuClass wanted) {
    auto& place = runners_[wanted];
    if (place) return place.get();
    auto made = std::make_unique<Runner>();
    try {
        made->thread = std::thread([this, wanted, self = made.get()] { wait_and_drive(wanted, *self); });
    } catch (const std::system_error&) {
        return nullptr;
    }
    place = std::move(made);
    return place.get();
}

// The lock is not held while the loop runs.
void Relay::drive_once(std::unique_lock<std::mutex>& lock, Runner& runner) {
    runner.has_turn = true;
    turns_.notify_all();
    turns_.wait(lock, [&] { return !runner.has_turn; });
}

void Relay::run(CpuClass first) {
    std::unique_lock lock(mutex_);
    next_ = first;
    Runner* runner = nullptr;
    while (!ended_) {
        if (next_) {
            Runner* const wanted = runner_of(*next_);
            if (wanted || !runner) current_ = *next_;
            if (wanted) runner = wanted;
            next_.reset();
        }
        if (runner) {
            drive_once(lock, *runner);
            continue;
        }
        (void)set_thread_class(loop_class(current_));
        lock.unlock();
        if (at_turn_) at_turn_(current_);
        loop_.run();
        lock.lock();
    }
}

}  // namespace cairn
