// What `cairn extract` takes out of a version, and where to: runs of images, slices of arrays, and the trees that some of the runs are files of.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/console.hpp"
#include "cli/extract_trees.hpp"
#include "read/alone.hpp"
#include "read/array_slice.hpp"

namespace cairn::cli {

inline constexpr std::size_t no_tree = static_cast<std::size_t>(-1);

// A run of one image, or a slice of it, that becomes one output.
struct Wanted {
    Rank rank = 0;
    std::string region;  // "": the whole image
    ImageRange range;
    std::string path;  // "-": standard output
    std::size_t tree = no_tree, entry = 0;  // whose file it is, which
    std::optional<ArraySlice> slice = {};   // of the array that the range is; none: all of it
    std::uint64_t bytes() const { return slice ? slice->bytes() : range.length; }
};

// What is to be written: runs, and the trees that some of them are files of.
struct Output {
    std::vector<Wanted> runs;
    std::vector<Tree> trees;
    std::string folder;  // of the trees
};

// Order: all of it in one pass over the parts; then files appear, all or none. What can not be restored of trees is told. The trees are used up. `cost`: what was read for files, not for a stream, of a version that is read from parts, is added.
Status extract(Console& console, Place& place, const VersionCopies& copies, Output& output, bool replace, ReadCost& cost);

}  // namespace cairn::cli
