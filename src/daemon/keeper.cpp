// Fork, wait, and what to make of an end.
#include "daemon/keeper.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "world/real/thread_class.hpp"

namespace cairn {

namespace {

using SteadyClock = std::chrono::steady_clock;
using std::chrono::seconds;

constexpr seconds good_life{60};  // a daemon that has lived so long did not die of its start
constexpr seconds pause_max{60};
constexpr int deaths_max = 66;  // in a row: about an hour. The next call of a client starts a daemon with a keeper of its own
constexpr int begin_tries = 10;  // then it begins slowly
constexpr std::chrono::milliseconds begin_pause{130};
constexpr const char* keeper_name = "cairnd-keeper";  // as ps and pgrep show it: at most 15 characters

// At once, then after 1, 2, 4 ... seconds.
seconds pause_after(int deaths) { return deaths < 2 ? seconds(0) : std::min(seconds(1ll << std::min(deaths - 2, 30)), pause_max); }

std::string signal_name(int number) {
    static constexpr std::array<std::pair<int, const char*>, 11> names = {{{SIGKILL, "SIGKILL"},
                                                                           {SIGSEGV, "SIGSEGV"},
                                                                           {SIGBUS, "SIGBUS"},
                                                                           {SIGABRT, "SIGABRT"},
                                                                           {SIGILL, "SIGILL"},
                                                                           {SIGFPE, "SIGFPE"},
                                                                           {SIGQUIT, "SIGQUIT"},
                                                                           {SIGTRAP, "SIGTRAP"},
                                                                           {SIGSYS, "SIGSYS"},
                                                                           {SIGUSR1, "SIGUSR1"},
                                                                           {SIGXCPU, "SIGXCPU"}}};
    for (const auto& [known, name] : names)
        if (known == number) return name;
    return "signal " + std::to_string(number) + " (" + ::strsignal(number) + ")";
}

class Keeper {
  public:
    Keeper(Life& life, const std::string& log_file, LogLevel log_level, const std::string& mark)
        : life_(life), log_file_(log_file), log_level_(log_level), mark_(mark) {
        ::sigemptyset(&awaited_);
        for (const int number : {SIGTERM, SIGINT, SIGCHLD}) ::sigaddset(&awaited_, number);
        ::prctl(PR_GET_NAME, daemon_name_.data());
        sigset_t all;
        ::sigfillset(&all);
        ::sigprocmask(SIG_SETMASK, &all, &daemon_mask_);  // they wait until they are asked for; others never come
    }

    // True in the new daemon's process.
    bool start();
    // Until the daemon is dead, and has to be started again; else ends.
    void watch();
    // Nobody waits for a keeper: its exit code is for whoever looks on.
    [[noreturn]] void end(Exit code) { ::_exit(static_cast<int>(code)); }

    pid_t daemon() const { return daemon_; }

  private:
    int wait_for_daemon();
    bool may_stay_dead(int ended) const;
    void tell(const std::string& how, std::optional<seconds> pause) const;
    int next_signal(SteadyClock::time_point until) const;
    bool pause(SteadyClock::duration wait);
    Descriptor set_mark() const;
    bool bring_session_forward();

    Life& life_;
    const std::string& log_file_;
    LogLevel log_level_;
    const std::string& mark_;
    std::array<char, 16> daemon_name_{};
    sigset_t awaited_, daemon_mask_;
    pid_t daemon_ = 0;
    SteadyClock::time_point started_;
    bool told_to_end_ = false;
    bool ever_began_ = false;
    int deaths_ = 0;  // in a row
};

bool Keeper::start() {
    life_.began = life_.stopping = false;
    started_ = SteadyClock::now();
    daemon_ = ::fork();
    if (daemon_ == 0) {
        ::prctl(PR_SET_NAME, daemon_name_.data());
        ::sigprocmask(SIG_SETMASK, &daemon_mask_, nullptr);
        return true;
    }
    ::prctl(PR_SET_NAME, keeper_name);
    return false;
}

// One of awaited_, or 0 when there was none until then.
int Keeper::next_signal(SteadyClock::time_point until) const {
    for (;;) {
        const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(until - SteadyClock::now()).count();
        const timespec wait{static_cast<time_t>(std::max(left, 0l) / 1'000'000'000), std::max(left, 0l) % 1'000'000'000};
        const int number = ::sigtimedwait(&awaited_, nullptr, &wait);
        if (number > 0) return number;
        if (errno != EINTR) return 0;  // stopped and continued
    }
}

// How it ended, as waitpid has it. Passes on what the keeper is told meanwhile; told twice, the daemon ends at once.
int Keeper::wait_for_daemon() {
    for (;;) {
        int ended = 0;
        if (::waitpid(daemon_, &ended, WNOHANG) == daemon_) return ended;
        const int number = next_signal(SteadyClock::now() + std::chrono::hours(1));
        if (number != SIGTERM && number != SIGINT) continue;
        ::kill(daemon_, keeper_says_stop());
        told_to_end_ = true;
    }
}

// It ended for want of work, was stopped or refused to start; or it never began, and its starter was told so.
bool Keeper::may_stay_dead(int ended) const {
    if (told_to_end_ || life_.stopping || !ever_began_) return true;
    // One that is started again and can not begin (persistent is away, its memory is not free yet) may be able to in a while.
    if (WIFEXITED(ended)) return WEXITSTATUS(ended) <= static_cast<int>(Exit::at_once) && WEXITSTATUS(ended) != static_cast<int>(Exit::cannot_start);
    const int number = WTERMSIG(ended);  // of a stop: it came before the daemon had its handlers
    return number == SIGTERM || number == SIGINT || number == keeper_says_stop();
}

// Opened for one line: whoever removes scratch or puts the log aside finds nobody in it.
void Keeper::tell(const std::string& how, std::optional<seconds> pause) const {
    if (log_file_.empty() || !log_to_file(log_file_, log_level_).ok()) return;
    const std::string then = pause ? "started again in " + std::to_string(pause->count()) + " s"
                                   : "given up: the next call of a client starts another, or cairn start";
    log_error("daemon-died", {{"pid", daemon_}, {"by", how}, {"deaths_in_a_row", deaths_}, {"then", then}});
    log_off();
}

void Keeper::watch() {
    std::string how = "no process could be started";
    if (daemon_ > 0) {
        const int ended = wait_for_daemon();
        ever_began_ = ever_began_ || life_.began;
        if (may_stay_dead(ended)) end(WIFEXITED(ended) ? static_cast<Exit>(WEXITSTATUS(ended)) : Exit::at_once);
        how = WIFEXITED(ended) ? "exit code " + std::to_string(WEXITSTATUS(ended)) : signal_name(WTERMSIG(ended));
        if (life_.began && SteadyClock::now() - started_ >= good_life) deaths_ = 0;
    }
    ++deaths_;
    if (deaths_ > deaths_max) {
        tell(how, std::nullopt);
        end(Exit::cannot_start);
    }
    const seconds wait = pause_after(deaths_);
    tell(how, wait);
    const Descriptor mark = set_mark();
    const bool go_on = pause(wait) && bring_session_forward();
    if (mark.get() >= 0) ::unlink(mark_.c_str());
    if (!go_on) end(Exit::fine);
}

// Where it can not be set, the keeper waits without: `cairn stop` then finds neither it nor a daemon.
Descriptor Keeper::set_mark() const {
    Descriptor mark(::open(mark_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    struct flock lock = {};  // of this process: the kernel tells which that is, and no child has it
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    if (mark.get() < 0 || ::fcntl(mark.get(), F_SETLK, &lock) != 0) return Descriptor();
    return mark;
}

// False: told to end meanwhile, when there is no daemon to pass it on to.
bool Keeper::pause(SteadyClock::duration wait) {
    for (const auto until = SteadyClock::now() + wait;;) {
        const int number = next_signal(until);
        if (number == 0) return true;
        if (number != SIGCHLD) return false;
    }
}

// A daemon that gives way to the application makes its session the last one to run (Stepping), which the
// session stays when the daemon is dead. The next one would take ten seconds to begin beside busy ranks, not half of one,
// and others wait for it. It gives way again once it has begun. Nice 0 needs no privilege: it is what a session begins with.
// False: told to end meanwhile.
bool Keeper::bring_session_forward() {
    for (int tries = 0; tries < begin_tries; ++tries) {
        if (set_session_nice(0).code() != Code::unavailable) return true;
        if (!pause(begin_pause)) return false;
    }
    return true;
}

}  // namespace

int keeper_says_stop() { return SIGRTMIN + 1; }

Result<Life*> keep(Report& report, const std::string& log_file, LogLevel log_level, const std::string& mark) {
    void* shared = ::mmap(nullptr, sizeof(Life), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return Status::from_errno(errno, "can not share memory with the daemon's keeper");
    Life* life = new (shared) Life;
    Keeper keeper(*life, log_file, log_level, mark);
    bool is_daemon = keeper.start();
    if (!is_daemon && keeper.daemon() < 0) return Status::from_errno(errno, "can not start a process");
    if (!is_daemon) report = Report();  // or the starter would wait for two
    while (!is_daemon) {
        keeper.watch();
        is_daemon = keeper.start();
    }
    return life;
}

}  // namespace cairn
