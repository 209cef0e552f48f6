// Thread classes: how urgently the kernel runs a thread, and serves its reads and writes. Nothing here needs a privilege, and most of it
// can not be undone without one: a thread that gave way does so to its end, and so do the threads that it starts.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <set>

#include "base/status.hpp"

namespace cairn {

// In order. A thread that is nicer already stays as it is.
enum class CpuClass : std::uint8_t {
    idle,     // SCHED_IDLE: runs where a processor would idle
    low,      // nice 19
    nice_10,
    nice_5,
    normal,  // as the process was started
};
enum class IoClass : std::uint8_t { idle, normal };

struct ThreadClass {
    CpuClass cpu = CpuClass::normal;
    IoClass io = IoClass::normal;
    bool operator==(const ThreadClass&) const = default;
};

// Thread 0 is the calling one. The first refusal, with what was refused; the rest is done all the same. Idle and low come with short turns:
// when all processors are busy such a thread still gets its small share within milliseconds (since Linux 6.12).
Status set_thread_class(ThreadClass wanted, pid_t thread = 0);
// A session that was made by setsid() may be a group to the scheduler: classes then count within it only, and the group has a nice of its own.
// unavailable: the kernel takes one such change every 100 ms from all users together; again in a moment. unsupported: there are no such groups.
Status set_session_nice(int nice);

// Threads that the kernel started in this process for io_uring, for what this thread submits; 0: for all. They come with its class.
std::set<pid_t> kernel_io_threads(pid_t submitter = 0);

}  // namespace cairn
