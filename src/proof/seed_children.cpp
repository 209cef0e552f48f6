// A child writes its result into a pipe and ends; the parent reads all pipes and looks at how each child ended.
#include "proof/seed_children.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "base/log.hpp"

namespace cairn::testing {

namespace {

using Instant = std::chrono::steady_clock::time_point;
Instant now() { return std::chrono::steady_clock::now(); }

// One line of numbers, then the failure, then the story.
std::string encode(const SeedResult& result) {
    std::ostringstream out;
    out << result.ok << ' ' << result.fingerprint << ' ' << result.committed << ' ' << result.faults << ' ' << result.saw.to_string() << ' ' << result.failure.size()
        << '\n' << result.failure << result.story;
    return out.str();
}

bool decode(const std::string& text, SeedResult& result) {
    std::istringstream in(text);
    std::size_t failure_bytes = 0;
    in >> result.ok >> result.fingerprint >> result.committed >> result.faults >> result.saw >> failure_bytes;
    if (!in || in.get() != '\n') return false;
    const std::size_t at = static_cast<std::size_t>(in.tellg());
    if (text.size() - at < failure_bytes) return false;
    result.failure = text.substr(at, failure_bytes);
    result.story = text.substr(at + failure_bytes);
    return true;
}

[[noreturn]] void be_child(int out, const Scenario& scenario, const ChildOptions& options) {
    if (options.silent) {
        const int nowhere = ::open("/dev/null", O_WRONLY);
        if (nowhere >= 0) ::dup2(nowhere, STDERR_FILENO);
    }
    const rlimit processor_time = {options.limit_s, options.limit_s + 1};
    (void)::setrlimit(RLIMIT_CPU, &processor_time);
    if (options.trace) log_to_descriptor(STDERR_FILENO, LogLevel::debug);
    const std::string text = encode(run_scenario(scenario, options.trace));
    for (std::size_t done = 0; done < text.size();) {
        const ssize_t wrote = ::write(out, text.data() + done, text.size() - done);
        if (wrote <= 0) break;
        done += static_cast<std::size_t>(wrote);
    }
    std::fflush(nullptr);
    ::_exit(0);
}

SeedResult failed(std::string why) {
    SeedResult result;
    result.ok = false;
    result.failure = std::move(why);
    return result;
}

}  // namespace

struct Children::Child {
    std::uint64_t number = 0;
    pid_t pid = -1;
    int in = -1;
    Instant ends;
    std::string text;

    // True at the end of what it says.
    bool read() {
        char piece[1 << 16];
        const ssize_t got = ::read(in, piece, sizeof piece);
        if (got > 0) text.append(piece, static_cast<std::size_t>(got));
        return got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN);
    }

    SeedResult end(bool hangs, unsigned limit_s) {
        if (hangs) ::kill(pid, SIGKILL);
        int status = 0;
        while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
        ::close(in);
        pid = -1;
        const bool spent = WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU;
        if (hangs || spent) return failed("hangs: no end after " + std::to_string(limit_s) + " s of processor time, or twenty times as long");
        if (WIFSIGNALED(status)) return failed("crashed: signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")");
        SeedResult result;
        return decode(text, result) ? result : failed("crashed: exit status " + std::to_string(WEXITSTATUS(status)));
    }
};

Children::Children(ChildOptions options) : options_(options) {}

Children::~Children() {
    for (const auto& child : running_) (void)child->end(true, 0);
}

bool Children::full() const { return running_.size() >= options_.jobs; }
bool Children::none() const { return running_.empty(); }

void Children::start(std::uint64_t number, const Scenario& scenario) {
    int ends[2];
    CAIRN_CHECK(::pipe2(ends, O_CLOEXEC) == 0);
    std::fflush(nullptr);  // or the child says it again
    auto child = std::make_unique<Child>();
    child->number = number;
    child->in = ends[0];
    child->ends = now() + std::chrono::seconds(20 * options_.limit_s);  // where others keep the processors busy
    child->pid = ::fork();
    CAIRN_CHECK(child->pid >= 0);
    if (child->pid == 0) {
        ::close(ends[0]);
        be_child(ends[1], scenario, options_);
    }
    ::close(ends[1]);
    running_.push_back(std::move(child));
}

bool Children::next(int wait_ms, std::uint64_t& number, SeedResult& result) {
    const Instant give_up = now() + std::chrono::milliseconds(wait_ms);
    for (;;) {
        Instant until = give_up;
        std::vector<pollfd> wanted;
        for (const auto& child : running_) {
            wanted.push_back({child->in, POLLIN, 0});
            until = std::min(until, child->ends);
        }
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - now()).count();
        (void)::poll(wanted.data(), wanted.size(), static_cast<int>(std::max<std::int64_t>(0, left + 1)));
        for (std::size_t i = 0; i < running_.size(); ++i) {
            Child& child = *running_[i];
            const bool over = wanted[i].revents != 0 && child.read(), hangs = !over && now() >= child.ends;
            if (!over && !hangs) continue;
            number = child.number;
            result = child.end(hangs, options_.limit_s);
            running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
            return true;
        }
        if (now() >= give_up) return false;
    }
}

SeedResult run_in_child(const Scenario& scenario, const ChildOptions& options) {
    Children child(options);
    child.start(0, scenario);
    std::uint64_t number = 0;
    SeedResult result;
    while (!child.next(1000, number, result)) {}
    return result;
}

}  // namespace cairn::testing
