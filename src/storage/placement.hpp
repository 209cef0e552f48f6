// Placement: which storage target holds which part, below which root, and how many bytes each part gets, so that every target gets the
// same bytes whatever K is, and the same over the versions. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "world/placing.hpp"

namespace cairn {

struct PartShare {
    std::optional<std::uint32_t> target;  // an index; none where there are no targets
    std::uint64_t blocks = 0;             // how many of the version's blocks this part should hold
    bool operator==(const PartShare&) const = default;
};

// Shares `blocks` out over `parts` parts (1 and up) on `targets` targets (0: not known). One share a part, in order; the
// blocks add up exactly and each part is less than one block away from its ideal.
//  - No target: parts of equal size.
//  - parts >= targets: each target holds floor or ceil(parts / targets) parts and `blocks / targets`, less than a block
//    up or down, which its parts share equally: parts on a target with more of them are smaller.
//  - parts < targets: parts of equal size, each on a target of its own.
// `turn` goes up by one from version to version. The targets move on with it: over targets / gcd(parts, targets) turns
// every target has held equally many parts. The version's own number does not do where a job counts in steps of 100; and
// jobs that begin at different turns do not all begin with the same target.
std::vector<PartShare> share_parts(std::uint64_t blocks, std::uint32_t parts, std::uint32_t targets,
                                   std::uint64_t turn);

// How a file is laid over several targets of its file system.
struct Stripe {
    std::uint32_t count = 0;  // targets; 0: as the file system has it
    std::uint64_t bytes = 0;  // on one before the next; 0: as the file system has it
    bool operator==(const Stripe&) const = default;
};

// Of each of so many files of equal size, where there are fewer of them than targets, and a file can span several: the smallest number of stripes with which the fullest target gets at most a fiftieth more than
// the mean, or what comes nearest to it. At most `stripes_max`, and none shorter than `stripe_least`. Nothing where there are as many files as targets: then a file lies whole on its target.
Stripe spread(std::uint32_t files, std::uint32_t targets, std::uint64_t file_bytes);
constexpr std::uint32_t stripes_max = 160;  // what any Lustre can do
constexpr std::uint64_t stripe_least = 4 << 20;
// On which targets the stripes of a file lie whose own target is `first`: that one, and others all round in equal steps, so that the files of a version, whose own targets follow one another, fill all of them alike.
std::vector<std::uint32_t> stripe_targets(std::uint32_t first, std::uint32_t stripes, std::uint32_t targets);

// Below which root a part with this target lies, as a manifest numbers them (PartInfo::root): the roots besides persistent from 1 on; 0: persistent, unless
// the target is one of `roots`.
std::uint32_t root_of(const std::vector<std::string>& roots, const std::string& target);

// As many of the targets as have room each for its equal share of the bytes, those with most, in the order in which they came. All of them where no number of
// them has: what they say is not certain.
std::vector<std::string> with_room(const std::vector<TargetRoom>& targets, std::uint64_t bytes, std::uint32_t parts);

}  // namespace cairn
