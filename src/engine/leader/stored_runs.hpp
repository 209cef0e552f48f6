// Stored runs of a part, as its leaders note them and tell each other: joined where one goes on where the one before it ends, cut for messages.
#pragma once

#include <vector>

#include "engine/settings.hpp"
#include "model/types.hpp"

namespace cairn::engine {

// By part offset. Neighbours in one image and in the part, stored as they are, become one.
void join_runs(std::vector<StoredRun>& runs, std::uint64_t block_bytes);

// So that each is a message of a few MiB; at least one. What is cut in two is joined again for the footer. A run of several pieces, or an encoded one, is no
// more than a buffer, and stays whole.
std::vector<std::vector<StoredRun>> cut_for_messages(std::vector<StoredRun> runs, std::uint64_t block_bytes, const FlushLimits& limits);

}  // namespace cairn::engine
