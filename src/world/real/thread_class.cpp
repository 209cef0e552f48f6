#include "world/real/thread_class.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

#include "world/real/io_priority.hpp"

namespace cairn {

namespace {

constexpr int lowest_nice = 19;
constexpr std::uint64_t short_turn_ns = 100'000;  // the least that the kernel grants

// sched_setattr(2) has no wrapper in older C libraries. Its first version; what came later is about other policies.
struct SchedulingAttributes {
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime, deadline, period;
};
static_assert(sizeof(SchedulingAttributes) == 48);


// What a thread gets is its share; with short turns it gets it soon. With turns of the usual length a thread of so small a share waits for a
// fifth of a second, or a whole one, each time it is woken on a busy processor, and a flush is woken many times.
// The nice is the lowest in either class: a thread that is nice already may not ask for less, although the idle class knows no nice.
bool set_scheduling(pid_t thread, int policy, int nice) {
    SchedulingAttributes wanted{};
    wanted.size = sizeof wanted;
    wanted.policy = static_cast<std::uint32_t>(policy);
    wanted.nice = nice;
    wanted.runtime = short_turn_ns;  // ignored where the kernel has no turns of a thread's own
    return ::syscall(SYS_sched_setattr, thread, &wanted, 0) == 0;
}

// 0: nothing is to be set.
int nice_of(CpuClass wanted, pid_t thread) {
    int nice = 0;
    if (wanted == CpuClass::low) nice = lowest_nice;
    if (wanted == CpuClass::nice_10) nice = 10;
    if (wanted == CpuClass::nice_5) nice = 5;
    return nice == 0 ? 0 : std::max(nice, ::getpriority(PRIO_PROCESS, static_cast<id_t>(thread)));
}

}  // namespace

Status set_thread_class(ThreadClass wanted, pid_t thread) {
    Status refused;
    if (wanted.cpu == CpuClass::idle && !set_scheduling(thread, SCHED_IDLE, lowest_nice)) refused = Status::from_errno(errno, "SCHED_IDLE");
    if (const int nice = nice_of(wanted.cpu, thread); nice > 0 && !set_scheduling(thread, SCHED_OTHER, nice))
        refused = Status::from_errno(errno, "nice " + std::to_string(nice));
    if (wanted.io == IoClass::idle) {
        if (::syscall(SYS_ioprio_set, io_priority_of_thread, thread, io_priority_idle) != 0)
            return refused.ok() ? Status::from_errno(errno, "the idle class of I/O") : refused;
    }
    return refused;
}

Status set_session_nice(int nice) {
    const int file = ::open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);
    if (file < 0) return {Code::unsupported, "this kernel has no groups of sessions"};
    const std::string text = std::to_string(nice);
    const ssize_t wrote = ::write(file, text.data(), text.size());
    const int error = errno;
    ::close(file);
    if (wrote >= 0) return {};
    if (error == EAGAIN) return unavailable("the nice of a session was changed a moment ago");
    return Status::from_errno(error, "/proc/self/autogroup");
}

std::set<pid_t> kernel_io_threads(pid_t submitter) {
    const std::string wanted = submitter == 0 ? "iou-wrk" : "iou-wrk-" + std::to_string(submitter);  // the kernel names them so
    std::set<pid_t> found;
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/task"), ::closedir);
    while (const dirent* entry = folder ? ::readdir(folder.get()) : nullptr) {
        std::string name;
        std::ifstream(std::string("/proc/self/task/") + entry->d_name + "/comm") >> name;
        if (submitter == 0 ? name.starts_with(wanted) : name == wanted) found.insert(static_cast<pid_t>(std::atol(entry->d_name)));
    }
    return found;
}

}  // namespace cairn
