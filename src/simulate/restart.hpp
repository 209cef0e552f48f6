// Restart of a simulated job: its processes begin anew on nodes with empty scratch, and every rank reads its image of a committed version back, all at once, with
// the production reader (read/fetch.hpp).
#pragma once

#include <vector>

#include "catalog/layout.hpp"
#include "simulate/machine.hpp"

namespace cairn::simulate {

// What the job left.
struct Left {
    Layout layout;
    VersionKey newest;
    std::vector<sim::SimNode*> nodes;  // those with ranks, in their order
};

// Seconds until the last rank has its image. An error where a version other than the newest would be taken, or any rank gets other bytes than it captured.
Result<double> restart_s(const Cluster& cluster, const Question& question, sim::Simulation& sim, const Left& left);

// What the bytes of an image are.
std::uint64_t content_seed(const Question& question, Version version, Rank rank);

std::string node_text(std::uint32_t node);  // its name

}  // namespace cairn::simulate
