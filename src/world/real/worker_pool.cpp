// The lock is never held while a job runs, nor while one is destroyed.
#include "world/real/worker_pool.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

namespace cairn {

namespace {

// Signals are the application's. False: there is no thread to be had.
bool start_detached(std::function<void()> work) {
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGBUS);  // of a touch of lost memory: it ends the process where it is blocked (survive_lost_bytes)
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = true;
    try {
        std::thread(std::move(work)).detach();
    } catch (const std::system_error&) {
        started = false;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return started;
}

}  // namespace

// The threads of one class. Those of a class that was left end when they have nothing in hand.
struct Crew {
    explicit Crew(ThreadClass c) : thread_class(c) {}
    const ThreadClass thread_class;
    unsigned live = 0;  // threads, stuck ones among them
    unsigned stuck = 0;
    unsigned idle = 0;
};

struct WorkerPoolState : std::enable_shared_from_this<WorkerPoolState> {
    WorkerPoolState(std::shared_ptr<LoopRemote> r, WorkerPoolOptions o)
        : remote(std::move(r)), options(std::move(o)), crew(std::make_shared<Crew>(options.thread_class)) {}

    const std::shared_ptr<LoopRemote> remote;
    const WorkerPoolOptions options;

    mutable std::mutex mutex;
    std::condition_variable work_came;
    std::condition_variable thread_ended;
    std::deque<std::shared_ptr<Job>> queue;
    std::shared_ptr<Crew> crew;  // that takes what comes
    unsigned live = 0, stuck = 0;  // of all crews
    bool closing = false;

    // Those that are stuck are replaced, up to a bound that all crews share.
    unsigned threads_max() const {
        const unsigned elsewhere = stuck - crew->stuck, replaced = std::min(elsewhere, options.stuck_max);
        const unsigned lost = std::min(elsewhere - replaced, options.threads_max);  // for good, as in one class
        return options.threads_max - lost + std::min(crew->stuck, options.stuck_max - replaced);
    }

    // Under the lock. False when work waits and nobody will ever take it.
    bool add_threads() {
        while (queue.size() > crew->idle && crew->live < threads_max()) {
            if (!start_thread()) break;
            ++live;
            ++crew->live;
            ++crew->idle;  // counts as such until it looks
        }
        return crew->live > crew->stuck || queue.empty() || stuck > options.stuck_max;
    }

    bool start_thread() {
        return start_detached([state = shared_from_this(), own = crew] { state->work(own); });
    }

    void work(const std::shared_ptr<Crew>& own) {
        (void)set_thread_class(own->thread_class);
        pthread_setname_np(pthread_self(), options.name.substr(0, 15).c_str());
        std::unique_lock lock(mutex);
        for (;;) {
            const auto patience = std::chrono::nanoseconds(options.idle);
            work_came.wait_for(lock, patience, [&] { return !queue.empty() || closing || own != crew; });
            --own->idle;
            if (queue.empty() || own != crew) break;
            std::shared_ptr<Job> job = std::move(queue.front());
            queue.pop_front();
            run_one(lock, std::move(job), own);
            // One that was stuck and has been replaced is one too many.
            if (own != crew || own->live > threads_max()) break;
            ++own->idle;
        }
        --live;
        --own->live;
        thread_ended.notify_all();
    }

    void run_one(std::unique_lock<std::mutex>& lock, std::shared_ptr<Job> job, const std::shared_ptr<Crew>& own) {
        job->stage_ = Job::Stage::running;
        job->crew_ = own;
        if (job->nobody_waits()) write_off(*job, own == crew);
        lock.unlock();
        job->run();
        lock.lock();
        job->stage_ = Job::Stage::ended;
        if (job->abandoned_) --stuck, --own->stuck;
        lock.unlock();
        Job* const raw = job.get();
        remote->call_soon([held = std::move(job), raw] { raw->finished(); });
        lock.lock();
    }

    // Under the lock. A worker of another class starts nobody: what it starts is of no better class than it is.
    void write_off(Job& job, bool may_start) {
        job.abandoned_ = true;
        ++stuck;
        ++job.crew_->stuck;
        if (may_start) add_threads();
    }

    // Under the lock.
    bool enqueue(std::shared_ptr<Job> job) {
        job->stage_ = Job::Stage::queued;
        queue.push_back(std::move(job));
        if (!add_threads()) {
            queue.pop_back();
            return false;
        }
        work_came.notify_one();
        return true;
    }
};

namespace {

class Disposal final : public Job {
  public:
    explicit Disposal(std::function<void()> action) : action_(std::move(action)) {}
    void run() override { action_(); }
    void finished() override {}
    bool nobody_waits() const override { return true; }

  private:
    std::function<void()> action_;
};

}  // namespace

WorkerPool::WorkerPool(std::shared_ptr<LoopRemote> remote, Options options)
    : state_(std::make_shared<WorkerPoolState>(std::move(remote), std::move(options))) {
    CAIRN_CHECK(state_->options.threads_max > 0);
}

WorkerPool::~WorkerPool() {
    std::unique_lock lock(state_->mutex);
    state_->closing = true;
    state_->work_came.notify_all();
    const auto patience = std::chrono::nanoseconds(state_->options.exit_wait);
    state_->thread_ended.wait_for(lock, patience, [this] { return state_->live <= state_->stuck; });
}

Status WorkerPool::submit(std::shared_ptr<Job> job) {
    const std::lock_guard lock(state_->mutex);
    CAIRN_CHECK(job->stage_ == Job::Stage::idle && !state_->closing);
    if (state_->enqueue(std::move(job))) return {};
    return unavailable("can not start a thread for file operations (is the limit of processes reached?)");
}

bool WorkerPool::abandon(const std::shared_ptr<Job>& job) {
    const std::lock_guard lock(state_->mutex);
    if (job->stage_ == Job::Stage::queued) {
        const auto place = std::find(state_->queue.begin(), state_->queue.end(), job);
        if (place != state_->queue.end()) state_->queue.erase(place);  // the caller holds it: nothing is destroyed here
        job->stage_ = Job::Stage::ended;
        return true;
    }
    if (job->stage_ == Job::Stage::running && !job->abandoned_) {
        state_->write_off(*job, true);
        state_->thread_ended.notify_all();
    }
    return false;
}

void WorkerPool::set_class(ThreadClass wanted) {
    const std::lock_guard lock(state_->mutex);
    if (wanted == state_->crew->thread_class) return;
    const std::shared_ptr<Crew> before = std::exchange(state_->crew, std::make_shared<Crew>(wanted));
    if (!state_->add_threads()) {  // none is to be had: those that there are go on
        state_->crew = before;
        return;
    }
    state_->work_came.notify_all();
}

WorkerPool::Disposer WorkerPool::disposer() const {
    return [state = state_](std::function<void()> action) {
        {
            const std::lock_guard lock(state->mutex);
            if (!state->closing && state->enqueue(std::make_shared<Disposal>(action))) return;
        }
        // The pool has closed: what an operation made that ended after its deadline is let go of here, by whoever destroys the loop. To close a file may be to ask a server that does not answer,
        // and who ends a world waits for no such thing.
        if (!start_detached(action)) action();
    };
}

unsigned WorkerPool::stuck() const {
    const std::lock_guard lock(state_->mutex);
    return state_->stuck;
}

unsigned WorkerPool::threads() const {
    const std::lock_guard lock(state_->mutex);
    return state_->live;
}

}  // namespace cairn
