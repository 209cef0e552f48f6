// The records under persistent in which dedicated I/O nodes offer themselves: <persistent>/.cairn/io-nodes/<node>.
#pragma once

#include "catalog/layout.hpp"
#include "format/roster.hpp"
#include "world/world.hpp"

namespace cairn {

// Replaces what an earlier daemon of that name left.
Task<Status> publish_io_node(World& world, Layout layout, IoNodeRecord record, Nanos deadline);
// Takes the record away, unless another daemon has replaced it.
Task<Status> withdraw_io_node(World& world, Layout layout, IoNodeRecord record, Nanos deadline);
Task<Result<IoNodeRecord>> read_io_node(World& world, Layout layout, std::string node, Nanos deadline);

// All that are there, by name. One that can not be read or is not one is named in `problems`.
struct IoNodes {
    std::vector<IoNodeRecord> records;
    std::vector<Status> problems;
};
Task<Result<IoNodes>> list_io_nodes(World& world, Layout layout, Nanos deadline);

}  // namespace cairn
