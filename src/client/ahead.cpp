#include "client/ahead.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>

namespace cairn {

struct Ahead::State {
    Turn turn;
    std::mutex mutex;
    std::condition_variable wake;
    bool is_changed = false, ends = false;
};

Ahead::Ahead(Turn turn) : process_(::getpid()), state_(std::make_shared<State>()) {
    state_->turn = std::move(turn);
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        thread_ = std::make_unique<std::thread>([state = state_] { run(*state); });
        ::pthread_setname_np(thread_->native_handle(), "cairn-ahead");
    } catch (const std::exception&) {  // no more threads, or no memory for one: captures do it all themselves
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// The child's copy of a condition somebody waits for can not be destroyed: that waits for him.
Ahead::~Ahead() {
    if (::getpid() != process_) {
        static_cast<void>(thread_.release());
        static_cast<void>(new std::shared_ptr<State>(std::move(state_)));
        return;
    }
    if (!thread_) return;
    {
        const std::lock_guard lock(state_->mutex);
        state_->ends = true;
    }
    state_->wake.notify_all();
    thread_->join();
}

void Ahead::changed() {
    {
        const std::lock_guard lock(state_->mutex);
        if (std::exchange(state_->is_changed, true)) return;
    }
    state_->wake.notify_all();
}

void Ahead::run(State& state) {
    std::unique_lock lock(state.mutex);
    const auto is_called = [&] { return state.is_changed || state.ends; };
    for (;;) {
        state.wake.wait(lock, is_called);
        while (!state.ends && std::exchange(state.is_changed, false)) state.wake.wait_for(lock, settle, is_called);
        while (!is_called()) {
            lock.unlock();
            const std::optional<std::chrono::milliseconds> next = state.turn();
            lock.lock();
            if (!next) break;
            if (next->count() > 0) state.wake.wait_for(lock, *next, is_called);
        }
        if (state.ends) return;
    }
}

}  // namespace cairn
