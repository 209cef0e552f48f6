// Ring: transfers through io_uring, one ring a storage.
//
// Every transfer is handed to a kernel worker (IOSQE_ASYNC): a write to tmpfs or to the page cache is a copy, and done
// at submission it would hold the loop. What one turn of the loop asks for is submitted with one system call.
// Completions are told by an eventfd that the loop watches. Loop only, all of it.
#pragma once

#include <memory>

#include "world/real/loop.hpp"
#include "world/real/operation.hpp"
#include "world/real/thread_class.hpp"

namespace cairn {

class Ring {
  public:
    // `workers`: transfers that run at the same time. `thread_class`: of the kernel's threads that do them; a new one gets it with one of the
    // next submissions. unsupported, with the reason, when the kernel refuses.
    static Result<std::unique_ptr<Ring>> create(Loop& loop, unsigned workers, ThreadClass thread_class = {});
    // Cancels what is still under way and waits for it, but not long; what does not come back keeps the ring and its
    // buffers to the end of the process.
    ~Ring();
    Ring(const Ring&) = delete;

    void submit(std::shared_ptr<Transfer> transfer);
    // The kernel's threads are those of the thread that submits, and are never of a better class than it is.
    void set_class(ThreadClass wanted);
    // Nobody waits any more: not submitted yet, it never is; under way, the kernel is asked to cancel it and another
    // worker is allowed in its place. finished() comes when the kernel gives it back. True when it was not begun and
    // never will be.
    bool abandon(const std::shared_ptr<Transfer>& transfer);

    std::size_t under_way() const noexcept;

  private:
    struct State;
    explicit Ring(std::shared_ptr<State> state) : state_(std::move(state)) {}
    std::shared_ptr<State> state_;
};

}  // namespace cairn
