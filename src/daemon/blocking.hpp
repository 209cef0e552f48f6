// Blocking system calls away from the loop: `work` runs in a worker, the coroutine goes on when it is done.
//
// What may wait for a device goes this way: scratch can be a disk that does not answer, and the log lies on it. What the kernel answers from memory
// (/proc of this process, a socket's options) is asked on the loop.
#pragma once

#include <functional>

#include "world/channel.hpp"
#include "world/real/worker_pool.hpp"

namespace cairn {

inline constexpr Nanos try_again = 2 * second;  // what a file system refused, and may give later

// deadline: the work goes on in the background, holding what it captured; what it returns then is dropped.
Task<Status> call_blocking(WorkerPool& pool, Clock& clock, std::function<Status()> work, Nanos deadline);

}  // namespace cairn
