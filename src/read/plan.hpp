// The plan of reads: which bytes of which copies, in which order, so that what is wanted of any set of ranks is had. A plain value; pure but for
// read_planned, which reads by it and verifies every block before anybody sees it.
#pragma once

#include "read/hand_out.hpp"
#include "read/version_copies.hpp"

namespace cairn {

// Whole blocks of an image in scratch.
struct SlotRead {
    Rank rank = 0;
    ImageRange run;
    bool operator==(const SlotRead&) const = default;
};

// First scratch, rank by rank, then the parts, each front to back and several by turns: each is passed over once, however many ranks are wanted.
struct ReadPlan {
    std::vector<SlotRead> slots;
    std::vector<PartRead> parts;
    std::uint64_t bytes() const;  // that are read: wanted ones, and what lies with them in their blocks
};

// Reads of up to a buffer. not_found and corrupt name a rank of which nothing is open, or not all.
Result<ReadPlan> plan_reads(const VersionCopies& copies, const std::vector<WantedImage>& wanted, std::uint64_t buffer_bytes);

// A plan for one rank in pieces that follow each other in its image, for who wants its bytes in their order: each is read by itself, and is of up to
// `piece_bytes` of the image, or of one read. With one EncodedRuns for all of them an encoded run of which several want something is decoded once, while there is room to keep it.
struct PlanPiece {
    ImageRange range;  // from its first byte to its last
    ReadPlan plan;
};
std::vector<PlanPiece> in_image_order(const VersionCopies& copies, ReadPlan plan, std::uint64_t piece_bytes);

// Order: verified runs are handed out as they come. The first failure ends it, and then what was handed out may not be all, but is right; of a slot it is worth nothing before
// check_settled says so, and without checksums (is_verifiable) nothing verifies it. internal where the plan left somebody without some of their bytes.
Task<Status> read_planned(World& world, Layout layout, const VersionCopies& copies, ReadPlan plan, HandOut& out, RestoreSettings settings, EncodedRuns* encoded = nullptr);

}  // namespace cairn
