// One seed: a random cluster, a job that checkpoints, dies, comes back and goes back, and faults at any step; then the promise
// (ARCHITECTURE.md, "The promise") is held against what is left.
#pragma once

#include <cstdint>
#include <string>

#include "proof/scenario.hpp"
#include "proof/situations.hpp"

namespace cairn::testing {

struct SeedResult {
    bool ok = true;
    std::string failure;       // what broke
    std::string story;         // what the seed did, one line an event
    std::uint64_t fingerprint = 0;
    std::uint32_t committed = 0;
    std::uint32_t faults = 0;
    SawSet saw;
};

// A pure function of the scenario.
SeedResult run_scenario(const Scenario& scenario, bool trace = false);

}  // namespace cairn::testing
