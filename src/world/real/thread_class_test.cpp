#include "world/real/thread_class.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "world/real/cpu.hpp"
#include "world/real/io_priority.hpp"
#include "world/real/test_world.hpp"

namespace cairn {
namespace {

using test::make_loop;
using test::make_storage;
using test::patience;

constexpr ThreadClass idle{CpuClass::idle, IoClass::idle};

bool io_is_idle(pid_t thread) {
    return ::syscall(SYS_ioprio_get, io_priority_of_thread, thread) == io_priority_idle;
}

// In a thread of its own: nothing of this can be undone.
void in_a_thread(void (*body)()) { std::thread(body).join(); }

TEST(ThreadClass, IdleAndLowAreSetAndInheritedAndNormalChangesNothing) {
    in_a_thread([] {
        EXPECT_TRUE(set_thread_class({}).ok());
        EXPECT_EQ(::sched_getscheduler(0), SCHED_OTHER);
        EXPECT_TRUE(set_thread_class({CpuClass::low, IoClass::normal}).ok());
        EXPECT_EQ(::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid())), 19);
        EXPECT_FALSE(io_is_idle(0));
        const Status status = set_thread_class(idle);
        EXPECT_TRUE(status.ok()) << status.to_string();
        EXPECT_EQ(::sched_getscheduler(0), SCHED_IDLE);
        EXPECT_TRUE(io_is_idle(0));
        in_a_thread([] { EXPECT_EQ(::sched_getscheduler(0), SCHED_IDLE); });
    });
    EXPECT_EQ(::sched_getscheduler(0), SCHED_OTHER);  // nobody else's
}

TEST(ThreadClass, NeedsNoPrivilege) {
    const pid_t child = ::fork();
    if (child == 0) {
        constexpr uid_t nobody = 65534;
        if (::geteuid() == 0 && ::setresuid(nobody, nobody, nobody) != 0) ::_exit(1);
        const bool low = set_thread_class({CpuClass::low, IoClass::normal}).ok();
        const bool low_and_idle = set_thread_class(idle).ok();
        ::_exit(low && low_and_idle && set_thread_class(idle).ok() ? 0 : 2);
    }
    int ended = -1;
    ASSERT_EQ(::waitpid(child, &ended, 0), child);
    EXPECT_TRUE(WIFEXITED(ended));
    EXPECT_EQ(WEXITSTATUS(ended), 0);
}

TEST(ThreadClass, AThreadThatIsNotThereIsRefusedWithWords) {
    const Status status = set_thread_class(idle, INT32_MAX);
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.text().find("SCHED_IDLE"), std::string::npos) << status.text();
}

TEST(ThreadClass, ASessionOfItsOwnBecomesNiceAsAWhole) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::setsid();
        Status status = unavailable("not tried");
        for (int tries = 0; tries < 100 && status.code() == Code::unavailable; ++tries) {
            std::this_thread::sleep_for(std::chrono::milliseconds(110));
            status = set_session_nice(19);
        }
        std::stringstream text;
        text << std::ifstream("/proc/self/autogroup").rdbuf();
        const bool is_nice = text.str().find("nice 19") != std::string::npos;
        ::_exit(status.ok() ? (is_nice ? 0 : 1) : status.code() == Code::unsupported && text.str().empty() ? 0 : 2);
    }
    int ended = -1;
    ASSERT_EQ(::waitpid(child, &ended, 0), child);
    EXPECT_TRUE(WIFEXITED(ended));
    EXPECT_EQ(WEXITSTATUS(ended), 0);
}

Task<void> sum_up(Cpu& cpu) {
    Slice data = Slice::of(Bytes(4 << 20));
    const std::vector<std::uint64_t> sums = co_await cpu.checksums(std::move(data), 1 << 20);
    EXPECT_EQ(sums.size(), 4u);
}

// The policy of each thread of this process that has this name.
std::vector<int> policies(const std::string& name) {
    std::vector<int> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
        std::string comm;
        std::ifstream(entry.path() / "comm") >> comm;
        if (comm.starts_with(name)) found.push_back(::sched_getscheduler(std::stoi(entry.path().filename())));
    }
    return found;
}

TEST(ThreadClass, ThePoolsThreadsHaveTheirs) {
    const auto loop = make_loop();
    RealCpu cpu(*loop, 2, idle);
    ASSERT_TRUE(loop->run_until_done(sum_up(cpu), loop->in(patience)));
    const std::vector<int> found = policies("cairn-cpu");
    ASSERT_FALSE(found.empty());
    for (const int policy : found) EXPECT_EQ(policy, SCHED_IDLE);
    EXPECT_EQ(::sched_getscheduler(0), SCHED_OTHER);
}

Task<void> write_until_classed(Loop& loop, RealStorage& storage, std::string path, bool& classed) {
    OpenOptions options;
    options.mode = OpenMode::create;
    Result<FilePtr> file = co_await storage.open(path, options, loop.in(patience));
    if (!file.ok()) co_return;
    const Nanos deadline = loop.in(patience);
    while (!classed && loop.now() < deadline) {
        Slice data = Slice::of(Bytes(1 << 20));
        const Status wrote = co_await write_all(storage, *file, 0, std::move(data), deadline);
        EXPECT_TRUE(wrote.ok()) << wrote.to_string();
        const std::vector<int> found = policies("iou-wrk");
        classed = !found.empty() && std::all_of(found.begin(), found.end(), [](int policy) { return policy == SCHED_IDLE; });
        co_await loop.sleep(5 * millisecond);
    }
}

TEST(ThreadClass, TheKernelsThreadsForIoGetTheirs) {
    const test::TemporaryDirectory directory;
    const auto loop = make_loop();
    const auto storage = make_storage(*loop, {.backend = IoBackend::automatic, .workers = 4, .thread_class = idle});
    bool classed = false;
    const bool has_ring = storage->backend_name() == "io_uring";
    if (!has_ring) return;  // the pool's test holds then
    ASSERT_TRUE(loop->run_until_done(write_until_classed(*loop, *storage, directory / "file", classed), loop->in(2 * patience)));
    EXPECT_TRUE(classed);
}

}  // namespace
}  // namespace cairn
