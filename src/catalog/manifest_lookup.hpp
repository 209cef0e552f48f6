// Reading manifests: all of one, what it says without its parts, or one rank's parts out of one of any size. The last takes at most four reads where the head is no longer
// than the first: the head, the rank's entry, its list, its records. No more is read than a head says that there is.
#pragma once

#include "catalog/layout.hpp"
#include "format/manifest.hpp"
#include "world/world.hpp"

namespace cairn {

inline constexpr std::uint64_t manifest_first_read_bytes = 64ull << 10;

// The head of whatever manifest there is at this path, published or not, and be it half written.
Task<Result<ManifestHead>> read_manifest_head(World& world, std::string path, Nanos deadline);

// What one manifest says but for its parts, from its head and its length; one that is no longer than the first read is whole. Behind a longer one's head
// nothing is looked at: damage there is met by who reads those records (read_manifest_of, read_manifest).
Task<Result<ManifestFacts>> read_manifest_facts(World& world, Layout layout, VersionKey key, Nanos deadline);

// One manifest. not_found when it is not there; a tombstone is returned like any other.
Task<Result<Manifest>> read_manifest(World& world, Layout layout, VersionKey key, Nanos deadline);

// The same, but for its parts: those that hold the rank. One that is no longer than the first read is whole.
Task<Result<Manifest>> read_manifest_of(World& world, Layout layout, VersionKey key, Rank rank, Nanos deadline);

}  // namespace cairn
