// Shrinking: from a scenario that fails to one that fails in the same way and of which nothing more can be left out: steps, kinds of faults, nodes, ranks,
// files, bytes, settings that are not the simplest. What is left is what matters.
//
// "In the same way" is the failure's text up to its first colon, numbers apart: without that, shrinking would slip from the fault that was found to
// another one that is easier to find. A fault that strikes by chance may hide when anything changes, so each smaller scenario is tried with a few
// seeds of the simulation, its own first.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "proof/scenario.hpp"

namespace cairn::testing {

std::string failure_class(const std::string& failure);

// All scenarios that are one change smaller, the boldest changes first.
std::vector<Scenario> smaller(const Scenario& scenario);

struct Shrunk {
    Scenario scenario;
    std::string failure;
    std::size_t tries = 0;
    bool done = false;  // nothing more can be left out; else the bound came first
};

// `failure_of` runs a scenario: its failure, or nothing. `go_on` is asked before each try.
Shrunk shrink(Scenario scenario, std::string failure, const std::function<std::optional<std::string>(const Scenario&)>& failure_of,
              const std::function<bool()>& go_on);

}  // namespace cairn::testing
