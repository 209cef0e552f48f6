// The plan of one flush attempt: who leads which part and what goes into it. Pure functions of the sizes (Algorithm 1).
#pragma once

#include <cstdint>
#include <vector>

#include "model/types.hpp"

namespace cairn {

// A run of one image that a part takes in. Starts on a block of the image.
struct Source {
    Rank rank = 0;
    std::uint64_t image_offset = 0;
    std::uint64_t length = 0;
    bool operator==(const Source&) const = default;
};

// The sources of one part that lie on one node.
struct NodeSources {
    NodeIndex node = 0;
    std::vector<Source> sources;
    bool operator==(const NodeSources&) const = default;
};

struct PartPlan {
    std::uint32_t part = 0;
    NodeIndex leader = 0;
    std::vector<NodeSources> nodes;  // by node; the leader's own among them
    bool operator==(const PartPlan&) const = default;
};

// What a node holds of the version being flushed: its ranks' sizes.
struct NodeImages {
    NodeIndex node = 0;
    std::vector<ImageInfo> images;  // by rank
};

std::uint64_t node_bytes(const NodeImages& node);

// The group of node i of C when K parts are asked for: floor(i K / C). Only for K <= C.
std::uint32_t group_of(NodeIndex node, std::uint32_t nodes, std::uint32_t files);

// fgcs24, Algorithm 1, policy(): the node with most local bytes, ties to the lowest. `group` is not empty.
NodeIndex elect(const std::vector<NodeImages>& nodes, const std::vector<NodeIndex>& group);

// Exactly `files` parts over all nodes' images. For K <= C part k is group k's. For K > C the node floor(k C / K) leads part k and
// its images are cut at blocks so that its parts differ by at most one block. 1 <= files <= number of ranks.
std::vector<PartPlan> make_plan(const std::vector<NodeImages>& nodes, std::uint32_t files, std::uint64_t block_bytes);

// Chunk size of a leader: min(buffer, max(block, node bytes / 4 writers)), in whole blocks, so that small checkpoints still
// flow through all writers.
std::uint64_t chunk_bytes(std::uint64_t buffer_bytes, std::uint64_t block_bytes, std::uint64_t part_bytes, std::uint32_t writers);

}  // namespace cairn
