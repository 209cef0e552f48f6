// Hand: what one rank shows all others at open, and what they find when they lay all hands side by side.
#pragma once

#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/status.hpp"
#include "format/limits.hpp"
#include "model/types.hpp"

namespace cairn {

struct Hand {
    Status prepared;
    std::string library, name, persistent, node, address;
    std::uint32_t files = 0;
    FileLayout layout = FileLayout::parts;
    std::uint64_t block_bytes = 0;
    std::uint64_t epoch = 0;                // the highest that its node's scratch knows of
    std::uint32_t format = format_version;  // the newest that its library knows
    std::string daemon;                     // the release of its node's
    std::uint32_t daemon_format = format_version;
    bool is_through = false;                // capture.mode

    Bytes pack() const;
    // Of one without formats, as an older library packs it, both are 1.
    static Result<Hand> unpack(const Bytes& bytes);
};

// What the hands of all ranks, in their order, come to.
struct HandsTogether {
    std::vector<Member> members;  // the nodes, by their lowest rank
    std::uint64_t epoch = 0;      // the highest of all
    std::uint32_t files = 0;      // rank 0's
    FileLayout layout = FileLayout::parts;
    std::uint64_t block_bytes = 0;
    bool is_through = false;
};

// The same hands in the same order give the same result on every rank. Refused by name: the first rank that could not prepare, is of another job, or whose
// library or daemon does not know the newest format that a member knows. Only the newest is written, so whoever knows less could not read what others write.
Result<HandsTogether> compare_hands(const std::vector<Bytes>& hands);

// "WHO, whose format is 1; this job writes format 2: ..."; what is to be done there ends it.
std::string older_member(const std::string& who, std::uint32_t knows, std::uint32_t written);

}  // namespace cairn
