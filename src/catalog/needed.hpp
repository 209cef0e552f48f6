// References between versions: a manifest may name parts of older ones of its series, its bases (FORMAT.md), and their files stay as long as it does.
//
// Who removes a base and who publishes what depends on it may not know of each other. Each writes first what it is about to publish, under its other name: the one a manifest, the other a
// tombstone. Then it looks for the other's: the one who publishes whether all its bases stand and nothing unpublished lies beside them, the one who removes for dependents, published or not (removal.hpp).
// Only then does either go on. Whichever comes second is seen by the other's look: a base gives up its name and its parts, or a
// dependent is published, never both, whoever is killed where. Who removes looks once more before the first part goes, for dependents that an older release published. Not chosen: to publish and look afterwards, since who is killed between the two leaves a commit without its bytes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "catalog/catalog.hpp"

namespace cairn {

// A version that holds on to others.
struct Dependent {
    VersionKey key;
    std::vector<BaseVersion> bases;
    bool is_told = true;  // false: its manifest can not be read now, and what it names is not known. A damaged one names nothing that anybody could restore
};
std::optional<Dependent> dependent_of(const CatalogEntry& entry);  // none: it needs nothing
std::vector<Dependent> dependents_of(const std::vector<CatalogEntry>& entries);

// The oldest that needs `key`, or may; none where nothing does but what is `gone`.
const Dependent* needed_by(const std::vector<Dependent>& dependents, const VersionKey& key, const std::vector<VersionKey>& gone = {});
// "version 3 depends on it", for people.
std::string needed_text(const Dependent& by);

// permission: a version that stands under persistent, or is about to, needs this one, or may. Reads heads of manifests only.
Task<Status> check_not_needed(World& world, Layout layout, VersionKey key, Nanos io_wait);

// For who has written its manifest and is about to publish it: superseded where a base of it does not stand, or something unpublished of that one's incarnation lies beside it: a tombstone, or what
// a kill left.
Task<Status> check_bases_stand(World& world, Layout layout, Manifest manifest, Nanos io_wait);

}  // namespace cairn
