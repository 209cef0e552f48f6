// Bases: what bytes of an older version a run is decoded with. Of this room alone.
//
// A run with a base is decoded with the raw bytes that its pieces have in the images of the base: so which runs and parts hold them there is the base's matter, whose bytes are read and verified as
// those of any version. A base has no base, so no more than two versions are ever read.
#pragma once

#include <set>

#include "copies/shared_bases.hpp"

namespace cairn {

// Whether this Cairn decodes the run with images of an older version.
bool has_known_base(const Footer& footer, const StoredRun& run);

// Opens the manifests and footers of the bases that runs of these ranks need (null: of all ranks). One that can not be opened is told by the runs that need it when they are read, and costs no others.
Task<void> open_bases(World& world, Layout layout, OpenVersion& version, const std::set<Rank>* ranks, RestoreSettings settings);

// The reads that give what a run needs of its base.
struct BaseReads {
    ReadSource* from = nullptr;  // null: it has none
    std::vector<PartRead> reads;
};
// Reads of up to a buffer, and of encoded runs. Not ok: what is wrong with the base or the run, naming the base.
Result<BaseReads> plan_base(Reading& r, const PartRead& read, std::uint64_t buffer_bytes);
// What a reader's buffer has at least, so that bases can be read into it.
std::uint64_t buffer_bytes_of_bases(const ReadSource& of);

// Before anything is read: which runs of bases the ranks of a node read for each other, where they do.
void share_bases(Reading& r, std::uint64_t buffer_bytes);

// Of the run: what is wrong with it, or with its base. Else this machine's trouble.
struct RunOutcome {
    Status status;
    bool is_of_the_run = false;
};
// `buffer`: as it was planned for; it is free again afterwards. `into`: as long as the run is raw; without it the base is only verified, as far as `r` verifies.
Task<RunOutcome> read_base(Reading& r, const PartRead& of, BaseReads base, BufferPtr buffer, std::optional<Slice> into);

// One run of a base that other ranks of the node need, too (reading.cpp). ok, or what `bad` made of it.
Task<Status> read_base_run(Reading& r, const PartRead& read, SharedBases& shared, SharedBases::Next next, BufferPtr buffer);

}  // namespace cairn
