#include "world/real/cpu.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <new>
#include <thread>

#include "base/checksum.hpp"
#include "world/channel.hpp"
#include "world/real/loop.hpp"

namespace cairn {

namespace {

constexpr std::uint64_t inline_bytes_max = 64 << 10;  // cheaper than waking a thread
constexpr std::uint64_t portion_bytes = 1 << 20;      // what a thread takes at a time: some tens of microseconds
constexpr Nanos no_thread_wait = 200 * millisecond;  // where mapped memory should not be touched on the loop
constexpr int no_thread_tries = 50;                  // a process that has no thread at all must get on
constexpr unsigned stuck_slices_max = 16;             // whose threads are replaced

// One slice, shared by the threads that work on it; each takes the next portion until none is left.
struct Work {
    Work(Clock& clock, Slice s, const Units& units) : data(std::move(s)), ends(unit_ends(units, data.length)), sums(ends.size()), ended(clock) {
        units_a_portion = std::max<std::uint64_t>(1, portion_bytes / units.block_bytes);
    }

    Slice data;
    std::vector<std::uint64_t> ends;
    std::uint64_t units_a_portion;
    std::vector<std::uint64_t> sums;
    std::atomic<std::uint64_t> next_unit{0};
    unsigned helpers = 0;  // still at it; loop only
    std::atomic<bool> stuck{false};  // whoever has not begun leaves it to those that have, should they come back
    Event ended;

    void compute() {
        for (;;) {
            const std::uint64_t first = next_unit.fetch_add(units_a_portion, std::memory_order_relaxed);
            if (first >= sums.size()) return;
            const std::uint64_t end = std::min<std::uint64_t>(first + units_a_portion, sums.size());
            for (std::uint64_t unit = first; unit < end; ++unit) {
                const std::uint64_t begin = unit == 0 ? 0 : ends[unit - 1];
                sums[unit] = checksum(data.part(begin, ends[unit] - begin).bytes());
            }
        }
    }
};

class Helper final : public Job {
  public:
    explicit Helper(std::shared_ptr<Work> work) : work_(std::move(work)) {}
    void run() override {
        runs_ = true;
        if (!work_->stuck) work_->compute();
    }
    bool runs() const { return runs_; }
    void finished() override {
        --work_->helpers;
        work_->ended.notify_all();
    }

  private:
    std::shared_ptr<Work> work_;
    std::atomic<bool> runs_{false};  // or has run
};

// One piece of work that is not shared.
class Single final : public Job {
  public:
    Single(Clock& clock, std::function<void()> work) : ended(clock), work_(std::move(work)) {}
    void run() override { work_(); }
    void finished() override {
        done = true;
        ended.notify_all();
    }
    bool done = false;  // loop only
    Event ended;

  private:
    std::function<void()> work_;
};

// What was kept of an older version may have changed where it lies.
bool is_whole(const BaseBytes& base) {
    if (base.bytes.length == 0) return false;
    const std::vector<std::uint64_t> ends = unit_ends(base.units, base.bytes.length);
    if (ends.size() != base.checksums.size()) return false;
    for (std::size_t i = 0, begin = 0; i < ends.size(); begin = ends[i++])
        if (checksum(base.bytes.bytes().subspan(begin, ends[i] - begin)) != base.checksums[i]) return false;
    return true;
}

std::uint64_t steady_ns() { return static_cast<std::uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count()); }

}  // namespace

unsigned RealCpu::default_threads() { return std::max(1u, std::thread::hardware_concurrency() / 2); }

RealCpu::RealCpu(Loop& loop, unsigned threads, ThreadClass thread_class, Nanos stuck_wait)
    : loop_(loop),
      threads_(threads != 0 ? threads : default_threads()),
      stuck_wait_(stuck_wait),
      pool_(loop.remote(), {.name = "cairn-cpu", .threads_max = threads_, .stuck_max = stuck_slices_max * threads_, .thread_class = thread_class}) {}

Task<std::vector<std::uint64_t>> RealCpu::checksums(Slice data, Units units) {
    CAIRN_CHECK(units.block_bytes != 0);
    auto work = std::make_shared<Work>(loop_, std::move(data), units);
    std::vector<std::shared_ptr<Helper>> helpers;
    const bool mapped = work->data.length > 0 && work->data.buffer->is_mapped();  // the loop does not touch it: it may never come back
    const std::uint64_t portions = mapped || work->data.length >= inline_bytes_max ? div_up(work->sums.size(), work->units_a_portion) : 0;
    for (int tries = 0; tries < no_thread_tries; ++tries) {
        while (helpers.size() < std::min<std::uint64_t>(threads_, portions)) {
            auto helper = std::make_shared<Helper>(work);
            if (!pool_.submit(helper).ok()) break;
            ++work->helpers;
            helpers.push_back(std::move(helper));
        }
        if (!mapped || !helpers.empty()) break;
        co_await loop_.sleep(no_thread_wait);
    }
    if (work->helpers == 0) work->compute();  // small, or not one thread to be had
    while (work->helpers != 0) {
        const std::uint64_t begun = work->next_unit;
        const bool ended = co_await work->ended.wait(loop_.in(stuck_wait_));
        // Before anybody has begun nobody is stuck: threads that wait for their turn come to it, and whoever has begun goes on to the end.
        if (ended || begun == 0 || work->next_unit != begun) continue;
        // Mapped memory of which a page does not come back: other slices get threads of their own.
        for (const auto& helper : helpers) {
            if (!helper->runs()) continue;
            work->stuck = true;
            (void)pool_.abandon(helper);
        }
    }
    CAIRN_CHECK(work->next_unit >= work->sums.size());
    co_return std::move(work->sums);
}

// In a thread, whatever its size: what it holds may be mapped memory that does not come back. What it was given lives as long as it.
Task<Status> RealCpu::run(std::function<void()> work, Nanos deadline) {
    auto job = std::make_shared<Single>(loop_, std::move(work));
    while (!pool_.submit(job).ok()) {
        if (loop_.now() >= deadline) co_return deadline_passed("no thread was to be had for encoding, decoding, describing or comparing");
        co_await loop_.sleep(no_thread_wait);
    }
    while (!job->done) {
        const bool ended = co_await job->ended.wait(deadline);
        if (ended || job->done) continue;
        (void)pool_.abandon(job);
        co_return deadline_passed("encoding, decoding, describing or comparing did not come to its end: memory did not come back, or the machine had no time for it");
    }
    co_return Status();
}

bool RealCpu::may_shrink(Codec codec, const std::vector<std::uint64_t>& checksums, std::uint64_t bytes, std::uint64_t block_bytes) const {
    return cairn::may_shrink(codec, checksums, bytes, block_bytes);
}

Task<Result<Encoded>> RealCpu::encode(Coding coding, Slice raw, BaseBytes base, FindArrays arrays, Slice into, Nanos deadline) {
    auto made = std::make_shared<Encoded>();
    std::function<void()> work = [coding = std::move(coding), raw, base = std::move(base), into, made, arrays = std::move(arrays)] {
        auto begun = std::chrono::steady_clock::now();  // the thread may outlive the loop
        try {
            const std::vector<NumberArray> known = arrays && wants_arrays(coding.codec) ? arrays() : std::vector<NumberArray>();
            begun = std::chrono::steady_clock::now();  // who asks first has all of an image described
            Base older{is_whole(base) ? base.bytes.bytes() : ByteView()};
            ByKey keys{coding.keys.get(), steady_ns};
            made->bytes = cairn::encode(coding.codec, raw.bytes(), known, {into.data(), static_cast<std::size_t>(into.length)}, &older, &keys);
            made->needs_base = older.is_needed;
            made->keys = std::move(keys.seen);
        } catch (const std::bad_alloc&) {
            made->bytes = 0;  // stored as it is
        }
        made->checksum = made->bytes == 0 ? 0 : checksum(into.part(0, made->bytes).bytes());
        made->took = std::chrono::nanoseconds(std::chrono::steady_clock::now() - begun).count();
    };
    const Status ran = co_await run(std::move(work), deadline);
    if (!ran.ok()) co_return ran;
    co_return *made;
}

Task<Result<std::vector<NumberArray>>> RealCpu::find(FindArrays arrays, Nanos deadline) {
    auto found = std::make_shared<std::vector<NumberArray>>();
    std::function<void()> work = [arrays = std::move(arrays), found] {
        try {
            *found = arrays();
        } catch (const std::bad_alloc&) {
            found->clear();  // nothing is known then
        }
    };
    const Status ran = co_await run(std::move(work), deadline);
    if (!ran.ok()) co_return ran;
    co_return std::move(*found);
}

Task<Status> RealCpu::decode(Codec codec, Slice stored, Slice base, Slice into, Nanos deadline) {
    auto made = std::make_shared<Status>();
    std::function<void()> work = [codec, stored, base, into, made] {
        try {
            *made = cairn::decode(codec, stored.bytes(), {into.data(), static_cast<std::size_t>(into.length)}, base.length > 0 ? base.bytes() : ByteView());
        } catch (const std::bad_alloc&) {
            *made = Status(Code::out_of_space, "no memory to decode a run");
        }
    };
    const Status ran = co_await run(std::move(work), deadline);
    if (!ran.ok()) co_return ran;
    co_return *made;
}

Task<Result<bool>> RealCpu::equal(Pairs pairs, Nanos deadline) {
    auto same = std::make_shared<bool>(false);
    std::function<void()> work = [pairs = std::move(pairs), same] {
        *same = std::all_of(pairs.begin(), pairs.end(), [](const auto& each) {
            return each.first.length == each.second.length && std::memcmp(each.first.data(), each.second.data(), each.first.length) == 0;
        });
    };
    const Status ran = co_await run(std::move(work), deadline);
    if (!ran.ok()) co_return ran;
    co_return *same;
}

}  // namespace cairn
