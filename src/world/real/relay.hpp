// Relay: the loop of a daemon goes from one thread to another, each of another class. A thread that gave way can not take its class back without
// a privilege, so the threads are started by one that never gave way: the one that called run(), whose class is the best that the loop can have.
//
// The loop has to answer within a heartbeat, so in the idle class its thread is nice 19: one of its own all the same, since the kernel's workers of what it
// submits are in the idle class.
//
// A thread is kept for each class that was asked for, and waits while another has the loop. It does not end: the kernel cancels what a thread that
// ends has under way in io_uring, and its kernel workers are of the class of the thread that submitted.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "world/real/loop.hpp"
#include "world/real/thread_class.hpp"

namespace cairn {

class Relay {
  public:
    explicit Relay(Loop& loop) : loop_(loop) {}
    // Called in each thread that gets the loop, before anything else there. Before run().
    void at_each_turn(std::function<void(CpuClass own)> action) { at_turn_ = std::move(action); }
    ~Relay();
    Relay(const Relay&) = delete;

    // Drives the loop, first in a thread of this class, until end(). Where no thread is to be had, the loop stays in the one that has it; at the
    // start that is the calling one, with its class lowered.
    void run(CpuClass first);
    // On the loop: soon it runs in a thread of that class. The last word counts.
    void hand_over(CpuClass next);
    // On the loop: run() returns. No thread has the loop after that.
    void end();

    CpuClass current() const;  // any thread

  private:
    struct Runner {
        std::thread thread;
        bool has_turn = false;
    };
    Runner* runner_of(CpuClass wanted);
    void wait_and_drive(CpuClass own, Runner& self);
    void drive_once(std::unique_lock<std::mutex>& lock, Runner& runner);

    Loop& loop_;
    std::function<void(CpuClass)> at_turn_;
    mutable std::mutex mutex_;
    std::condition_variable turns_;
    std::map<CpuClass, std::unique_ptr<Runner>> runners_;
    CpuClass current_ = CpuClass::normal;
    std::optional<CpuClass> next_;
    bool ended_ = false, closing_ = false;
};

}  // namespace cairn
