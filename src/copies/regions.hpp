// Regions of images that are open, out of their region index: until somebody asks, an image says only how long its index is.
#pragma once

#include <map>
#include <vector>

#include "copies/restore.hpp"

namespace cairn {

// Bytes of one image, each unit verified.
Task<Result<Bytes>> read_range(World& world, Layout layout, const OpenVersion& version, Rank rank, ImageRange range, RestoreSettings settings);
Task<Result<Bytes>> read_range(World& world, const LocalImage& image, ImageRange range, RestoreSettings settings);

// Reads the whole index of each of these ranks, and puts what it says into ImageInfo::regions. Of a rank that is not open, or whose regions are there, nothing is done.
// `encoded`: of a reading that comes afterwards, for which runs are kept.
Task<Status> load_regions(World& world, Layout layout, OpenVersion& version, std::vector<Rank> ranks, RestoreSettings settings, EncodedRuns* encoded = nullptr);
Task<Status> load_regions(World& world, LocalImage& image, RestoreSettings settings);
// The same of all that are open, as far as it can be had; by rank, why it can not. What is damaged, or can not be read, keeps no other rank's from being known.
Task<std::map<Rank, Status>> load_what_can_be(World& world, Layout layout, OpenVersion& version, RestoreSettings settings);

// Where its index lies in an image.
inline ImageRange index_range(const ImageInfo& image) { return {image.bytes - image.index_bytes, image.index_bytes}; }

}  // namespace cairn
