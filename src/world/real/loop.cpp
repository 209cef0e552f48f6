// Order kept: a handler that runs may post, cancel, watch and unwatch anything, itself included. So whatever is about
// to be called is first taken out of its table.
#include "world/real/loop.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "world/real/asio.hpp"

namespace cairn {

namespace {

// The longest the timer is set for: keeps far deadlines away from the end of the clock's range.
constexpr Nanos timer_span_max = 3600 * second;

class Remote final : public LoopRemote {
  public:
    explicit Remote(asio::io_context& context) : context_(&context) {}
    bool call_soon(std::function<void()> action) override {
        const std::lock_guard lock(mutex_);
        if (!context_) return false;
        asio::post(*context_, std::move(action));
        return true;
    }
    void close() {
        const std::lock_guard lock(mutex_);
        context_ = nullptr;
    }

  private:
    std::mutex mutex_;
    asio::io_context* context_;
};

}  // namespace

struct Loop::Impl {
    struct Watch {
        explicit Watch(asio::io_context& context) : descriptor(context) {}
        asio::posix::stream_descriptor descriptor;
        std::function<void()> action;
        bool active = true;
    };
    using TimerKey = std::pair<Nanos, TimerId>;

    asio::io_context context{1};
    asio::executor_work_guard<asio::io_context::executor_type> guard = asio::make_work_guard(context);
    std::atomic<bool> stopping = false;
    bool driving = false;

    std::deque<std::coroutine_handle<>> ready;
    bool ready_scheduled = false;

    asio::steady_timer timer{context};
    Nanos timer_at = never;  // what `timer` is set for
    TimerId last_timer = 0;
    std::map<TimerKey, std::function<void()>> timers;
    std::unordered_map<TimerId, Nanos> timer_times;

    WatchId last_watch = 0;
    std::unordered_map<WatchId, std::shared_ptr<Watch>> watches;

    void schedule_ready() {
        if (ready_scheduled) return;
        ready_scheduled = true;
        asio::post(context, [this] {
            ready_scheduled = false;
            run_ready();
            if (!ready.empty()) schedule_ready();
        });
    }

    // Those ready now; what they make ready waits its turn behind I/O.
    void run_ready() {
        for (std::size_t count = ready.size(); count != 0 && !ready.empty(); --count) {
            const std::coroutine_handle<> handle = ready.front();
            ready.pop_front();
            handle.resume();
        }
    }

    static Nanos now() { return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

    void set_timer() {
        if (timers.empty()) return;
        const Nanos span_end = now() + timer_span_max;
        const Nanos when = std::clamp<Nanos>(timers.begin()->first.first, 0, span_end);
        if (when >= timer_at) return;
        timer_at = when;
        timer.expires_at(std::chrono::steady_clock::time_point(std::chrono::nanoseconds(when)));
        timer.async_wait([this](const asio::error_code& error) {
            if (error) return;  // set again for something earlier
            timer_at = never;
            run_timers();
            set_timer();
        });
    }

    // Those due when it began; a timer that sets another one for now does not hold the loop. Whom a timer wakes runs
    // before the next timer, so that a loop that is late keeps the order of time.
    void run_timers() {
        const TimerId newest = last_timer;
        const Nanos due = now();
        auto next = timers.begin();
        while (next != timers.end() && next->first.first <= due) {
            const TimerKey key = next->first;
            if (key.second <= newest) {
                const std::function<void()> action = std::move(next->second);
                timer_times.erase(key.second);
                timers.erase(next);
                action();
                run_ready();
            }
            next = timers.upper_bound(key);
        }
    }

    void wait_readable(const std::shared_ptr<Watch>& watch) {
        watch->descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                                     [this, watch](const asio::error_code& error) {
                                         if (error || !watch->active) return;
                                         watch->action();
                                         if (watch->active) wait_readable(watch);
                                     });
    }
};

Result<std::unique_ptr<Loop>> Loop::create() {
    try {
        return std::unique_ptr<Loop>(new Loop(std::make_unique<Impl>()));
    } catch (const std::system_error& error) {
        return unavailable(std::string("can not start an event loop (is the limit of open files reached?): ") +
                           error.what());
    }
}

Loop::Loop(std::unique_ptr<Impl> impl) : impl_(std::move(impl)), remote_(std::make_shared<Remote>(impl_->context)) {}

Loop::~Loop() {
    static_cast<Remote&>(*remote_).close();
    for (const auto& [id, watch] : impl_->watches) {
        watch->active = false;
        watch->descriptor.release();
    }
}

std::uint64_t Loop::wall_time_s() const { return static_cast<std::uint64_t>(std::time(nullptr)); }
Nanos Loop::now() const { return Impl::now(); }

void Loop::post(std::coroutine_handle<> handle) {
    impl_->ready.push_back(handle);
    impl_->schedule_ready();
}

void Loop::unpost(std::coroutine_handle<> handle) {
    auto& ready = impl_->ready;
    const auto place = std::find(ready.begin(), ready.end(), handle);
    if (place != ready.end()) ready.erase(place);
}

Clock::TimerId Loop::at(Nanos when, std::function<void()> action) {
    const TimerId id = ++impl_->last_timer;
    impl_->timers.emplace(Impl::TimerKey(when, id), std::move(action));
    impl_->timer_times.emplace(id, when);
    impl_->set_timer();
    return id;
}

void Loop::cancel(TimerId timer) {
    const auto place = impl_->timer_times.find(timer);
    if (place == impl_->timer_times.end()) return;
    const auto entry = impl_->timers.extract(Impl::TimerKey(place->second, timer));
    impl_->timer_times.erase(place);
}

void Loop::run() {
    CAIRN_CHECK(!impl_->driving);
    impl_->driving = true;
    while (!impl_->stopping.exchange(false)) impl_->context.run_one();
    impl_->driving = false;
}

void Loop::stop() {
    impl_->stopping = true;
    call_soon([] {});
}

void Loop::drive(std::coroutine_handle<> task, Nanos deadline) {
    CAIRN_CHECK(!impl_->driving);
    impl_->driving = true;
    bool expired = false;
    const TimerId limit = deadline == never ? 0 : at(deadline, [&expired] { expired = true; });
    while (!task.done() && !expired) impl_->context.run_one();
    cancel(limit);
    impl_->driving = false;
}

bool Loop::run_until_done(Task<void> task, Nanos deadline) {
    task.start();
    drive(task.handle(), deadline);
    return task.done();
}

Result<Loop::WatchId> Loop::watch_readable(int fd, std::function<void()> action) {
    struct stat about = {};
    const std::string what = "watching descriptor " + std::to_string(fd);
    if (::fstat(fd, &about) != 0) return Status::from_errno(errno, what);
    if (S_ISREG(about.st_mode) || S_ISDIR(about.st_mode)) return invalid_argument(what + ": a file is always readable");
    auto watch = std::make_shared<Impl::Watch>(impl_->context);
    asio::error_code error;
    watch->descriptor.assign(fd, error);
    if (error) return Status::from_errno(error.value(), what);
    watch->action = std::move(action);
    const WatchId id = ++impl_->last_watch;
    impl_->watches.emplace(id, watch);
    impl_->wait_readable(watch);
    return id;
}

void Loop::unwatch(WatchId id) {
    const auto place = impl_->watches.find(id);
    if (place == impl_->watches.end()) return;
    const auto watch = std::move(place->second);
    impl_->watches.erase(place);
    watch->active = false;
    watch->descriptor.release();
}

asio::io_context& Loop::context() noexcept { return impl_->context; }

}  // namespace cairn
