// Dead images: what lies in a node's scratch, was never committed, and can not be needed any more. They go at once, or in the end they fill scratch.
//
// The rule (why_dead). The head of the series' current lineage decides (lineage.hpp), by the record of what it went on from. What an older open took
// and is in that lineage stays: it is committed by whoever holds it. Of what is above it, or beside it, one thing counts: whether the version was whole
// when the head's open asked the nodes that it runs on (FromRecord::whole); nobody else was asked, and nobody else counts. Not whole then, it is
// dead; whole, once the head has committed.
//
// What is in doubt stays: a lineage that is not certain (Lineage::is_certain), can not be listed, or does not reach the series' beginning; a head whose own
// record of what it went on from is damaged, though others tell the parent, or that did not look (an older release, or a repair wrote the record); a damaged
// manifest that might be a newer head's; a version directory that can not be listed; images that somebody has taken hold of to restore them.
//
// Whoever restores takes hold of images first, then looks at the lineage, then records where it goes on from, then lets go. So what was not held
// when a look began, and was not taken hold of since, is not what somebody chose whom the look did not see.
//
// Nothing need be told to anybody: every daemon reads the same records, when it starts, when a job of its node went on from somewhere or committed for
// the first time, and now and then. What is said of it is a reason to look sooner; lost, late or repeated it does no harm.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "catalog/lineage.hpp"

namespace cairn {

// Why an image that an open with this epoch took is dead; nothing while it may be needed, or is committed. Pure.
std::optional<std::string> why_dead(const LineageRecords& records, const std::vector<CatalogEntry>& entries, const VersionKey& key, std::uint64_t epoch);

// Removes what attempts at a dead version left under persistent, a tombstone first (removal.hpp). The tombstone stays: `cairn gc` lifts it when the
// job is over. Where nothing is left, or the version was committed after all, nothing is done.
Task<Status> clear_dead(World& world, Layout layout, Undecided dead, Nanos io_wait);

}  // namespace cairn
