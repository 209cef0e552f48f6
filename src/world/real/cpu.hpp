// RealCpu: checksums on a small pool of threads, completed on the loop.
#pragma once

#include "world/cpu.hpp"
#include "world/real/worker_pool.hpp"

namespace cairn {

class RealCpu final : public Cpu {
  public:
    // threads 0: half of the machine's processors, at least one. They start with the first large slice and end when
    // idle. The loop outlives the pool.
    explicit RealCpu(Loop& loop, unsigned threads = 0, ThreadClass thread_class = {});

    // Small slices are computed in the calling thread, large ones by all threads together.
    Task<std::vector<std::uint64_t>> checksums(Slice data, std::uint64_t block_bytes) override;

    unsigned threads() const noexcept { return threads_; }

  private:
    Loop& loop_;
    unsigned threads_;
    WorkerPool pool_;
};

}  // namespace cairn
