// Which arrays are alike: the same variable of several ranks, groups or files. mcrEngine (SC12, Section III-A) calls arrays similar whose names and types match; names that carry
// a number, as those of grids and layers do, never match between ranks, so numbers count as one sign: by default those in the groups above a variable. Groups end in "/", or in "." where names are
// Python's.
#pragma once

#include <string>

#include "describe/extent.hpp"

namespace cairn {

// "Grid#/Density f64": group/variable, datatype and byte order. Never empty.
std::string similarity_key(const Extent& extent, NameRule rule);
// The same as a number, never 0; two keys with the same number are taken for one, which costs room and no bit.
std::uint32_t similarity_number(const Extent& extent, NameRule rule);

}  // namespace cairn
