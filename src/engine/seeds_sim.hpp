// One seed: a random cluster, a job that checkpoints, dies, comes back and goes back, and faults at any step; then the promise
// (ARCHITECTURE.md, "The promise") is held against what is left.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "engine/scenario_sim.hpp"

namespace cairn::testing {

// What a seed may have come by; how many did is told at the end, so that nobody thinks something tested that never happens.
enum class Saw : std::uint8_t {
    several_leaders, io_node_led, work_moved, on_targets, targets_differ, target_gone, paced, attempt_failed, several_jobs, went_back, removed,
    given_up, cancelled, let_go,
    daemon_killed, coordinator_killed, paused, partitioned, node_crashed, power_lost, struck, only_messages,
};
inline constexpr std::array saw_texts = {
    "several leaders wrote one part", "an I/O node led", "work changed hands", "parts were placed on targets", "targets of different speed",
    "a target was gone", "a flush gave way to the application", "an attempt failed", "a job came after another", "a job went back to an older version",
    "a version was removed", "a version was given up by hand", "a version was cancelled", "images left scratch", "a daemon was killed",
    "the coordinator's daemon was killed", "a daemon stood still", "nodes were cut off", "a node crashed",
    "all nodes lost power at once", "a fault struck a chosen operation", "only messages suffered",
};

struct SeedResult {
    bool ok = true;
    std::string failure;       // what broke
    std::string story;         // what the seed did, one line an event
    std::uint64_t fingerprint = 0;
    std::uint32_t committed = 0;
    std::uint32_t faults = 0;
    std::uint64_t saw = 0;     // a bit for each Saw
};

// A pure function of the scenario.
SeedResult run_scenario(const Scenario& scenario, bool trace = false);

}  // namespace cairn::testing
