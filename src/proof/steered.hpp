// Situations that are too rare for random seeds, each led to by a scenario of one line in a file: the situation's name, then the scenario as
// `cairn_seeds --scenario` takes it. Empty lines, and what follows a '#' at a line's beginning, say nothing.
#pragma once

#include <string>
#include <vector>

#include "proof/scenario.hpp"
#include "proof/situations.hpp"

namespace cairn::testing {

struct Steered {
    std::size_t line = 0;
    Saw situation;
    Scenario scenario;
};

// Each situation that is reached by steered scenarios alone has at least one, and no other has any.
Result<std::vector<Steered>> read_steered(const std::string& path);

}  // namespace cairn::testing
