// The plan of one flush attempt: who writes which range of which part and what goes into it. Pure functions of the sizes (Algorithm 1).
//
// Writers are not files: K parts are what the user asked for, how many nodes write them is Cairn's choice. A part has one or more leaders,
// each with its own aligned range (its share), so that no two ever touch the same page of the file. Parts and leaders both divide the same line of
// blocks of images evenly; a share is where the range of a leader and the range of a part meet, so every leader writes the same and every part holds the
// same, whatever the nodes hold. What a node has beyond its share goes to leaders with room, the one of its own group first. Where all nodes lead,
// each may as well write its own (keep_own): sending what is uneven uses the same card as writing it, so it is worth it only where cards have room,
// and that shows when some are done and others are not (balance.hpp).
//
// With a file for each rank, or node, there is nothing to divide: each file has one leader, the node that holds what goes into it, and no work moves. A safetensors file takes in
// whole images, since a tensor lies in one file; it has one leader too, the node that holds most of it (tensor_places.hpp).
#pragma once

#include <cstdint>
#include <string>
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

// Sources that lie on one node.
struct NodeSources {
    NodeIndex node = 0;
    std::vector<Source> sources;
    bool operator==(const NodeSources&) const = default;
};

// What one leader writes of one part.
struct Share {
    NodeIndex leader = 0;
    std::uint64_t offset = 0;  // in the part, where its range starts: a multiple of part_alignment
    std::uint64_t bytes = 0;   // of its range: the space of its sources (space.hpp)
    std::vector<NodeSources> nodes;  // by node
    bool operator==(const Share&) const = default;
};

struct PartPlan {
    std::uint32_t part = 0;
    std::string target;             // storage target that should hold it; empty: the file system's choice
    std::uint64_t sized_bytes = 0;  // what the file is sized to before a second leader opens it; 0: one leader, it grows
    std::vector<Share> shares;      // not empty; the first one's leader creates and sizes the file and writes its footer
    // It takes the place of a part on a target that failed in mid-flush: then `part` is a number of its own, K and up, by which an attempt tells its parts apart, and the file is that
    // part's so many-th replacement.
    std::uint32_t replaces = 0, replacement = 0;
    std::uint32_t number() const { return replacement != 0 ? replaces : part; }  // among the K of the version
    NodeIndex first_leader() const { return shares.front().leader; }
    std::uint64_t range_bytes() const { return shares.back().offset + shares.back().bytes; }
    bool operator==(const PartPlan&) const = default;
};

// What a node holds of the version being flushed: its ranks' sizes. None on a node that only writes (a dedicated I/O node).
struct NodeImages {
    NodeIndex node = 0;
    std::vector<ImageInfo> images;  // by rank
    bool operator==(const NodeImages&) const = default;
};

struct PlanOptions {
    std::uint32_t files = 1;    // K: 1 <= files <= number of ranks
    std::uint32_t leaders = 1;  // nodes that write; more than may lead: all that may
    bool whole_parts = false;   // one leader a part, however that divides the bytes among leaders
    bool keep_own = false;      // where all nodes lead, each writes what it holds, however uneven that is; else all write the same
    std::uint64_t block_bytes = 0;
    std::uint64_t pack_bytes = 0;  // SpacePolicy's
    // Blocks of each of the K parts, together all there are; empty: the same for all, give or take one.
    std::vector<std::uint64_t> part_blocks;
    std::vector<NodeIndex> unfit;  // should not lead; those with images do when nobody else can
    FileLayout layout = FileLayout::parts;  // with another one `files` is what it comes to, and of the others only block_bytes, pack_bytes and unfit count
    bool operator==(const PlanOptions&) const = default;
};

std::uint64_t node_bytes(const NodeImages& node);
std::uint64_t node_blocks(const NodeImages& node, std::uint64_t block_bytes);

// The group of node i of C when K parts are asked for: floor(i K / C). Only for K <= C.
std::uint32_t group_of(NodeIndex node, std::uint32_t nodes, std::uint32_t files);

// fgcs24, Algorithm 1, policy(): the node with most local bytes, ties to the lowest. `group` is not empty.
NodeIndex elect(const std::vector<NodeImages>& nodes, const std::vector<NodeIndex>& group);

// Nodes that may lead.
std::uint32_t leaders_max(const std::vector<NodeImages>& nodes, const std::vector<NodeIndex>& unfit);

// The node that holds what a part of one rank, or node, takes in.
NodeIndex owner_of(const PartPlan& part);

// Exactly `files` parts over all nodes' images; nodes[i].node == i. As many groups as leaders, of dedicated I/O nodes where there are
// any, else of nodes with data, without those that are unfit; each elects one. With as many leaders as files this is the paper's plan, but for equal bytes.
std::vector<PartPlan> make_plan(const std::vector<NodeImages>& nodes, const PlanOptions& options);

// Chunk size of a leader: min(buffer, max(block, bytes / 4 writers)), in whole blocks, so that small checkpoints still
// flow through all writers.
std::uint64_t chunk_bytes(std::uint64_t buffer_bytes, std::uint64_t block_bytes, std::uint64_t share_bytes, std::uint32_t writers);

}  // namespace cairn
