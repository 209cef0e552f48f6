// The walk through the run, and its forks. Whoever forks waits for the child, so as many runs are under way as there are jobs.
#include "proof/exhaustive.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <set>

namespace cairn::testing {

Shared::Shared(std::uint64_t states_max) {
    for (places_ = 1024; places_ < 4 * states_max;) places_ *= 2;
    bytes_ = sizeof(Counts) + places_ * sizeof(*states_) + job_cases.size() * firsts_max * sizeof(*steps_after_);
    void* memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CAIRN_CHECK(memory != MAP_FAILED);
    counts_ = static_cast<Counts*>(memory);  // zeros are good ones
    states_ = reinterpret_cast<std::atomic<std::uint64_t>*>(static_cast<char*>(memory) + sizeof(Counts));
    steps_after_ = reinterpret_cast<std::uint32_t*>(states_ + places_);
}

Shared::~Shared() { ::munmap(counts_, bytes_); }

void Shared::see_state(std::uint64_t state) {
    if (counts_->states >= places_ / 2) return;
    if (state == 0) state = 1;
    for (std::uint64_t place = state & (places_ - 1);; place = (place + 1) & (places_ - 1)) {
        std::uint64_t found = 0;
        if (states_[place].compare_exchange_strong(found, state)) return void(++counts_->states);
        if (found == state) return;
    }
}

std::vector<std::uint64_t> second_places(std::uint64_t round, std::uint64_t first, std::uint64_t steps_after) {
    if (steps_after == 0 || round >= steps_after) return {};
    const auto near = [](std::uint64_t r) { return r + 1; };
    const auto far = [&](std::uint64_t r) { return 1 + static_cast<std::uint64_t>(static_cast<double>(sim::mix(first + 1) >> 11) * 0x1p-53 * steps_after + 0.6180339887498949 * static_cast<double>(r) * steps_after) % steps_after; };
    std::set<std::uint64_t> places, before;
    for (std::uint64_t r = 0; r < round; ++r) before.insert({near(r), far(r)});
    for (const std::uint64_t place : {near(round), far(round)})
        if (!before.count(place)) places.insert(place);
    return {places.begin(), places.end()};
}

namespace {

// One write, so that lines of several processes do not mix.
void print(const std::string& text) {
    std::size_t done = 0;
    while (done < text.size()) {
        const ssize_t wrote = ::write(STDOUT_FILENO, text.data() + done, text.size() - done);
        if (wrote <= 0) return;
        done += static_cast<std::size_t>(wrote);
    }
}

// Forks at every fault that is its own.
class Walk final : public Chooser {
  public:
    Walk(const Exploration& what, Shared& shared, const std::string& again, unsigned job) : what_(what), shared_(shared), again_(again), job_(job) {}

    bool strikes(const Fault& fault) override {
        if (phase_ == Phase::first) return first(fault);
        if (phase_ == Phase::second) return is_place(steps_after_ + fault.of_operation) && fork_for(fault, Phase::end);  // what begins on the way to a step belongs to it
        seconds_ += what_.count && !over_;
        return false;
    }
    void stepped(std::uint64_t state) override {
        if (what_.count || phase_ == Phase::end) shared_.see_state(state);
        if (phase_ != Phase::first && !over_) ++steps_after_;
        if (phase_ == Phase::second && steps_after_ > places_.back()) ::_exit(0);  // all that it was there for
    }
    void job_over() override {
        if (phase_ == Phase::second) ::_exit(0);
        over_ = true;
    }
    bool indifferent() const override { return phase_ == Phase::end && !what_.count && !what_.pairs; }

    void end(const SeedResult& result) {
        if (phase_ != Phase::end) return;
        Shared::Counts& counts = shared_.counts();
        ++counts.runs;
        counts.pairs += seconds_;
        counts.committed += result.committed;
        if (what_.count && number_ < Shared::firsts_max) shared_.steps_after(what_.job_case, number_) = static_cast<std::uint32_t>(steps_after_);
        if (!result.ok) tell(result.failure);
        ::_exit(0);
    }

  private:
    enum class Phase { first, second, end };

    bool is_place(std::uint64_t step) const { return std::binary_search(places_.begin(), places_.end(), step); }

    bool first(const Fault& fault) {
        number_ = firsts_++;
        if (job_ == 0 && what_.count) ++shared_.counts().firsts;
        if (!what_.pairs) return number_ % what_.jobs == job_ && fork_for(fault, Phase::end);
        const std::uint64_t slices = Round::slices;
        if (number_ % slices != what_.pairs->slice || number_ / slices % what_.jobs != job_ || number_ >= Shared::firsts_max) return false;
        places_ = second_places(what_.pairs->round, number_, shared_.steps_after(what_.job_case, number_));
        return !places_.empty() && fork_for(fault, Phase::second);
    }

    // True in the child.
    bool fork_for(const Fault& fault, Phase then) {
        if (shared_.counts().failed >= what_.failures_max) return false;
        faults_.push_back(fault);
        std::fflush(nullptr);
        const pid_t pid = ::fork();
        CAIRN_CHECK(pid >= 0);
        if (pid == 0) {
            const rlimit processor_time = {what_.limit_s, what_.limit_s + 1};
            if (then == Phase::end) (void)::setrlimit(RLIMIT_CPU, &processor_time);
            phase_ = then;
            return true;
        }
        int status = 0;
        while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU) tell("hangs: no end after " + std::to_string(what_.limit_s) + " s of processor time");
        else if (WIFSIGNALED(status)) tell("crashed: signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")");
        else if (WEXITSTATUS(status) != 0) tell("crashed: exit status " + std::to_string(WEXITSTATUS(status)));
        faults_.pop_back();
        return false;
    }

    void tell(const std::string& failure) {
        ++shared_.counts().failed;
        const std::string which = job_cases[what_.job_case].text() + " " + to_text(faults_);
        print(which + ": " + failure + "\n  again: " + again_ + " --fault '" + which + "'\n");
    }

    const Exploration& what_;
    Shared& shared_;
    const std::string& again_;
    const unsigned job_;
    Phase phase_ = Phase::first;
    std::uint64_t firsts_ = 0, number_ = 0, seconds_ = 0, steps_after_ = 0;
    std::vector<std::uint64_t> places_;
    bool over_ = false;
    std::vector<Fault> faults_;
};

class Replay final : public Chooser {
  public:
    explicit Replay(const std::vector<Fault>& faults) : faults_(faults) {}
    bool strikes(const Fault& fault) override {
        if (next_ == faults_.size() || !(faults_[next_] == fault)) return false;
        ++next_;
        return true;
    }
    void stepped(std::uint64_t) override {}
    void job_over() override { over_ = true; }
    bool indifferent() const override { return over_; }
    bool all_struck() const { return next_ == faults_.size(); }

  private:
    const std::vector<Fault>& faults_;
    std::size_t next_ = 0;
    bool over_ = false;
};

[[noreturn]] void be_job(const Exploration& what, Shared& shared, const std::string& again, unsigned job) {
    Walk walk(what, shared, again, job);
    const SeedResult result = SteppedRun(job_cases[what.job_case], walk).run();
    walk.end(result);
    if (!result.ok) print(job_cases[what.job_case].text() + ": without any fault: " + result.failure + "\n"), ++shared.counts().failed;
    ::_exit(0);
}

}  // namespace

void explore(const Exploration& what, Shared& shared, const std::string& again, const std::function<void()>& look) {
    std::vector<pid_t> running;
    std::fflush(nullptr);
    for (unsigned job = 0; job < what.jobs; ++job) {
        const pid_t pid = ::fork();
        CAIRN_CHECK(pid >= 0);
        if (pid == 0) be_job(what, shared, again, job);
        running.push_back(pid);
    }
    while (!running.empty()) {
        int status = 0;
        const pid_t ended = ::waitpid(running.back(), &status, WNOHANG);
        if (ended == running.back()) {
            running.pop_back();
            if (status != 0) print("a job of this test crashed\n"), ++shared.counts().failed;
            continue;
        }
        ::usleep(50'000);
        look();
    }
}

SeedResult run_with(JobCase which, const std::vector<Fault>& faults, bool trace) {
    Replay replay(faults);
    SeedResult result = SteppedRun(which, replay, trace).run();
    if (!replay.all_struck() && result.ok) {
        result.ok = false;
        result.failure = "not all of these faults are possible there";
    }
    return result;
}

}  // namespace cairn::testing
