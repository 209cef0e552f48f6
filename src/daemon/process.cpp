// Double fork, setsid, and the report through a pipe.
#include "daemon/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>

namespace cairn {

namespace {

constexpr int report_descriptor = 3;
constexpr std::size_t report_bytes_max = 64 << 10;

[[noreturn]] void starter_exits(Exit code, const std::string& text) {
    if (!text.empty()) std::fprintf(stderr, "cairnd: %s\n", text.c_str());
    std::fflush(stderr);
    ::_exit(static_cast<int>(code));
}

// One byte of exit code, then text until the end of file.
[[noreturn]] void wait_for_report(Descriptor pipe, std::uint64_t wait_ms) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::milliseconds(wait_ms);
    std::string said;
    while (said.size() < report_bytes_max) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
        if (left <= 0)
            starter_exits(Exit::cannot_start, "the daemon did not begin within " + std::to_string(wait_ms) + " ms");
        pollfd wait{pipe.get(), POLLIN, 0};
        if (::poll(&wait, 1, static_cast<int>(std::min<long long>(left, 60'000))) <= 0) continue;
        char buffer[4096];
        const ssize_t got = ::read(pipe.get(), buffer, sizeof buffer);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        said.append(buffer, static_cast<std::size_t>(got));
    }
    if (said.empty()) starter_exits(Exit::cannot_start, "the daemon died before it could say why; its log may tell");
    starter_exits(static_cast<Exit>(said.front()), said.substr(1));
}

// close_range is younger than some kernels, and forbidden in some containers.
void close_above(int last) {
    if (::close_range(static_cast<unsigned>(last) + 1, ~0u, 0) == 0) return;
    rlimit files{};
    const bool known = ::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur != RLIM_INFINITY;
    const int end = known ? static_cast<int>(std::min<rlim_t>(files.rlim_cur, 1 << 20)) : 1 << 16;
    for (int fd = last + 1; fd < end; ++fd) ::close(fd);
}

void leave_terminal_and_descriptors(int report) {
    if (report != report_descriptor) ::dup2(report, report_descriptor);
    close_above(report_descriptor);
    ::fcntl(report_descriptor, F_SETFD, FD_CLOEXEC);
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3 && null >= 0; ++fd) ::dup2(null, fd);
    if (null > 2) ::close(null);
    if (::chdir("/") != 0) ::_exit(static_cast<int>(Exit::cannot_start));
}

void use_all_processors() {
    cpu_set_t all;
    CPU_ZERO(&all);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) CPU_SET(cpu, &all);
    static_cast<void>(
        ::sched_setaffinity(0, sizeof all, &all));  // the kernel keeps to the job's cpuset; failing costs speed only
}

}  // namespace

void Report::say(Exit code, const std::string& text) {
    if (pipe_.get() < 0) return;
    const std::string word = static_cast<char>(code) + text.substr(0, report_bytes_max - 2);
    std::size_t done = 0;
    while (done < word.size()) {
        const ssize_t wrote = ::write(pipe_.get(), word.data() + done, word.size() - done);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) break;  // the starter is gone: nobody wants to know
        done += static_cast<std::size_t>(wrote);
    }
    pipe_.reset(-1);
}

Result<Report> detach(std::uint64_t wait_ms) {
    // 0, 1 and 2 taken, so that the pipe is not one of them.
    for (int fd = 0; fd < 3; ++fd)
        if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", O_RDWR) < 0)
            return Status::from_errno(errno, "can not open /dev/null");
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return Status::from_errno(errno, "can not make a pipe");
    Descriptor reader(ends[0]), writer(ends[1]);
    const pid_t first = ::fork();
    if (first < 0) return Status::from_errno(errno, "can not start a process");
    if (first > 0) {
        writer.reset(-1);
        int ended = 0;
        while (::waitpid(first, &ended, 0) < 0 && errno == EINTR) {
        }
        wait_for_report(std::move(reader), wait_ms);
    }
    ::setsid();
    const pid_t second = ::fork();  // not a session's leader: can never get a terminal again
    if (second != 0) ::_exit(second < 0 ? static_cast<int>(Exit::cannot_start) : 0);
    reader.reset(-1);
    leave_terminal_and_descriptors(writer.release());
    use_all_processors();
    return Report(Descriptor(report_descriptor));
}

void settle() {
    struct sigaction action = {};
    action.sa_handler = SIG_DFL;
    for (int number = 1; number < NSIG; ++number)
        if (number != SIGKILL && number != SIGSTOP) ::sigaction(number, &action, nullptr);
    action.sa_handler = SIG_IGN;
    ::sigaction(SIGHUP, &action, nullptr);
    ::sigaction(SIGPIPE, &action, nullptr);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max;
        ::setrlimit(RLIMIT_NOFILE, &files);
    }
}

}  // namespace cairn
