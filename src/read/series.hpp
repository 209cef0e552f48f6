// Series: all that is to be seen of one checkpoint: its versions on persistent and in the scratch that was looked at, and which of them belong to the
// current lineage. Joining is pure; only load_series reads.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "catalog/lineage.hpp"

namespace cairn {

// An image that scratch holds, as somebody who looked there saw it.
struct ScratchImage {
    VersionKey key;
    std::uint64_t epoch = 0;
    Parent parent;
    Rank rank = 0;
    std::uint32_t ranks = 0;
    std::uint64_t bytes = 0;
    std::string path;  // of its slot
    Status doubt;      // why it is not believed (daemon/boot.hpp); ok where nobody doubts it, or it proves itself
};

enum class SeenState : std::uint8_t {
    committed,
    sealed,      // every rank's image is in this host's scratch, no manifest
    partial,     // some ranks' images are here; other nodes may hold the others
    unfinished,  // parts without a manifest: being flushed, or left behind
    given_up,    // a tombstone
    damaged,     // the manifest can not be read
};

// One incarnation's copy of one version.
struct Seen {
    VersionKey key;
    CatalogEntry entry;               // without files when it is in scratch only
    std::vector<Rank> scratch_ranks;  // increasing
    std::uint32_t ranks = 0;          // 0: not known
    std::uint64_t epoch = 0;          // 0: not known
    Parent parent;
    std::uint64_t image_bytes = 0;   // of all ranks; where only scratch tells, of those here
    std::uint64_t stored_bytes = 0;  // of its files below persistent, and below other roots as far as they are known
    bool current = false;            // in the current lineage
    SeenState state = SeenState::unfinished;
};

std::string_view state_name(const Seen& seen);  // a word; "unreadable" instead of damaged where this user may not read the manifest

struct Series {
    std::string name;
    std::vector<Seen> versions;  // by version, then epoch
    std::vector<LineageEntry> opens;
    Lineage lineage;

    // Whether it is certain what a restart takes; where not, nothing is removed on the ground that nobody needs it.
    bool head_is_certain() const { return lineage.head.ok() && lineage.hidden.ok(); }
    // Why what a restart takes can not be told, as far as what was found decides that.
    Status doubt_of_newest() const;
    bool may_be_current(const Seen& seen) const { return seen.current || !lineage.is_certain(); }
};

// Records and directories that can not be read, and what can not be told for want of them: each by name, with the command that repairs it.
std::vector<Status> lineage_problems(const Series& series);

// What the catalog, the lineage and scratch (of any series) say together, by (version, incarnation). not_found where they know no series of this name.
Result<Series> join_series(const Layout& layout, const std::string& name, LineageRecords records, std::vector<CatalogEntry> entries,
                           const std::vector<ScratchImage>& images);
// The same, of what is on persistent now.
enum class Roots : std::uint8_t {
    persistent,  // which tells what is committed; a root that hangs keeps nobody from it
    all,         // also what lies below the others
};
Task<Result<Series>> load_series(World& world, Layout layout, std::string name, std::vector<ScratchImage> images, Roots roots, Manifests manifests, Nanos io_wait);

// The committed copy that a version text means: a number, or "latest" (also ""), which is the newest of the current
// lineage. Where several incarnations have it, the current lineage's; `incarnation` (the first digits of one) chooses
// another.
Result<Seen> pick_committed(const Series& series, const std::string& version, const std::string& incarnation);
// The same; and where none is committed, one of which this host's scratch holds images. not_found says where the
// version is, and what can be done.
Result<Seen> pick_readable(const Series& series, const std::string& version, const std::string& incarnation);
bool in_scratch_only(const Seen& seen);  // sealed or partial
Result<Version> parse_version(const std::string& text);
bool asks_for_newest(const std::string& version);  // such a text: none, newest or latest
// Versions newer than the one that was picked, of the current lineage or perhaps of it, whose manifest can not be read: a restart of a whole job may take none of them.
std::vector<const Seen*> damaged_above(const Series& series, const Seen& picked);

}  // namespace cairn
