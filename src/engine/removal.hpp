// Removal: taking versions off persistent in an order that is safe at every instant (rules 3 and 4): what names a part goes before the
// part. World only, so that the daemon's retention can use it, too.
#pragma once

#include <string>
#include <vector>

#include "engine/catalog.hpp"

namespace cairn {

// Removes a committed, given up or damaged version: the manifest, durably; then its parts; then the directory if nothing else is in it.
// A crash in between leaves parts without a manifest, which `cairn gc` finds. Missing files are not an error.
Task<Status> remove_version(World& world, Layout layout, CatalogEntry entry, Nanos io_wait);

// Removes files of one version's directory that no manifest names, then the directory if it is empty.
Task<Status> remove_files(World& world, std::string directory, std::vector<std::string> files, Nanos io_wait);

// Publishes a tombstone for a version without a manifest: after that nobody can commit it, and its parts may go. already_exists: somebody
// committed it first.
Task<Status> give_up_version(World& world, Layout layout, Manifest tombstone, Nanos io_wait);

// Indices of the committed entries that a retention rule lets go. `entries` are the committed versions of one lineage by version; the newest
// always stays.
std::vector<std::size_t> beyond_retention(const std::vector<Version>& versions, std::uint64_t last, std::uint64_t every);

}  // namespace cairn
