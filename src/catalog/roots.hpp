// Roots besides persistent: directories, of whatever file systems, below which parts of versions lie. A manifest and a tombstone name theirs, so that who
// reads or removes needs no settings. A root's own directory `.cairn` tells that its file system is mounted: without it nothing is concluded from what is
// not found there.
#pragma once

#include <string>
#include <vector>

#include "catalog/catalog.hpp"

namespace cairn {

// For whoever will put parts there: the mark, and the version's directory, durably. unavailable when the root itself is missing: whoever set it makes it.
Task<Status> make_version_below(World& world, std::string root, VersionKey key, Nanos deadline);

// Whether a file can be made below each of them now, in their order: one is, and removed. All are asked at once: several that hang take the time of one.
Task<std::vector<Status>> try_roots(World& world, std::vector<std::string> roots, Nanos deadline);

// True: it is there. False: its mark is not, so its file system is not mounted. An error: nobody can tell.
Task<Result<bool>> is_mounted(World& world, std::string root, Nanos deadline);

// ok: it is there. unavailable: it is not, and its file system may be mounted again.
Task<Status> check_root(World& world, std::string root, Nanos deadline);

// What to tell of a part that was not found: unavailable when its root is not there, with all the parts that lie below it; else it is damage.
Task<Status> missing_part(World& world, Layout layout, Manifest manifest, std::uint32_t part, Nanos deadline);

// For a tombstone in a manifest's place: the roots that hold its parts, so were there when it was published. Of the others that a manifest names nobody knows
// whether anything was ever made below them, and a tombstone that waited for one of these might wait for ever. A tombstone's own are all that it names.
std::vector<std::string> roots_with_parts(const Manifest& manifest);

// The files in a version's directory below a root. None where there is no such directory; unavailable as check_root.
Task<Result<std::vector<DirectoryEntry>>> list_below(World& world, std::string root, VersionKey key, Nanos deadline);

// Adds to the entries of a series what the roots of their manifests, and of the layout, hold of them; entries of their own for what persistent knows nothing
// of. A root that can not be looked at is told in the entries that name it (CatalogEntry::away).
Task<void> look_elsewhere(World& world, Layout layout, std::string name, std::vector<CatalogEntry>& entries, Nanos io_wait);

// roots_with_parts of an entry that was read whole, and looked at so; where nothing names them, those below which anything was found. Of its head alone: all that it names.
std::vector<std::string> roots_of(const CatalogEntry& entry);

}  // namespace cairn
