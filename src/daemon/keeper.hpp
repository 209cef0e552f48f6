// Keeper: the parent of a daemon in the background. It starts the daemon again when that dies without having been told to
// (killed, out of memory, a crash): an application that computes for an hour makes no call that would.
//
// It forks and waits, and does nothing else: no thread, and while its daemon lives no descriptor but /dev/null. The next daemon is forked from the
// memory that the first one came from, so it has the same arguments and settings, whatever became of the files they were read
// from. There is one daemon because of the lock, not because of the keeper: a daemon that finds the lock taken ends well, and
// its keeper with it.
#pragma once

#include <atomic>
#include <string>

#include "base/log.hpp"
#include "base/status.hpp"
#include "daemon/process.hpp"

namespace cairn {

// What a daemon lets its keeper know, in memory that both have: nothing to read, nothing to wait for.
struct Life {
    std::atomic<bool> began{false};     // accepts connections
    std::atomic<bool> stopping{false};  // for whatever reason: if it dies now, it stays dead
};

// A keeper that is told to end says it to its daemon with this one, not with SIGTERM: whoever ends a job or a service sends
// SIGTERM to every process, and a daemon that got a second one would end at once. Real-time, since programs are sent
// SIGUSR1 and SIGUSR2 by batch systems.
int keeper_says_stop();

// Only before the first thread, and after settle(). Returns in a daemon's process, first or later; the keeper itself ends
// with its daemon. `report` is the first daemon's; a later one has nobody who waits. In `log_file` the keeper tells of deaths.
// While it waits before it starts another it holds a lock on `mark`, by which `cairn stop` finds it.
Result<Life*> keep(Report& report, const std::string& log_file, LogLevel log_level, const std::string& mark);

}  // namespace cairn
