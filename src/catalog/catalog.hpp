// What is on persistent: series, versions, manifests, lineage. Read-only but for claim_epoch and record_parent.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "catalog/layout.hpp"
#include "catalog/manifest_lookup.hpp"
#include "format/lineage.hpp"
#include "world/world.hpp"

namespace cairn {

// One incarnation's copy of one version, as its directory shows it.
struct CatalogEntry {
    VersionKey key;
    std::optional<ManifestFacts> manifest; // none: parts without a manifest (in flight, or left behind)
    std::optional<Manifest> whole;         // the same with its parts, where Manifests::whole was asked for
    std::optional<Status> damage;          // the manifest can not be read: why. It may have been a tombstone
    std::vector<DirectoryEntry> files;     // all files of the version's directory that carry this incarnation or attempt:
                                           // manifest, parts, unpublished manifests
    struct Below {
        std::string root;
        std::vector<DirectoryEntry> files;
    };
    std::vector<Below> elsewhere;          // the same of other roots than persistent, where they were looked at (roots.hpp)
    std::vector<Status> away;              // roots that its manifest names, and that could not be looked at
    bool committed() const { return manifest && !manifest->abandoned; }
    // The version's directory can not be listed, or is none: of no incarnation, and whatever any of them left there is not known.
    bool unlisted() const { return damage && !key.incarnation; }
};

// Names of all series, in order.
Task<Result<std::vector<std::string>>> list_series(World& world, Layout layout, Nanos deadline);
// How much of each manifest is read.
enum class Manifests : std::uint8_t {
    heads,  // what they say but for their parts. Damage among the records of a long one shows when they are read
    whole,  // for whoever needs parts; or takes something away because another version is there: it has to be whole
};
// All versions of a series by (version, epoch). A missing series is an empty list; a missing persistent directory is unavailable.
Task<Result<std::vector<CatalogEntry>>> list_versions(World& world, Layout layout, std::string name, Nanos deadline, Manifests manifests = Manifests::heads);

// What is known of one open of a series (rule 1).
struct LineageEntry {
    OpenRecord open;                    // of one that can not be read the epoch is known, which is its name, and the incarnation if `from` tells it
    std::optional<FromRecord> from;
    std::optional<Status> open_damage;  // the record can not be read: why
    std::optional<Status> from_damage;  // the same; it went on from some version
};
// Newest last. A damaged record is reported, not hidden, and what it means is another question (lineage.hpp).
struct LineageRecords {
    std::string name;
    std::vector<LineageEntry> opens;
    Status unlisted;  // not ok: there is a lineage, and its records can not be listed
};
// Missing: as above. A file system that does not answer is an error, and never counts as damage.
Task<Result<LineageRecords>> read_lineage(World& world, Layout layout, std::string name, Nanos deadline);

// Raises the epoch: publishes <epoch>.open under the lowest free number above all there are and above `known`, the highest that the caller knows of
// (0: none), durably; returns the epoch. The first one of a series counts from the seconds since 1970: it may have been removed while scratch, of
// nodes that nobody asked, too, still has images of an earlier one, and those must not look newer.
Task<Result<std::uint64_t>> claim_epoch(World& world, Layout layout, std::string name, OpenRecord record, std::uint64_t known, Nanos deadline);
// ok: the job's own record of its start is there, by its name; whether it can be read is another matter. unavailable: it is not, so this is not what the
// job saw when it opened: another file system is mounted over it, or its own has gone and this is what lies below.
Task<Status> check_on_record(World& world, Layout layout, std::string name, std::uint64_t epoch, Id128 incarnation, Nanos deadline);
// Names the parent of an epoch, durably; once: the first record stays. already_exists with another parent is an error.
Task<Status> record_parent(World& world, Layout layout, std::string name, std::uint64_t epoch, FromRecord record, Nanos deadline);

}  // namespace cairn
