// Landing: units of an image that are read straight into memory of who wants them. Of this room alone.
#pragma once

#include <optional>
#include <span>

#include "copies/restore.hpp"

namespace cairn {

// Where the units of a run of an image go, which end at `ends` of it. Nothing: one of them has no memory of its own.
std::optional<std::vector<Destination>> destinations_of(const Receiving& to, Rank rank, std::uint64_t image_offset, const std::vector<std::uint64_t>& ends);

// Those whose checksums are others than expected; `at` is added to where they begin. `ends`: as unit_ends() has them.
std::vector<ImageRange> differing_units(const std::vector<std::uint64_t>& made, std::span<const std::uint64_t> expected, const std::vector<std::uint64_t>& ends, std::uint64_t at);

}  // namespace cairn
