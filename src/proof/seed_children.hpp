// Each scenario in a process of its own: one that crashes or hangs is a failed one like any other, and the rest goes on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "proof/seeds.hpp"

namespace cairn::testing {

struct ChildOptions {
    unsigned jobs = 1;
    unsigned limit_s = 60;  // of processor time for one scenario; then it counts as hanging
    bool trace = false;
    bool silent = false;    // what a child says on standard error goes nowhere
};

class Children {
  public:
    explicit Children(ChildOptions options);
    ~Children();  // ends those that run

    bool full() const;
    bool none() const;
    void start(std::uint64_t number, const Scenario& scenario);
    // Waits until one is done, at most so long: its number and what became of it. False: none was.
    bool next(int wait_ms, std::uint64_t& number, SeedResult& result);

  private:
    struct Child;
    ChildOptions options_;
    std::vector<std::unique_ptr<Child>> running_;
};

// One alone.
SeedResult run_in_child(const Scenario& scenario, const ChildOptions& options);

}  // namespace cairn::testing
