// Units: the runs of an image that have a checksum of their own. An image is cut at multiples of the block size, so that no unit is larger than a block, and where
// its regions begin and end, so that one region can be verified without a byte of another. Regions that are tiny stay together, since each unit costs a checksum.
//
// Where a cut lies is decided once, before an image is read for the first time; from then on cuts travel with the checksums that they divide.
#pragma once

#include <cstdint>
#include <vector>

#include "model/types.hpp"

namespace cairn {

inline constexpr std::uint64_t unit_bytes_min = 4096;  // of a region that is cut from its neighbours

// How a run of an image's bytes is divided.
struct Units {
    std::uint64_t block_bytes = 0;
    std::uint64_t offset = 0;         // in the image, where the run begins
    std::vector<std::uint64_t> cuts;  // in the image, increasing; those outside the run count for nothing

    Units(std::uint64_t block) : block_bytes(block) {}  // a run that begins on a block, and has no cuts
    Units(std::uint64_t block, std::uint64_t begin, std::vector<std::uint64_t> c) : block_bytes(block), offset(begin), cuts(std::move(c)) {}
};

// Where the units of a run of `length` bytes end, from its beginning: increasing, and the last is `length`. None of an empty run.
std::vector<std::uint64_t> unit_ends(const Units& units, std::uint64_t length);
// How many there are of a run of cuts_valid() cuts; a search, however many cuts the image has.
std::uint64_t unit_count(std::uint64_t block_bytes, std::uint64_t offset, const std::vector<std::uint64_t>& cuts, std::uint64_t length);

// The cuts that lie within a run, neither at its beginning nor at its end.
std::vector<std::uint64_t> cuts_within(const std::vector<std::uint64_t>& cuts, std::uint64_t offset, std::uint64_t length);

// Where an image of these regions, which do not overlap and come by offset, is cut besides its blocks.
std::vector<std::uint64_t> cuts_of(const std::vector<Region>& regions, std::uint64_t image_bytes, std::uint64_t block_bytes);

// Whether cuts can be those of `bytes` bytes from `offset` on: increasing, within, and none where a block ends anyway.
bool cuts_valid(const std::vector<std::uint64_t>& cuts, std::uint64_t offset, std::uint64_t bytes, std::uint64_t block_bytes);

// Takes a run that goes on where another one ends: its cuts, and one where they meet, unless a block ends there.
void append_cuts(std::vector<std::uint64_t>& cuts, std::uint64_t meeting, const std::vector<std::uint64_t>& more, std::uint64_t block_bytes);

}  // namespace cairn
