// Lineage: which versions of a series belong together, and whether that can be told where records are damaged. Pure.
//
// A record of an open says two things. EPOCH.open: who took the epoch. EPOCH.from: that it went on from a version, and which. Manifests and images of an
// incarnation say both, too. So a damaged record matters only where it is the only one that would say it, which is of an incarnation that went back (it
// has a .from) and of which nothing is left that tells its parent:
//
//  - its epoch is above all others that count: it may be the newest one, and what a restart would take can not be told (Lineage::head);
//  - the chain of parents comes to it, or may: older versions than those of the links can not be told (Lineage::tail).
//
// All else is passed over: a damaged .open never decides anything by itself, for its epoch is its name, and who left nothing but an open leads nothing. A
// version directory that can not be listed may hold the only commit of an open that left nothing else (Lineage::hidden).
#pragma once

#include <string>
#include <vector>

#include "catalog/catalog.hpp"

namespace cairn {

// A run of versions that belong together: those of `incarnation` up to `version_max`.
struct LineageLink {
    Id128 incarnation;
    std::uint64_t epoch = 0;  // 0: not known
    Version version_max = 0;
};

// A version that is in scratch. Whole: every rank's image is; only then the version counts. Any image tells epoch and parent. Version 0: a roster, which
// tells a parent only if it has one.
struct SealedVersion {
    Id128 incarnation;
    std::uint64_t epoch = 0;
    Version version = 0;
    Parent parent;
    bool is_whole = true;
};

struct Lineage {
    // Newest incarnation first: the newest that committed, sealed or was restored from; then parents, each cut at the version that its child came from.
    // Where `head` is not ok, those that the readable records make.
    std::vector<LineageLink> links;
    Status head;                       // not ok: which incarnation is the newest one can not be told, and why; names record and command
    Status tail;                       // not ok: what the last link came from can not be told
    Status hidden;                     // not ok: a directory that can not be listed may hold a commit of an open newer than links.front()
    Version hidden_max = 0;            // the highest of these directories
    std::vector<Status> passed_over;   // records and directories that can not be read, all of them; each names the command

    bool is_certain() const { return head.ok() && tail.ok() && hidden.ok(); }
    // Whether `newest`, of the versions that can be had in it, is what a restart should take; 0: none can.
    Status doubt_of(Version newest) const;
    bool contains(Id128 incarnation, Version version) const;
};

// `own`: the incarnation of who asks, which has done nothing yet.
Lineage current_lineage(const LineageRecords& records, const std::vector<CatalogEntry>& entries, const std::vector<SealedVersion>& sealed, Id128 own = {});

// Whether an open after `epoch` went back behind a version of that epoch's incarnation, and on from there: superseded. Any other code: a record that can
// not be read may say so, and `entries` do not tell.
Status went_back_behind(const LineageRecords& records, const std::vector<CatalogEntry>& entries, const VersionKey& key, std::uint64_t epoch);

// What tells the incarnation of a record's epoch, and its parent, where the record does not (repair.hpp).
struct Told {
    Id128 incarnation;  // zero: nothing tells
    Parent parent;
    bool parent_told = false;
    std::uint32_t ranks = 0;
};
Told told_of(const LineageEntry& record, const std::vector<CatalogEntry>& entries, const std::vector<SealedVersion>& sealed);

}  // namespace cairn
