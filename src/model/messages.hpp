// What daemons of a job say to each other. Datagrams: lost, late, repeated; so every request can be asked again and every answer
// be had again. The coordinator of a version is the daemon of node 0 of its job.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/status.hpp"
#include "model/key_efforts.hpp"
#include "model/number_array.hpp"
#include "model/card.hpp"
#include "model/plan.hpp"
#include "model/reasons.hpp"
#include "model/types.hpp"

namespace cairn::message {

// node -> coordinator, again and again until an answer ends it: this node holds these sealed images of the version.
struct Sealed {
    std::vector<ImageInfo> images;
    std::uint64_t block_bytes = 0;
    bool operator==(const Sealed&) const = default;
};

// coordinator -> node: still waiting for others; `missing` names nodes not heard of. An I/O node answers with one that names nobody; so does a node that lacks images.
struct Noted {
    std::vector<NodeIndex> missing;
    bool operator==(const Noted&) const = default;
};

struct NodeAddress {
    NodeIndex node = 0;
    std::string address;
    bool operator==(const NodeAddress&) const = default;
};

// coordinator -> leader, until Progress: write your share of these parts. Of other leaders' shares only the leader and the range are there,
// and all of them only for the part's first leader, who gathers what they wrote; it also gets the images of all ranks in the part.
// `addresses`: the newest known, of nodes with sources and of the other leaders named.
struct Lead {
    std::uint32_t attempt = 0;
    Id128 attempt_id;
    std::uint32_t parts_total = 0;
    std::uint32_t ranks_total = 0;
    std::uint64_t block_bytes = 0;
    std::vector<PartPlan> parts;
    std::vector<ImageInfo> images;
    std::vector<NodeAddress> addresses;
    bool keep_own = false;  // what leaders hold themselves changes hands by portions (model/card.hpp)
    std::string codec;             // by its name; empty: none. A leader that does not know it stores raw bytes
    std::uint64_t pack_bytes = 0;  // how shares and work were given their space (model/space.hpp)
    bool encode_at_follower = false;  // where what comes from other nodes is encoded: there, and here only what came raw
    std::string trial;                // a codec: to encode a chunk with and throw the result away; empty: none (model/codec_choice.hpp)
    Version base = 0;                 // an older version of this incarnation, which is whole: data may be stored as what changed since; 0: none
    std::uint32_t merge_ranks = 1;    // images of one node that share encoded runs, as far as a leader's buffers have room for that (model/merging.hpp)
    std::uint64_t merge_bytes = 0;    // of each by turns
    std::uint32_t trial_merge_ranks = 1;  // the same of what is tried, with `codec`, or else with `trial`, and thrown away; 1: nothing is
    std::uint64_t trial_merge_bytes = 0;
    bool may_replace = false;  // where the storage of a part fails another file can take its place, on another target
    KeyEfforts keys;           // the arrays of which are not encoded as `codec` would (model/key_choice.hpp)
    bool equal_pages = false;  // what a leader's own images have in common goes into a part once, and its first leader hands out the space of each
    bool operator==(const Lead&) const = default;
};

// What a leader has to do in one part.
struct PartProgress {
    std::uint32_t part = 0;
    std::uint64_t unstarted_bytes = 0;  // neither written nor being fetched or written
    std::uint64_t begun_bytes = 0;      // being fetched or written
    std::uint64_t bytes_per_s = 0;      // written lately; 0: not measured yet
    bool operator==(const PartProgress&) const = default;
};
// leader -> coordinator: a heartbeat, and at once when nothing is left to begin in a part.
struct Progress {
    Id128 attempt_id;
    std::uint64_t sequence = 0;  // of this leader in this attempt, from 1: an older one that comes late is dropped
    std::uint64_t bytes = 0;     // written
    std::vector<PartProgress> parts;
    std::uint32_t taken = 0;     // moves it took so far: before that many, unstarted_bytes does not know of them
    bool operator==(const Progress&) const = default;
};

// ---- work that changes hands while a flush runs; the coordinator decides (model/balance) ----

// coordinator -> leader that is behind, until Given: give up to so many bytes of this part that you have not begun, of the node `to` first.
struct Shed {
    Id128 attempt_id;
    std::uint32_t move = 0;
    std::uint32_t part = 0;
    NodeIndex to = 0;
    std::uint64_t bytes = 0;
    bool operator==(const Shed&) const = default;
};

// Sources that go to one range of one part.
struct Work {
    std::uint32_t part = 0;
    std::uint64_t offset = 0;  // of the range, a multiple of part_alignment; where the version has several parts their first leaders say where runs go
    std::uint64_t bytes = 0;   // the space of the sources, which are packed again as they were
    std::vector<NodeSources> nodes;
    bool operator==(const Work&) const = default;
};

// leader -> coordinator, in answer to Shed: this it will not write any more. Nothing: it has nothing left.
struct Given {
    Id128 attempt_id;
    std::uint32_t move = 0;
    std::vector<Work> work;  // with the ranges they would have gone to
    bool operator==(const Given&) const = default;
};

// coordinator -> leader that is ahead, until Taken: write this, too.
struct Take {
    Id128 attempt_id;
    std::uint32_t move = 0;
    std::vector<Work> work;  // of parts that it leads
    std::vector<NodeAddress> addresses;
    bool operator==(const Take&) const = default;
};

// leader -> coordinator, in answer to Take.
struct Taken {
    Id128 attempt_id;
    std::uint32_t move = 0;
    bool operator==(const Taken&) const = default;
};

// coordinator -> leader, until PartsDone: no work will change hands any more. A first leader gets the images that came into its parts.
struct Complete {
    Id128 attempt_id;
    std::vector<ImageInfo> images;
    bool operator==(const Complete&) const = default;
};

// ---- a part whose storage fails while the others go on (coordinator/replacer.hpp) ----

// leader -> coordinator, until Replace: it can not write its share of this part any more.
struct PartFailed {
    Id128 attempt_id;
    std::uint32_t part = 0;
    Code code = Code::ok;  // why
    std::string text;
    bool operator==(const PartFailed&) const = default;
};

// coordinator -> every leader of the part, until its Progress says so: what it wrote there counts no more, and nobody waits for it. The part's first leader writes all of it once more, in
// another file. Without that file's plan: so far only that another one comes, or will for a first leader.
struct Replace {
    Id128 attempt_id;
    std::uint32_t part = 0;
    std::vector<PartPlan> with;  // one, of one share; or none
    std::vector<NodeAddress> addresses;
    bool operator==(const Replace&) const = default;
};

// ---- between the leaders of one part ----

// first leader -> other leaders of the part, until they are done: the file is there and has its size.
struct Opened {
    Id128 attempt_id;
    std::uint32_t part = 0;
    bool operator==(const Opened&) const = default;
};

// leader -> first leader of the part, until Roomed: so many bytes are to be stored. Numbers are the leader's own, from 0.
struct Room {
    Id128 attempt_id;
    std::uint32_t part = 0;
    std::uint32_t number = 0;
    std::uint64_t bytes = 0;
    bool operator==(const Room&) const = default;
};
// first leader -> leader, in answer to Room: there.
struct Roomed {
    Id128 attempt_id;
    std::uint32_t part = 0;
    std::uint32_t number = 0;
    std::uint64_t offset = 0;  // in the part
    bool operator==(const Roomed&) const = default;
};

// Something a leader wrote that is not all zeros, by which the first leader sees that both have the same file. No length: nothing such was met.
struct Sample {
    std::uint64_t part_offset = 0, length = 0, checksum = 0;
    bool operator==(const Sample&) const = default;
};

// leader -> first leader of the part, each piece until ShareKept: what it wrote, all of it durable.
struct ShareDone {
    Id128 attempt_id;
    std::uint32_t part = 0;
    std::uint32_t piece = 0, pieces = 1;
    std::uint64_t block_bytes = 0;
    std::vector<StoredRun> runs;
    std::vector<Rank> empty_ranks;  // without bytes, that have their place here
    Sample sample;
    bool operator==(const ShareDone&) const = default;
};
struct ShareKept {
    Id128 attempt_id;
    std::uint32_t part = 0;
    std::uint32_t piece = 0;
    bool operator==(const ShareKept&) const = default;
};

// What a codec did on a leader's node lately, and how many raw bytes a second all its threads encode with it.
struct CodecRate {
    std::string codec;
    std::uint64_t raw_bytes = 0, stored_bytes = 0;
    std::uint64_t raw_bytes_per_s = 0;
    // What so many raw bytes of several images took on trial, since the version before: image by image, and by turns. 0: nothing was tried.
    std::uint64_t apart_bytes = 0, merged_bytes = 0, tried_bytes = 0;
    bool operator==(const CodecRate&) const = default;
};

// leader -> coordinator, until Acknowledged: its shares are durable and known to the first leaders of their parts (code ok), or why that can
// not be. `parts` are those it is the first leader of, complete. `lost` names a node whose data could not be had.
struct PartsDone {
    Id128 attempt_id;
    Code code = Code::ok;
    std::string text;
    bool has_lost = false;
    NodeIndex lost = 0;
    bool has_failed_part = false;  // storage failed, on this part
    std::uint32_t failed_part = 0;
    std::vector<PartInfo> parts;
    std::uint64_t coverage = 0;  // of their pieces (model/coverage.hpp)
    Card card = Card::unknown;
    std::vector<CodecRate> codecs;      // of the codec that it used, and of the one that it tried
    std::uint64_t storage_busy_ns = 0;  // some write or sync of this leader was under way
    bool needs_base = false;            // one of `parts` can not be decoded without the Lead's base
    std::uint32_t encoders = 0;         // threads that encode at once
    std::vector<KeyEncoded> keys;       // what was encoded and tried since the version before, key by key; at most keys_max rows
    std::uint64_t equal_bytes = 0;      // of its images, for which nothing was written: they lie where the same bytes of another one do
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

// any node -> follower: a free buffer, and what should fill it (Algorithm 2: a credit that names the extent wanted).
struct Want {
    std::uint64_t tag = 0;
    Source source;
    Reason reason = Reason::flush;  // may be one that this Cairn does not know
    std::string codec;              // by its name: the bytes may come encoded with it, as one. Empty: they come raw
    Version base = 0;               // then: as what changed since that version; 0: not
    KeyEfforts keys;                // then: as in Lead
    bool describe = false;          // who wants them encodes what comes raw, and asks what is known of it
    bool operator==(const Want&) const = default;
};

// follower -> who wanted it: what travels under the tag, or why it can not be had (unsupported: the reason is not known). The payload itself goes beside it.
struct Chunk {
    std::uint64_t tag = 0;
    Code code = Code::ok;
    std::string text;
    std::vector<std::uint64_t> checksums;  // one a unit, of the raw bytes
    std::vector<std::uint64_t> cuts;       // where units end besides blocks, in the image
    std::uint64_t stored_bytes = 0;        // that travel, encoded with the codec that was asked for; 0: the raw bytes do
    std::uint64_t stored_checksum = 0;     // of these
    bool used_up = false;                  // not_found: they could be read once only, and were; nobody will have them any more
    bool needs_base = false;               // encoded: to be decoded
    std::vector<NumberArray> arrays;       // of raw bytes, where that was asked: the first arrays_told_max that lie in them, with offsets in them
    bool operator==(const Chunk&) const = default;
};

// coordinator -> node, in answer to Sealed and once unasked: how the version ended. Code::ok is committed; superseded and
// cancelled are final; anything else is retried for as long as the images stay in scratch.
struct Ended {
    Code code = Code::ok;
    std::string text;
    bool final = false;
    Version base = 0;  // committed: what newer versions may be stored as changes of; 0: nothing
    bool operator==(const Ended&) const = default;
};

// node -> coordinator: the application gave this version up; or, with a text, a leader of this attempt says that what of it was there once only is used up, and
// it can not be committed.
struct Cancel {
    std::string text;
    Id128 attempt_id;
    bool operator==(const Cancel&) const = default;
};

// node -> coordinator, once, when the last of the node's images of a version has begun to be filled: the sizes that they will have. A hint: a plan needs sizes, and
// with it can be made while images are filled. Nobody asks for it again, and only what is sealed is committed.
struct Begun {
    std::vector<ImageInfo> images;  // of all ranks of the node: rank and bytes
    std::uint64_t block_bytes = 0;
    bool operator==(const Begun&) const = default;
};

using Body = std::variant<Sealed, Noted, Lead, Progress, PartsDone, Acknowledged, Leave, Want, Chunk, Ended, Cancel, Shed, Given, Take,
                          Taken, Complete, Opened, ShareDone, ShareKept, Room, Roomed, Begun, PartFailed, Replace>;

// By who hears them, on the node that they are sent to. What everybody hears is Ended; Noted is the coordinator's word to a node, and a node's to the
// coordinator.
using ForFollower = std::variant<Noted, Want>;
using ForLeader = std::variant<Lead, Opened, Chunk, Shed, Take, Complete, ShareDone, ShareKept, Room, Roomed, Replace, Acknowledged, Leave>;
using ForCoordinator = std::variant<Sealed, Noted, Cancel, Progress, Given, Taken, PartFailed, PartsDone>;
// Of a version that has only begun: nobody waits for it yet, and nothing of it need be ended or forgotten.
using ForCoordinatorAhead = std::variant<Begun>;

struct Message {
    Id128 secret;      // the job's; a message without it is dropped
    VersionKey key;
    NodeIndex from = 0;
    std::string address;  // of the sender, so that a restarted daemon is found again
    Body body;
    bool operator==(const Message&) const = default;
};

}  // namespace cairn::message
