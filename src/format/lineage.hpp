// Records of <persistent>/<name>/lineage: who opened the series under which epoch, and from where it went on.
#pragma once

#include "base/status.hpp"
#include "format/names.hpp"
#include "model/types.hpp"

namespace cairn {

// <epoch>.open. host, pid and time are for people; nothing depends on them.
struct OpenRecord {
    Id128 incarnation;
    std::uint64_t epoch = 0;
    std::string host;
    std::uint64_t pid = 0;
    std::uint64_t wall_time_s = 0;
    std::uint32_t ranks = 0;
    bool operator==(const OpenRecord&) const = default;
};
Bytes encode_open_record(const OpenRecord& record);
Result<OpenRecord> decode_open_record(ByteView bytes);

// What a record says that a repair wrote anew when nothing told whose it was: it keeps the epoch taken, and any job may be its owner.
inline Id128 nobodys_incarnation(std::uint64_t epoch) { return {0, epoch}; }

// <epoch>.from: written once, when the incarnation restored something. `whole`: versions of which the scratch of the nodes that this open asked
// had every rank's image together, whoever took them, in no order; what is not among them was not whole there. Without `looked` nothing is known
// of that: an older release wrote it, or not every node could tell.
struct FromRecord {
    Id128 incarnation;
    Parent parent;
    bool looked = false;
    std::vector<Parent> whole = {};
    bool operator==(const FromRecord&) const = default;
};
Bytes encode_from_record(const FromRecord& record);
Result<FromRecord> decode_from_record(ByteView bytes);

}  // namespace cairn
