// Retention: which versions leave a node's scratch, by the rule when a newer one is committed, and earlier when there is no room. What is held goes in,
// what may go comes out; it goes where nobody reads or writes it (slots_full.cpp). Never the newest committed version of a series.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "model/types.hpp"

namespace cairn {

// One version's images on this node.
struct HeldVersion {
    VersionKey key;
    std::uint64_t epoch = 0;
    bool committed = false, sealed_everywhere = false;
    bool final = false;      // no more will come of it
    bool abandoned = false;  // a rank never sealed it, or its coordinator is silent
    bool pinned = false;     // somebody reads an image of it
    Status failure;          // of its flush, last; ok: none
    std::uint64_t bytes = 0;
    bool is_base = false;    // newer ones may be stored as what changed since it
};

// By series, the oldest first: the newer open first, then the version. What the others here take.
void sort_by_age(std::vector<HeldVersion>& versions);

// What the rule does not keep: committed ones by base/config's retention_keeps, unless they are a base, and those that nobody will ever want. The newest first.
std::vector<VersionKey> not_kept(const std::vector<HeldVersion>& versions, std::uint64_t keep_last, std::uint64_t keep_every);
// No room: committed ones that are on persistent, but the newest of each series; the oldest first.
std::vector<VersionKey> spare_copies(const std::vector<HeldVersion>& versions);
// No room, and older ones may be given up: the oldest that may go, and is not the oldest of its series on its way to persistent.
std::optional<VersionKey> replaceable(const std::vector<HeldVersion>& versions);
// For people: who has how much, and why it stays. written_bytes: of slots that are being captured into.
std::string what_holds(const std::vector<HeldVersion>& versions, std::uint64_t written_bytes);

}  // namespace cairn
