#include "storage/outside.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>

extern char** environ;

namespace cairn {

namespace {

using Steady = std::chrono::steady_clock;
constexpr std::size_t output_bytes_max = 4 << 20;  // some 100 bytes a target
constexpr std::size_t value_bytes_max = 64 << 10;
constexpr Nanos limit_max = 600 * second;

// A pipe whose writing end is not 0, 1 or 2, which are made anew in the child.
struct Pipe {
    int reading = -1, writing = -1;
    std::string text;
    Pipe() {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) return;
        reading = ends[0];
        writing = ::fcntl(ends[1], F_DUPFD_CLOEXEC, 3);
        ::close(ends[1]);
    }
    Pipe(const Pipe&) = delete;
    ~Pipe() { end(reading), end(writing); }
    static void end(int& descriptor) {
        if (descriptor >= 0) ::close(descriptor);
        descriptor = -1;
    }
    // False: more than it may be.
    bool take() {
        std::array<char, 16384> some;
        const ssize_t got = ::read(reading, some.data(), some.size());
        if (got < 0 && errno == EINTR) return true;
        if (got <= 0) return end(reading), true;
        text.append(some.data(), static_cast<std::size_t>(got));
        return text.size() <= output_bytes_max;
    }
};

// What it prints is read, and not its user's language.
std::vector<char*> variables(std::string& locale) {
    std::vector<char*> kept;
    for (char** each = environ; *each; ++each)
        if (std::strncmp(*each, "LC_", 3) != 0 && std::strncmp(*each, "LANG", 4) != 0) kept.push_back(*each);
    locale = "LC_ALL=C";
    kept.push_back(locale.data());
    kept.push_back(nullptr);
    return kept;
}

int spawn(const Words& words, const Pipe& out, const Pipe& err, pid_t& pid) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
    ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, out.writing, 1);
    ::posix_spawn_file_actions_adddup2(&actions, err.writing, 2);
    ::posix_spawn_file_actions_addclosefrom_np(&actions, 3);  // one that can not be ended must not keep a socket of the daemon's open
    sigset_t none, all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    ::posix_spawnattr_setpgroup(&attributes, 0);  // what it starts itself is ended with it
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    std::string locale;
    const int error = ::posix_spawnp(&pid, arguments[0], &actions, &attributes, arguments.data(), variables(locale).data());
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
    return error;
}

// Until both ends are closed. One that goes on after it has closed them is waited for below.
bool listen(Pipe& out, Pipe& err, Steady::time_point end, bool& is_too_much) {
    while (out.reading >= 0 || err.reading >= 0) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Steady::now()).count();
        if (left <= 0) return false;
        std::array<pollfd, 2> ends{pollfd{out.reading, POLLIN, 0}, pollfd{err.reading, POLLIN, 0}};
        ::poll(ends.data(), ends.size(), static_cast<int>(std::min<long long>(left, 1000)));
        if (ends[0].revents != 0 && !out.take()) is_too_much = true;
        if (ends[1].revents != 0 && !err.take()) is_too_much = true;
        if (is_too_much) return false;
    }
    return true;
}

// Its exit status. Nothing: it did not end by then. Where nobody is told of children (SIGCHLD ignored) it ended somehow.
std::optional<int> reap(pid_t pid, Steady::time_point end) {
    for (int pause_ms = 1;; pause_ms = std::min(pause_ms * 2, 50)) {
        int status = 0;
        const pid_t got = ::waitpid(pid, &status, WNOHANG);
        if (got == pid) return status;
        if (got < 0 && errno == ECHILD) return SIGKILL;  // as of one that was killed
        if (Steady::now() >= end) return std::nullopt;
        std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
    }
}

std::string first_line(const std::string& text) { return text.substr(0, std::min<std::size_t>(text.find('\n'), 300)); }

class ThisMachine final : public Outside {
  public:
    Result<std::string> run(const Words& words, Nanos limit) override {
        const Steady::time_point end = Steady::now() + std::chrono::nanoseconds(std::min(limit, limit_max));
        if (is_one_left(words[0])) return deadline_passed(words[0] + ": one that was started before did not end, and can not be ended");
        Pipe out, err;
        if (out.writing < 0 || err.writing < 0) return Status::from_errno(errno, "can not make a pipe");
        pid_t pid = 0;
        const int error = spawn(words, out, err, pid);
        if (error == ENOENT || error == EACCES) return Status(Code::unsupported, "there is no program " + words[0] + " here that this user may run");
        if (error != 0) return Status::from_errno(error, "can not start " + words[0]);
        Pipe::end(out.writing), Pipe::end(err.writing);
        bool is_too_much = false;
        const std::optional<int> ended = listen(out, err, end, is_too_much) ? reap(pid, end) : std::nullopt;
        if (!ended) {
            ::kill(-pid, SIGKILL);
            if (!reap(pid, Steady::now() + std::chrono::seconds(1))) leave(words[0], pid);  // in a file system that hangs it can not even die
            return is_too_much ? Status(Code::io_error, words[0] + " prints more than it should") : deadline_passed(words[0] + ": it did not end in time");
        }
        const int status = *ended;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 127 && out.text.empty() && err.text.empty()) return Status(Code::unsupported, words[0] + " can not be run");
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return unavailable(words[0] + " failed: " + first_line(err.text.empty() ? out.text : err.text));
        return std::move(out.text);
    }

    Result<std::string> attribute(const std::string& path, const std::string& name) override {
        std::string value(value_bytes_max, '\0');
        const ssize_t bytes = ::getxattr(path.c_str(), name.c_str(), value.data(), value.size());
        if (bytes < 0) return Status::from_errno(errno, "can not read the attribute " + name + " of " + path);
        value.resize(static_cast<std::size_t>(bytes));
        while (!value.empty() && value.back() == '\0') value.pop_back();
        return value;
    }

    Status set_attribute(const std::string& path, const std::string& name, const std::string& value) override {
        if (::setxattr(path.c_str(), name.c_str(), value.data(), value.size(), 0) == 0) return {};
        const int error = errno;
        Status refused = Status::from_errno(error, "can not set the attribute " + name + " of " + path + " to " + value.substr(0, value.find('\0')));
        return error == EINVAL ? invalid_argument(refused.text()) : refused;
    }

    Status make_file(const std::string& path, std::uint32_t permissions) override {
        const int file = ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, permissions);
        if (file < 0) return Status::from_errno(errno, "creating " + path);
        ::close(file);
        return {};
    }

    Result<std::uint64_t> block_bytes(const std::string& path) override {
        struct stat about = {};
        if (::stat(path.c_str(), &about) != 0) return Status::from_errno(errno, "can not look at " + path);
        return static_cast<std::uint64_t>(about.st_blksize);
    }

    void* function(const char* library, const char* name) override {
        void* const loaded = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);  // counted: the second time it is only looked up
        return loaded ? ::dlsym(loaded, name) : nullptr;
    }

  private:
    // As many as look at a file system that hangs would be left there otherwise.
    bool is_one_left(const std::string& program) {
        const std::lock_guard lock(mutex_);
        std::erase_if(left_, [](const auto& each) { return reap(each.second, Steady::now()).has_value(); });
        return std::any_of(left_.begin(), left_.end(), [&](const auto& each) { return each.first == program; });
    }
    void leave(const std::string& program, pid_t pid) {
        const std::lock_guard lock(mutex_);
        left_.emplace_back(program, pid);
    }

    std::mutex mutex_;
    std::vector<std::pair<std::string, pid_t>> left_;  // that did not die
};

}  // namespace

Outside& this_machine() {
    static ThisMachine one;
    return one;
}

}  // namespace cairn
