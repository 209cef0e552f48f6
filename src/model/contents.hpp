// Contents: what a part of an attempt takes in, after work has changed hands. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "model/plan.hpp"

namespace cairn {

// Work that went from one part to another.
struct Moved {
    std::uint32_t from_part = 0, to_part = 0;
    std::vector<NodeSources> nodes;
    bool operator==(const Moved&) const = default;
};

// What all leaders of the part write there: what was planned, less what was given away, and what came in. `moved` in the order in which it was given. By node and rank, what meets
// joined; of a rank without bytes, which has its place in the part, a source of no length.
std::vector<NodeSources> contents(const PartPlan& part, const std::vector<Moved>& moved);

}  // namespace cairn
