// What a node knows of a version, for those who wait for it; and what it did, in sums.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.hpp"
#include "model/levels.hpp"

namespace cairn {

struct VersionState {
    Level level = Level::none;
    Status failure;              // last failure told to waiters; ok while none. Cleared when the version commits after all.
    bool final = false;          // no more will come: committed, cancelled or superseded
    std::uint64_t failures = 0;  // told so far, the standing one included: what is new to whoever was told of fewer
    bool dead = false;           // given up on this node, since nobody can need it (dead.hpp)
    std::uint64_t bytes = 0;     // of this node's images
    bool all_here = false;       // every rank of this node has sealed it
    std::uint64_t node_written_bytes = 0;   // written by this node as a leader for this version
    std::uint64_t node_expected_bytes = 0;  // of its parts, 0 until elected
};

// Sums since the start, for `status` and the benchmark (the paper's Figures 7 to 9).
struct WriterTimes {
    double received_s = 0, local_s = 0;
    std::uint64_t received_bytes = 0, local_bytes = 0;
};
struct NodeCounters {
    std::uint64_t captured_bytes = 0, sent_bytes = 0, received_bytes = 0, written_bytes = 0;
    std::uint64_t given_bytes = 0;         // of images: what was sent, as it was before it was encoded
    std::uint64_t came_encoded_bytes = 0;  // of the received ones
    std::uint64_t taken_over_bytes = 0;  // written here instead of by another leader, or in another part that was behind
    std::uint64_t versions_committed = 0, attempts_failed = 0;
    std::uint64_t planned_ahead = 0;    // attempts that went by a plan that was made before their version was sealed
    std::uint64_t planned_in_vain = 0;  // such plans that held no more
    std::uint64_t planned_by_key = 0;   // attempts with a codec that does not work alike on all data (model/key_choice.hpp)
    std::uint32_t leading = 0, sending = 0;  // now: attempts, and answers with data, of versions that ended, too
    std::vector<WriterTimes> writers;  // of the last flush this node led
    double last_flush_s = 0;           // of the last flush this node led: what it took to write its bytes and make them durable, without waits for slower leaders in between
    std::uint64_t last_flush_bytes = 0;
    double last_write_s = 0;           // of that flush, from its start until the last of its writers ended (the time of ispdc23's metric)
};

}  // namespace cairn
