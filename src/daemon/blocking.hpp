// Blocking system calls away from the loop: `work` runs in a worker, the coroutine goes on when it is done.
#pragma once

#include <functional>

#include "world/channel.hpp"
#include "world/real/worker_pool.hpp"

namespace cairn {

// deadline: the work goes on in the background, holding what it captured; what it returns then is dropped.
Task<Status> call_blocking(WorkerPool& pool, Clock& clock, std::function<Status()> work, Nanos deadline);

}  // namespace cairn
