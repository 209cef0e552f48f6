// What daemons of a job say to each other. Datagrams: lost, late, repeated; so every request can be asked again and every answer
// be had again. The coordinator of a version is the daemon of node 0 of its job.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/status.hpp"
#include "model/plan.hpp"
#include "model/types.hpp"

namespace cairn::message {

// node -> coordinator, again and again until an answer ends it: this node holds these sealed images of the version.
struct Sealed {
    std::vector<ImageInfo> images;
    std::uint64_t block_bytes = 0;
    bool operator==(const Sealed&) const = default;
};

// coordinator -> node: still waiting for others; `missing` names nodes not heard of.
struct Noted {
    std::vector<NodeIndex> missing;
    bool operator==(const Noted&) const = default;
};

// coordinator -> leader, until PartsDone: lead these parts. `images` are those of all ranks in the parts; `addresses[i]` is the newest
// known address of the node of each NodeSources, by node index.
struct Lead {
    std::uint32_t attempt = 0;
    Id128 attempt_id;
    std::uint32_t parts_total = 0;
    std::uint32_t ranks_total = 0;
    std::uint64_t block_bytes = 0;
    std::vector<PartPlan> parts;
    std::vector<ImageInfo> images;
    struct NodeAddress {
        NodeIndex node = 0;
        std::string address;
        bool operator==(const NodeAddress&) const = default;
    };
    std::vector<NodeAddress> addresses;
    bool operator==(const Lead&) const = default;
};

// leader -> coordinator, a heartbeat: this leader is alive and has written so much.
struct Progress {
    Id128 attempt_id;
    std::uint64_t bytes = 0;
    bool operator==(const Progress&) const = default;
};

// leader -> coordinator, until Acknowledged: its parts are durable (code ok), or why they can not be.
// `lost` names a node whose data could not be had.
struct PartsDone {
    Id128 attempt_id;
    Code code = Code::ok;
    std::string text;
    bool has_lost = false;
    NodeIndex lost = 0;
    std::vector<PartInfo> parts;
    bool operator==(const PartsDone&) const = default;
};

// coordinator -> leader: the report is in safe hands.
struct Acknowledged {
    Id128 attempt_id;
    bool operator==(const Acknowledged&) const = default;
};

// coordinator -> leader: leave this attempt.
struct Leave {
    Id128 attempt_id;
    bool operator==(const Leave&) const = default;
};

// leader -> follower: a free buffer, and what should fill it (Algorithm 2: a credit that names the extent wanted).
struct Want {
    std::uint64_t tag = 0;
    Source source;
    bool operator==(const Want&) const = default;
};

// follower -> leader: what travels under the tag, or why it can not be had. The payload itself goes beside it.
struct Chunk {
    std::uint64_t tag = 0;
    Code code = Code::ok;
    std::string text;
    std::vector<std::uint64_t> checksums;  // one a block, of the raw bytes
    bool operator==(const Chunk&) const = default;
};

// coordinator -> node, in answer to Sealed and once unasked: how the version ended. Code::ok is committed; superseded and
// cancelled are final; anything else is retried for as long as the images stay in scratch.
struct Ended {
    Code code = Code::ok;
    std::string text;
    bool final = false;
    bool operator==(const Ended&) const = default;
};

// node -> coordinator: the application gave this version up.
struct Cancel {
    bool operator==(const Cancel&) const = default;
};

using Body = std::variant<Sealed, Noted, Lead, Progress, PartsDone, Acknowledged, Leave, Want, Chunk, Ended, Cancel>;

struct Message {
    Id128 secret;      // the job's; a message without it is dropped
    VersionKey key;
    NodeIndex from = 0;
    std::string address;  // of the sender, so that a restarted daemon is found again
    Body body;
    bool operator==(const Message&) const = default;
};

}  // namespace cairn::message
