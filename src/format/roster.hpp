// The roster of an incarnation, and the record in which a daemon publishes its newest address. Both are kept in scratch
// and under persistent; the roster holds the job's secret (mode 0600). And the record of a dedicated I/O node.
#pragma once

#include "base/status.hpp"
#include "format/limits.hpp"
#include "format/names.hpp"
#include "model/types.hpp"

namespace cairn {

// Also of one whose format is newer than this Cairn's (unsupported, both named): what its job writes could not be read.
Status check_roster(const Roster& roster);
Bytes encode_roster(const Roster& roster);
Result<Roster> decode_roster(ByteView bytes);

struct NodeRecord {
    Id128 incarnation;
    NodeIndex node = 0;
    std::string address;
    bool operator==(const NodeRecord&) const = default;
};
Bytes encode_node_record(const NodeRecord& record);
Result<NodeRecord> decode_node_record(ByteView bytes);

// A dedicated I/O node: its daemon leads for jobs that have no ranks there. Of no job, so under persistent only.
struct IoNodeRecord {
    std::string node;
    std::string address;
    std::uint32_t format = format_version;  // that the daemon knows; of a record without one: 1
    bool operator==(const IoNodeRecord&) const = default;
};
Bytes encode_io_node_record(const IoNodeRecord& record);
Result<IoNodeRecord> decode_io_node_record(ByteView bytes);

}  // namespace cairn
