// TargetMap: which storage target each node of a series writes to, where each rank, or node, has a file of its own (orcheck, Section II-B, vertical checkpointing, and
// the mapping file of its Section III-A). All that a node writes lies on one target, so that a target sees the streams of few nodes, and the same ones in every version.
//
// A text file beside the versions keeps it across restarts, where a person can read and change it:
//
//   # which storage target each node of "heat" writes to, by the node's place in the job
//   made by count
//   0 gv-client-0
//   1 gv-client-1
//
// Pure functions and plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"

namespace cairn {

struct TargetMap {
    enum class MadeBy : std::uint8_t {
        count,         // targets get equally many nodes, give or take one
        stored_bytes,  // of a version that was committed: largest first
    };
    MadeBy made_by = MadeBy::count;
    std::vector<std::string> of_node;  // by place among the nodes that have ranks
    bool operator==(const TargetMap&) const = default;
};

// Nodes go round the targets. `targets` is not empty.
TargetMap map_by_count(std::size_t nodes, const std::vector<std::string>& targets);

// Largest first: each node, by what it stores, goes to the target that has least by then; ties to the first. No target then has more than 4/3 - 1/(3 targets) of what the
// best map would give to its fullest (Graham, Bounds on Multiprocessing Timing Anomalies, 1969).
TargetMap map_by_bytes(const std::vector<std::uint64_t>& node_bytes, const std::vector<std::string>& targets);

// What the fullest target gets.
std::uint64_t fullest_bytes(const TargetMap& map, const std::vector<std::uint64_t>& node_bytes);

std::string target_map_text(const std::string& series, const TargetMap& map);
// invalid_argument that names the line.
Result<TargetMap> parse_target_map(std::string_view text);

// The map as it is used now: nodes whose target is none of `usable` go round those instead. Nothing where there are none.
std::vector<std::string> usable_map(const TargetMap& map, const std::vector<std::string>& usable);

}  // namespace cairn
