#include "client/launch.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "client/files.hpp"

extern char** environ;

namespace cairn {

namespace {

std::string directory_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

void add_if_runs(std::vector<std::string>& found, const std::string& path) {
    for (const std::string& known : found)
        if (known == path) return;
    if (::access(path.c_str(), X_OK) == 0) found.push_back(path);
}

// Our environment with the session's settings on top.
std::vector<std::string> environment_for(const DaemonHome& place) {
    std::vector<std::string> added = place.environment;
    added.push_back("CAIRN_NODE=" + place.node);
    added.push_back("CAIRN_PATHS_SCRATCH=" + place.scratch);
    added.push_back("CAIRN_PATHS_PERSISTENT=" + place.persistent);
    std::vector<std::string> all;
    for (char** each = environ; *each; ++each) {
        const std::string_view entry(*each);
        const std::string_view key = entry.substr(0, entry.find('=') + 1);
        bool replaced = false;
        for (const std::string& mine : added) replaced = replaced || mine.compare(0, key.size(), key) == 0;
        if (!replaced) all.emplace_back(entry);
    }
    for (std::string& mine : added) all.push_back(std::move(mine));
    return all;
}

// What spawned processes get and give back: stderr is a pipe to us.
class SpawnPlan {
  public:
    explicit SpawnPlan(int error_pipe) {
        ::posix_spawn_file_actions_init(&actions_);
        ::posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
        ::posix_spawn_file_actions_addopen(&actions_, 1, "/dev/null", O_WRONLY, 0);
        ::posix_spawn_file_actions_adddup2(&actions_, error_pipe, 2);
        ::posix_spawnattr_init(&attributes_);
        sigset_t none, all;
        ::sigemptyset(&none);
        ::sigfillset(&all);
        ::posix_spawnattr_setsigmask(&attributes_, &none);
        ::posix_spawnattr_setsigdefault(&attributes_, &all);
        ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    }
    SpawnPlan(const SpawnPlan&) = delete;
    ~SpawnPlan() {
        ::posix_spawn_file_actions_destroy(&actions_);
        ::posix_spawnattr_destroy(&attributes_);
    }
    int spawn(const std::string& program, bool io_node, const std::vector<std::string>& environment, pid_t& pid) const {
        std::vector<char*> variables;
        for (const std::string& each : environment) variables.push_back(const_cast<char*>(each.c_str()));
        variables.push_back(nullptr);
        char* arguments[] = {const_cast<char*>(program.c_str()), io_node ? const_cast<char*>("--io-node") : nullptr, nullptr};
        return ::posix_spawn(&pid, program.c_str(), &actions_, &attributes_, arguments, variables.data());
    }

  private:
    posix_spawn_file_actions_t actions_;
    posix_spawnattr_t attributes_;
};

}  // namespace

std::vector<std::string> daemon_candidates(const std::string& program) {
    if (!program.empty()) return {program};
    std::vector<std::string> found;
    Dl_info library{};
    if (::dladdr(reinterpret_cast<const void*>(&daemon_candidates), &library) != 0 && library.dli_fname &&
        std::strchr(library.dli_fname, '/')) {
        const std::string beside = directory_of(library.dli_fname);
        for (const char* place : {"/cairnd", "/../bin/cairnd", "/../../bin/cairnd", "/../daemon/cairnd"})
            add_if_runs(found, beside + place);
    }
    char self[4096];
    const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self);
    if (length > 0 && static_cast<std::size_t>(length) < sizeof self)
        add_if_runs(found, directory_of(std::string(self, static_cast<std::size_t>(length))) + "/cairnd");
    const char* path = std::getenv("PATH");
    for (std::string_view rest = path ? path : ""; !rest.empty();) {
        const std::size_t colon = rest.find(':');
        const std::string_view each = rest.substr(0, colon);
        if (!each.empty()) add_if_runs(found, std::string(each) + "/cairnd");
        rest = colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
    }
    return found;
}

Result<std::unique_ptr<Launch>> Launch::begin(const DaemonHome& place) {
    const std::vector<std::string> programs = daemon_candidates(place.program);
    if (programs.empty())
        return unavailable(
            "no cairnd found beside the library, beside the program or in PATH; set daemon.program "
            "(CAIRN_DAEMON_PROGRAM) to its path");
    const std::string& program = programs.front();
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return Status::from_errno(errno, "can not make a pipe");
    files::Descriptor reader(ends[0]);
    const files::Descriptor writer(ends[1]);
    pid_t pid = 0;
    const int error = SpawnPlan(writer.get()).spawn(program, place.io_node, environment_for(place), pid);
    auto launch = std::unique_ptr<Launch>(new Launch("the daemon " + program + " for node " + place.node, std::move(reader), pid));
    if (error == 0) return launch;
    launch->pid_ = 0;
    return launch->failed(Status::from_errno(error, "running it").text());
}

// A child that is left alone becomes nobody's: it is reaped here if it has ended, and by the application or at its exit otherwise.
Launch::~Launch() {
    if (pid_ != 0) ::waitpid(pid_, nullptr, WNOHANG);
}

Status Launch::failed(const std::string& why) const {
    return unavailable(who_ + " could not be started: " + why + (said_.empty() || why == said_ ? "" : "; it said: " + said_));
}

// Reads what it says on stderr; true once it has closed that.
bool Launch::listen(Deadline deadline) {
    char buffer[1024];
    while (errors_ && said_.size() < 64 << 10) {
        pollfd wait{errors_.get(), POLLIN, 0};
        const int ready = ::poll(&wait, 1, static_cast<int>(std::min<std::uint64_t>(deadline.left_ms(), 60'000)));
        if (ready <= 0) {
            if (deadline.passed()) return false;
            continue;
        }
        const ssize_t got = ::read(errors_.get(), buffer, sizeof buffer);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        said_.append(buffer, static_cast<std::size_t>(got));
    }
    errors_ = files::Descriptor();
    while (!said_.empty() && (said_.back() == '\n' || said_.back() == ' ')) said_.pop_back();
    return true;
}

// Its exit code counts as 0 where the application has set SIGCHLD so that nobody can know. Never waits for another child.
Status Launch::wait(Deadline deadline) {
    if (!listen(deadline)) return deadline_passed(who_ + " has not begun yet");
    Backoff backoff;
    int ended = 0;
    for (pid_t got = 0; (got = ::waitpid(pid_, &ended, WNOHANG)) != pid_;) {
        if (got < 0 && errno == ECHILD) {
            ended = 0;
            break;
        }
        if (!backoff.pause(deadline)) return deadline_passed(who_ + " has not begun yet");
    }
    pid_ = 0;
    const int code = WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended);
    if (code == 0) return {};
    return failed(said_.empty() ? "it ended with exit code " + std::to_string(code) : said_);
}

Status Launch::give_up() {
    if (pid_ != 0) {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        pid_ = 0;
    }
    return failed("it did not begin in time");
}

}  // namespace cairn
