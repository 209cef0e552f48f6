#include "describer/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

extern char** environ;

namespace cairn::describer {

namespace {

int milliseconds_left(Deadline deadline) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    return static_cast<int>(std::clamp<long long>(left, 0, 60'000));
}

// What libhdf5 would take its settings from is left out: files, plugins and other drivers are none of its business there.
std::vector<char*> variables() {
    std::vector<char*> kept;
    for (char** each = environ; *each; ++each)
        if (std::strncmp(*each, "HDF5_", 5) != 0) kept.push_back(*each);
    kept.push_back(nullptr);
    return kept;
}

// posix_spawn() is safe where there are threads, and copies no page tables. A session of its own: who interrupts a daemon in the foreground does not interrupt it.
int spawn(const std::string& program, int socket, pid_t& pid) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
    ::posix_spawn_file_actions_adddup2(&actions, socket, 0);
    ::posix_spawn_file_actions_adddup2(&actions, socket, 1);
    ::posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    sigset_t none, all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    char* arguments[] = {const_cast<char*>(program.c_str()), nullptr};
    const int error = ::posix_spawn(&pid, program.c_str(), &actions, &attributes, arguments, variables().data());
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
    return error;
}

}  // namespace

Result<std::unique_ptr<Child>> Child::start(const std::string& program) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return Status::from_errno(errno, "can not make a socket");
    // Not 0, 1 or 2, which are made anew in the child before the others go.
    const int theirs = ::fcntl(ends[1], F_DUPFD_CLOEXEC, 3);
    const int error_of_socket = errno;
    ::close(ends[1]);
    pid_t pid = 0;
    const int error = theirs < 0 ? error_of_socket : spawn(program, theirs, pid);
    if (theirs >= 0) ::close(theirs);
    if (error != 0) {
        ::close(ends[0]);
        return Status::from_errno(error, "can not start " + program);
    }
    return std::unique_ptr<Child>(new Child(pid, ends[0]));
}

Child::Child(pid_t pid, int socket) : pid_(pid), socket_(socket), process_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}

Child::~Child() {
    end(std::chrono::seconds(1));
    if (process_ >= 0) ::close(process_);
}

Status Child::ready(short events, Deadline deadline) const {
    for (;;) {
        const int wait = milliseconds_left(deadline);
        pollfd socket{socket_, events, 0};
        const int found = ::poll(&socket, 1, wait);
        if (found > 0) return {};
        if (found < 0 && errno != EINTR) return Status::from_errno(errno, "can not wait for the describer");
        if (wait == 0) return deadline_passed("it did not answer in time");
    }
}

Status Child::send(ByteView bytes, Deadline deadline) {
    while (!bytes.empty()) {
        TRY(ready(POLLOUT, deadline));
        const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (sent < 0) return unavailable("it has died");
        bytes = bytes.subspan(static_cast<std::size_t>(sent));
    }
    return {};
}

Status Child::receive(std::span<std::byte> bytes, Deadline deadline) {
    while (!bytes.empty()) {
        TRY(ready(POLLIN, deadline));
        const ssize_t got = ::recv(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT);
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (got <= 0) return unavailable("it has died");
        bytes = bytes.subspan(static_cast<std::size_t>(got));
    }
    return {};
}

bool Child::is_silent() const {
    pollfd socket{socket_, POLLIN, 0};
    return ::poll(&socket, 1, 0) == 0;
}

bool Child::reap() {
    const pid_t got = ::waitpid(pid_, nullptr, WNOHANG);
    // Where somebody else reaped it, or nobody wants to know of children, it is gone as well.
    if (got == pid_ || (got < 0 && errno == ECHILD)) pid_ = 0;
    return pid_ == 0;
}

bool Child::end(std::chrono::milliseconds wait) {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
    if (pid_ == 0) return true;
    if (process_ < 0) ::kill(pid_, SIGKILL);
    else ::syscall(SYS_pidfd_send_signal, process_, SIGKILL, nullptr, 0);
    const Deadline deadline = std::chrono::steady_clock::now() + wait;
    while (!reap()) {
        const int left = milliseconds_left(deadline);
        if (left == 0) return false;
        pollfd process{process_, POLLIN, 0};
        ::poll(&process, 1, process_ < 0 ? 1 : left);  // without a descriptor it looks each millisecond
    }
    return true;
}

}  // namespace cairn::describer
