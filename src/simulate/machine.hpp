// A cluster as a simulated machine: what every strategy runs on.
#pragma once

#include <memory>

#include "simulate/outcome.hpp"
#include "world/sim/machine.hpp"
#include "world/sim/simulation.hpp"

namespace cairn::simulate {

sim::Bandwidth::Sharing sharing_of(const Cluster& cluster, const Question& question);
sim::Model model_of(const Cluster& cluster);
// Rates that differ from node to node or target to target are drawn from the seed.
std::unique_ptr<sim::Machine> make_machine(sim::Simulation& sim, const Cluster& cluster, const Question& question);

// What targets carried so far, and how long.
void take_targets(const sim::Machine& machine, Outcome& outcome);

// Each strategy; they fill `outcome.versions`, what targets did of these, and `outcome.restart_s`.
Status run_cairn(const Cluster& cluster, const Question& question, sim::Simulation& sim, Outcome& outcome);
Status run_rival(const Cluster& cluster, const Question& question, sim::Simulation& sim, Outcome& outcome);

// The limit of simulated time is reached.
Status not_over(const std::string& what, Nanos now);
// Runs until the predicate holds, telling progress. The error says that `what` was not done.
Status run_until(sim::Simulation& sim, const Question& question, std::uint64_t bytes_total, const std::string& what, const std::function<bool()>& done);

}  // namespace cairn::simulate
