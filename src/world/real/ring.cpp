// Order kept: a transfer enters `under_way` before its entry is submitted and leaves it only with its completion, so
// the kernel never touches memory that nobody holds.
#include "world/real/ring.hpp"

#include <liburing.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "world/real/io_priority.hpp"

namespace cairn {

namespace {

constexpr unsigned entries = 256;  // transfers under way at once; the completion queue is twice that, for cancellations
constexpr Nanos busy_retry = millisecond;
constexpr Nanos exit_wait = second;
constexpr Nanos look_for_workers = 20 * millisecond;  // not more often: it reads /proc

}  // namespace

struct Ring::State : std::enable_shared_from_this<Ring::State> {
    State(Loop& l, unsigned w, ThreadClass c) : loop(&l), workers(w), thread_class(c) {}
    ~State() {
        if (opened) io_uring_queue_exit(&ring);
        if (event >= 0) ::close(event);
    }

    Loop* loop;
    unsigned workers;
    ThreadClass thread_class;
    std::set<pid_t> classed;  // workers that have it
    std::thread::id submitter;  // whose workers are allowed
    bool has_one_submitter = true;  // up to now
    Nanos looked = 0;
    io_uring ring = {};
    bool opened = false;
    int event = -1;
    Loop::WatchId watch = 0;
    std::deque<std::shared_ptr<Transfer>> waiting;
    std::vector<Transfer*> to_cancel;
    std::unordered_map<Transfer*, std::shared_ptr<Transfer>> under_way;
    unsigned abandoned = 0;  // of those under way
    bool flush_scheduled = false;
    bool closed = false;

    Status open();
    void allow_workers();
    void class_workers();
    void schedule_flush();
    void flush();
    bool prepare(Transfer& transfer);
    void prepare_cancellations();
    void reap(bool tell);
    void finish(Transfer* transfer, int result, bool tell);
};

Status Ring::State::open() {
    if (const int error = io_uring_queue_init(entries, &ring, 0); error < 0)
        return Status::from_errno(-error, "the kernel refuses io_uring");
    opened = true;
    io_uring_probe* const probe = io_uring_get_probe_ring(&ring);
    const bool complete = probe && io_uring_opcode_supported(probe, IORING_OP_READ) &&
                          io_uring_opcode_supported(probe, IORING_OP_WRITE) && (ring.features & IORING_FEAT_NODROP);
    if (probe) io_uring_free_probe(probe);
    if (!complete) return {Code::unsupported, "this kernel's io_uring is too old (Linux 5.6 is needed)"};
    event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (event < 0) return Status::from_errno(errno, "making an eventfd for io_uring");
    if (const int error = io_uring_register_eventfd(&ring, event); error < 0)
        return Status::from_errno(-error, "registering an eventfd with io_uring");
    allow_workers();
    Result<Loop::WatchId> watching = loop->watch_readable(event, [this] { reap(true); });
    if (!watching.ok()) return std::move(watching).status();
    watch = *watching;
    return {};
}

// The kernel's own limit (4 a core) would let a few stuck transfers stop all others. Older kernels lack the call: they
// keep theirs.
void Ring::State::allow_workers() {
    has_one_submitter = has_one_submitter && (submitter == std::thread::id() || submitter == std::this_thread::get_id());
    submitter = std::this_thread::get_id();
    unsigned limits[2] = {workers + abandoned, workers + abandoned};  // on regular files; on others
    (void)io_uring_register_iowq_max_workers(&ring, limits);
}

// They are started by the kernel, from the class of the loop's thread, and end when idle; a number may come back as another thread's. Those of another
// thread of the loop keep their class: they would not get it back when that thread submits again.
void Ring::State::class_workers() {
    if (thread_class == ThreadClass{} || loop->now() - looked < look_for_workers) return;
    looked = loop->now();
    const std::set<pid_t> there = kernel_io_threads(has_one_submitter ? 0 : ::gettid());
    for (const pid_t thread : there)
        if (classed.count(thread) == 0) (void)set_thread_class(thread_class, thread);
    classed = there;
}

void Ring::State::schedule_flush() {
    if (flush_scheduled) return;
    flush_scheduled = true;
    loop->call_soon([weak = weak_from_this()] {
        if (const auto state = weak.lock()) state->flush();
    });
}

void Ring::State::flush() {
    flush_scheduled = false;
    if (closed) return;
    if (submitter != std::this_thread::get_id()) allow_workers();  // each thread that submits has workers of its own
    prepare_cancellations();
    while (!waiting.empty() && under_way.size() < entries && prepare(*waiting.front())) {
        Transfer* const raw = waiting.front().get();
        under_way.emplace(raw, std::move(waiting.front()));
        waiting.pop_front();
    }
    const int submitted = io_uring_submit(&ring);
    class_workers();
    if (submitted >= 0 && io_uring_sq_ready(&ring) == 0 && to_cancel.empty()) return;
    // The kernel is short of memory or wants completions taken first: the entries stay in the queue, again in a moment.
    flush_scheduled = true;
    loop->at(loop->in(busy_retry), [weak = weak_from_this()] {
        if (const auto state = weak.lock()) state->flush();
    });
}

bool Ring::State::prepare(Transfer& transfer) {
    io_uring_sqe* const entry = io_uring_get_sqe(&ring);
    if (!entry) return false;
    const RealFile::Route& route = transfer.route;
    const auto length = static_cast<unsigned>(route.length);
    switch (transfer.kind) {
        case TransferKind::read:
            io_uring_prep_read(entry, route.descriptor, transfer.slice.data(), length, transfer.offset);
            break;
        case TransferKind::write:
            io_uring_prep_write(entry, route.descriptor, transfer.slice.data(), length, transfer.offset);
            break;
        case TransferKind::fsync:
        case TransferKind::fsync_direct:
            io_uring_prep_fsync(entry, route.descriptor, 0);
            break;
    }
    if (thread_class.io == IoClass::idle && !is_fsync(transfer.kind))
        entry->ioprio = io_priority_idle;
    io_uring_sqe_set_data(entry, &transfer);
    entry->flags |= IOSQE_ASYNC;
    return true;
}

void Ring::State::prepare_cancellations() {
    while (!to_cancel.empty()) {
        Transfer* const transfer = to_cancel.back();
        if (under_way.count(transfer) != 0) {
            io_uring_sqe* const entry = io_uring_get_sqe(&ring);
            if (!entry) return;
            io_uring_prep_cancel(entry, transfer, 0);
            io_uring_sqe_set_data(entry, nullptr);  // its own completion says nothing of use
        }
        to_cancel.pop_back();
    }
}

// `tell`: let the waiting coroutines know; not while the ring goes away.
void Ring::State::reap(bool tell) {
    eventfd_t count;
    (void)::eventfd_read(event, &count);
    io_uring_cqe* completion = nullptr;
    while (io_uring_peek_cqe(&ring, &completion) == 0) {
        auto* const transfer = static_cast<Transfer*>(io_uring_cqe_get_data(completion));
        const int result = completion->res;
        io_uring_cqe_seen(&ring, completion);
        if (transfer) finish(transfer, result, tell);
    }
    if (tell && !waiting.empty()) schedule_flush();
}

void Ring::State::finish(Transfer* transfer, int result, bool tell) {
    const auto place = under_way.find(transfer);
    const std::shared_ptr<Transfer> held = std::move(place->second);
    under_way.erase(place);
    if (held->abandoned) {
        --abandoned;
        allow_workers();
    } else if (tell && !is_fsync(held->kind) && (result == -EINTR || result == -EAGAIN)) {  // a second fsync would hide what the first one met
        waiting.push_back(held);
        return;
    }
    held->result = result;
    if (tell) held->finished();
}

Result<std::unique_ptr<Ring>> Ring::create(Loop& loop, unsigned workers, ThreadClass thread_class) {
    auto state = std::make_shared<State>(loop, workers, thread_class);
    Status status = state->open();
    if (!status.ok()) return Status(Code::unsupported, status.text());
    return std::unique_ptr<Ring>(new Ring(std::move(state)));
}

Ring::~Ring() {
    State& state = *state_;
    state.loop->unwatch(state.watch);
    state.closed = true;
    state.waiting.clear();
    for (const auto& [raw, held] : state.under_way) {
        if (io_uring_sq_space_left(&state.ring) == 0) (void)io_uring_submit(&state.ring);
        if (io_uring_sqe* const entry = io_uring_get_sqe(&state.ring)) {
            io_uring_prep_cancel(entry, raw, 0);
            io_uring_sqe_set_data(entry, nullptr);
        }
    }
    const Nanos deadline = state.loop->in(exit_wait);
    while (!state.under_way.empty() && state.loop->now() < deadline) {
        (void)io_uring_submit(&state.ring);
        __kernel_timespec pause = {0, 10 * millisecond};
        io_uring_cqe* completion = nullptr;
        (void)io_uring_wait_cqe_timeout(&state.ring, &completion, &pause);
        state.reap(false);
    }
    // Never destroyed, and reachable, so that leak checkers know it is meant.
    static auto* const quarantine = new std::vector<std::shared_ptr<State>>();
    static std::mutex one_at_a_time;  // each thread may have a world of its own
    if (state.under_way.empty()) return;
    const std::lock_guard lock(one_at_a_time);
    quarantine->push_back(state_);
}

void Ring::submit(std::shared_ptr<Transfer> transfer) {
    state_->waiting.push_back(std::move(transfer));
    state_->schedule_flush();
}

bool Ring::abandon(const std::shared_ptr<Transfer>& transfer) {
    State& state = *state_;
    transfer->abandoned = true;
    const auto place = std::find(state.waiting.begin(), state.waiting.end(), transfer);
    if (place != state.waiting.end()) {
        state.waiting.erase(place);
        return true;
    }
    CAIRN_CHECK(state.under_way.count(transfer.get()) != 0);
    ++state.abandoned;
    state.allow_workers();
    state.to_cancel.push_back(transfer.get());
    state.schedule_flush();
    return false;
}

void Ring::set_class(ThreadClass wanted) {
    state_->thread_class = wanted;
    state_->classed.clear();
}

std::size_t Ring::under_way() const noexcept { return state_->under_way.size() + state_->waiting.size(); }

}  // namespace cairn
