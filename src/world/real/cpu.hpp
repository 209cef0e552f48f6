// RealCpu: checksums and codecs on a small pool of threads, completed on the loop.
#pragma once

#include <functional>

#include "world/cpu.hpp"
#include "world/real/worker_pool.hpp"

namespace cairn {

class RealCpu final : public Cpu {
  public:
    // threads 0: half of the machine's processors, at least one. They start with the first large slice and end when
    // idle. The loop outlives the pool. One that does not get through a portion of a slice in stuck_wait is replaced: it touches memory that does not
    // come back. At worst it was only slow, and there is one more for a while.
    static unsigned default_threads();
    explicit RealCpu(Loop& loop, unsigned threads = 0, ThreadClass thread_class = {}, Nanos stuck_wait = 5 * second);

    void set_class(ThreadClass wanted) { pool_.set_class(wanted); }

    // Small slices are computed in the calling thread, large ones by all threads together.
    Task<std::vector<std::uint64_t>> checksums(Slice data, Units units) override;

    bool may_shrink(Codec codec, const std::vector<std::uint64_t>& checksums, std::uint64_t bytes, std::uint64_t block_bytes) const override;
    Task<Result<Encoded>> encode(Coding coding, Slice raw, BaseBytes base, FindArrays arrays, Slice into, Nanos deadline) override;
    Task<Result<std::vector<NumberArray>>> find(FindArrays arrays, Nanos deadline) override;
    unsigned encoders() const override { return threads_; }
    Task<Status> decode(Codec codec, Slice stored, Slice base, Slice into, Nanos deadline) override;
    Task<Result<bool>> equal(Pairs pairs, Nanos deadline) override;

  private:
    Task<Status> run(std::function<void()> work, Nanos deadline);

    Loop& loop_;
    unsigned threads_;
    Nanos stuck_wait_;
    WorkerPool pool_;
};

}  // namespace cairn
