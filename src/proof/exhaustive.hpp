// All faults of the small job (stepped_run.hpp), one after the other: single ones, then pairs. At each place where one could strike the process is
// forked: in the child it does, and in the parent it does not; so nothing is run twice, and a run that crashes or hangs is a failed one like any other.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "proof/stepped_run.hpp"

namespace cairn::testing {

// Of all processes of one exploration: what they found.
class Shared {
  public:
    explicit Shared(std::uint64_t states_max);
    ~Shared();
    Shared(const Shared&) = delete;

    struct Counts {
        std::atomic<std::uint64_t> runs, failed, states, firsts, pairs, committed;
    };
    Counts& counts() { return *counts_; }
    void see_state(std::uint64_t state);
    // How many steps the job still takes after a first fault, by its case and the fault's number: kept by the run with this fault alone.
    std::uint32_t& steps_after(std::size_t job_case, std::uint64_t first) { return steps_after_[job_case * firsts_max + first]; }
    static constexpr std::uint64_t firsts_max = 1 << 18;

  private:
    std::size_t bytes_ = 0;
    Counts* counts_ = nullptr;
    std::atomic<std::uint64_t>* states_ = nullptr;  // a hash table; 0: free
    std::uint32_t* steps_after_ = nullptr;
    std::uint64_t places_ = 0;
};

// Pairs are taken in rounds. In each one every first fault gets a second one, of every kind, at two places: so many steps later as there were rounds
// before, and one, and somewhere farther on; all rounds together are all pairs. A round has slices, every slices-th first fault each, so that whoever
// stops early has been everywhere.
struct Round {
    static constexpr std::uint64_t slices = 251;  // a prime: not every first fault of a slice is of the same kind
    std::uint64_t round = 0, slice = 0;
    Round& operator++() {
        if (++slice == slices) slice = 0, ++round;
        return *this;
    }
};
// In steps after the first fault, where the job still takes so many; ascending. Pure.
std::vector<std::uint64_t> second_places(std::uint64_t round, std::uint64_t first, std::uint64_t steps_after);

struct Exploration {
    std::size_t job_case = 0;        // of job_cases
    std::optional<Round> pairs;      // else single faults
    bool count = false;              // single faults: also what second faults there would be, and which states there are
    unsigned jobs = 1;
    unsigned limit_s = 20;           // of processor time for one run; then it counts as hanging
    std::uint64_t failures_max = 20;
};

// Runs it; what fails is told on standard output, with `again` before the faults. `look` is called now and then.
void explore(const Exploration& what, Shared& shared, const std::string& again, const std::function<void()>& look);

// One run with these faults, in this process.
SeedResult run_with(JobCase which, const std::vector<Fault>& faults, bool trace);

}  // namespace cairn::testing
