// WorkerPool: threads for work that may block, or that burns cycles. Some of it may never come back (rule 6): a thread
// that is written off is replaced, up to a bound, and exit never joins it.
//
// Threads start when there is work, end after a while without, take no signals (they may live inside an application),
// and share their state by shared_ptr, so that a stuck one that comes back after the pool and the loop are gone finds
// nothing missing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/status.hpp"
#include "world/clock.hpp"
#include "world/real/loop.hpp"
#include "world/real/thread_class.hpp"

namespace cairn {

struct WorkerPoolState;
struct Crew;

// One piece of work. run() is called in a worker, then finished() on the loop; the last reference that the pool holds
// is dropped on the loop, so what the job owns (buffers, files) need not be thread-safe. Only when the loop is gone it
// is dropped in the worker.
class Job {
  public:
    virtual ~Job() = default;
    virtual void run() = 0;
    virtual void finished() = 0;
    // Written off as soon as it runs: one that hangs takes no thread from others.
    virtual bool nobody_waits() const { return false; }

  private:
    friend class WorkerPool;
    friend struct WorkerPoolState;
    enum class Stage : std::uint8_t { idle, queued, running, ended };
    Stage stage_ = Stage::idle;  // guarded by the pool's mutex, like all below
    bool abandoned_ = false;
    std::shared_ptr<Crew> crew_;  // whose thread runs it, or ran it
};

struct WorkerPoolOptions {
    std::string name = "cairn";  // of the threads, at most 15 characters
    unsigned threads_max = 16;   // that do work
    unsigned stuck_max =
        64;  // written off, on top; with more than that no replacement comes and work waits for its deadline
    Nanos idle = 5 * second;   // after which a thread without work ends
    Nanos exit_wait = second;  // how long the destructor waits for work that nobody has written off
    ThreadClass thread_class;  // what the kernel refuses of it is no error: the daemon tries it on itself, and says so
};

class WorkerPool {
  public:
    using Options = WorkerPoolOptions;
    WorkerPool(std::shared_ptr<LoopRemote> remote, Options options);
    ~WorkerPool();
    WorkerPool(const WorkerPool&) = delete;

    // unavailable when not one thread can be started; the job is then not run.
    Status submit(std::shared_ptr<Job> job);
    // Nobody waits for this job any more. One in the queue is never run; the thread of a running one is written off and
    // replaced, until it comes back; finished() is called then. True when it was not begun and never will be.
    bool abandon(const std::shared_ptr<Job>& job);

    // Work that has not begun, and all that comes, is done by new threads, of that class. A thread does not come back from a lower class, so new ones are
    // started by the calling thread, whose class is no lower. Threads of before end what they are at, and go on where no others are to be had.
    void set_class(ThreadClass wanted);

    // Runs `action` in a worker, nobody waits: closing files, unmapping. Works after the pool is gone: in the calling
    // thread then.
    using Disposer = std::function<void(std::function<void()> action)>;
    Disposer disposer() const;

    unsigned stuck() const;    // threads written off now
    unsigned threads() const;  // alive now, stuck ones among them

  private:
    std::shared_ptr<WorkerPoolState> state_;
};

}  // namespace cairn
