// Tensor places: where each image lies in a part that is a safetensors file. The header of such a file comes first and says where every tensor is, so every place is fixed
// before a byte is written: by the sizes that are known at the election. Pure.
//
// Images lie whole, one after the other, each from a multiple of part_alignment on, behind a prefix that has room for the longest header that can be. What is between two
// images the header names, too (format/safetensors.hpp): such a file has no gaps.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "model/plan.hpp"

namespace cairn {

struct TensorPlaces {
    std::uint64_t prefix_bytes = 0;           // the header's; a multiple of part_alignment
    std::map<Rank, std::uint64_t> begins;     // of each image that has bytes, in the part
    std::uint64_t end = 0;                    // of the part: where its last image ends
    bool operator==(const TensorPlaces&) const = default;
};

// What comes before and behind the names of tensors in a header.
inline constexpr std::uint64_t tensors_frame_bytes = 64;
// Other programs read no longer header than this (huggingface/safetensors, tensor.rs, MAX_HEADER_SIZE).
inline constexpr std::uint64_t tensors_header_bytes_max = 100'000'000;

// Of a part that takes in these sources, each of them a whole image, in this order. `images` has them all.
TensorPlaces tensor_places(const std::vector<NodeSources>& nodes, const std::map<Rank, ImageInfo>& images);

}  // namespace cairn
