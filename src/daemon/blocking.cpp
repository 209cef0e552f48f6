#include "daemon/blocking.hpp"

namespace cairn {

namespace {

class Call final : public Job {
  public:
    Call(Clock& clock, std::function<Status()> work) : done(clock), work_(std::move(work)) {}
    void run() override { result = work_(); }
    void finished() override {
        is_done = true;
        done.notify_all();
    }
    Event done;
    bool is_done = false;
    Status result;

  private:
    std::function<Status()> work_;
};

}  // namespace

Task<Status> call_blocking(WorkerPool& pool, Clock& clock, std::function<Status()> work, Nanos deadline) {
    const auto call = std::make_shared<Call>(clock, std::move(work));
    CO_TRY(pool.submit(call));
    while (!call->is_done) {
        if (clock.now() >= deadline) {
            pool.abandon(call);
            co_return deadline_passed("it did not come back in time");
        }
        co_await call->done.wait(deadline);
    }
    co_return call->result;
}

}  // namespace cairn
