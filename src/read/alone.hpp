// What reading takes beyond what is wanted. What one rank alone must read to have its image: a run with a codec, or of several pieces, is read whole, also where most of it is other ranks', and a base besides. Ranks of one node that
// restore at the same time read it once (copies/shared_runs.hpp). Pure.
#pragma once

#include <optional>

#include "copies/restore.hpp"

namespace cairn {

struct AloneRead {
    Rank rank = 0;
    double own_bytes = 0;        // of what is stored, its share by raw bytes
    std::uint64_t read_bytes = 0;  // of this version's parts, without footers
    std::uint64_t base_bytes = 0;  // and of those of its bases
    double factor() const { return own_bytes > 0 ? static_cast<double>(read_bytes) / own_bytes : 1; }
};

// What reads take of the files: stored bytes of the version, and of its base where runs need one; and raw bytes of the encoded runs of both, which are decoded whole.
struct ReadCost {
    std::uint64_t read_bytes = 0, decoded_bytes = 0, base_bytes = 0;
    void add(const ReadCost& other) {
        read_bytes += other.read_bytes;
        decoded_bytes += other.decoded_bytes;
        base_bytes += other.base_bytes;
    }
    bool operator==(const ReadCost&) const = default;
};
ReadCost cost_of(const OpenVersion& version, const std::vector<PartRead>& reads);

AloneRead alone_read(const OpenVersion& version, Rank rank);
// Of all ranks that have bytes here the one that must read the most for each byte of its own; none where nobody has any.
std::optional<AloneRead> costliest_alone(const OpenVersion& version);

}  // namespace cairn
