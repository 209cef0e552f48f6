#include "daemon/scratch_look.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "daemon/blocking.hpp"

namespace cairn {

const Unread* first_passing(const std::vector<Unread>& unread) {
    const auto found = std::find_if(unread.begin(), unread.end(), [](const Unread& each) { return may_pass(each.why); });
    return found == unread.end() ? nullptr : &*found;
}

bool has_unsupported(const std::vector<Unread>& unread) {
    return std::any_of(unread.begin(), unread.end(), [](const Unread& each) { return each.why.code() == Code::unsupported; });
}

Task<void> ScratchLook::wait_for_scratch(Status why) {
    if (why.text() != problem_.text()) log_warning("scratch-can-not-be-read", {{"why", why}});
    problem_ = std::move(why);
    co_await world_.clock.sleep(try_again);
}

template <class Scan>
Task<Result<Scan>> ScratchLook::look_at_all(Task<Result<Scan>> (*look)(World&, ScratchLayout, Nanos), std::function<bool()> over) {
    Result<Scan> scan = co_await look(world_, scratch_, io_wait_);
    while (!scan.ok() && !over()) {
        Status why = scan.status();
        co_await wait_for_scratch(std::move(why));
        scan = co_await look(world_, scratch_, io_wait_);
    }
    for (int looks = 1; scan.ok() && first_passing(scan->unread) && looks < looks_max && !over(); ++looks) {
        Status why = first_passing(scan->unread)->why;
        co_await wait_for_scratch(std::move(why));
        co_await scan_again(world_, *scan, io_wait_);
    }
    if (over()) co_return Status(Code::cancelled, "the daemon ends");
    co_return scan;
}

Task<Result<JobScan>> ScratchLook::jobs(std::function<bool()> over) {
    Result<JobScan> scan = co_await look_at_all(scan_jobs, std::move(over));
    if (!scan.ok()) co_return scan;
    for (const Unread& each : scan->unread) log_error("job-can-not-be-read", {{"path", each.path}, {"why", each.why}});
    co_return scan;
}

Task<Result<ScratchScan>> ScratchLook::images(std::function<bool()> over) {
    Result<ScratchScan> scan = co_await look_at_all(scan_scratch, std::move(over));
    if (!scan.ok()) co_return scan;
    for (const Unread& each : scan->unread) {
        if (may_pass(each.why)) log_error("image-can-not-be-read", {{"path", each.path}, {"why", each.why}});
        else log_warning(each.why.code() == Code::unsupported ? "slot-of-another-release" : "image-damaged", {{"path", each.path}, {"why", each.why}});
    }
    co_return scan;
}

}  // namespace cairn
