// The header of a part that is a safetensors file, and the index beside all of them (huggingface/safetensors, README, "Format"; the index as transformers writes it).
//
// A header is its own length (u64), then JSON, then blanks up to that length. Each region is a tensor, of its own name: other programs find it under that. Where several ranks
// of one part have a region of one name, "//rank3" is put behind each. What lies between two tensors (a few bytes, the region index, the way to the next image) is one, too,
// because the format has no gaps: "cairn//3.0" is the first such one of rank 3. No region's name has two slashes in a row, so nothing is ever named twice.
//
// Types that the format lacks: complex numbers are pairs, in one dimension more; what has none, and routed files, are U8.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "model/types.hpp"

namespace cairn {

// What regions, as they lie in an image, and what is between them take in a header at most, wherever the image lies and whichever others are beside it.
std::uint64_t tensors_naming_bytes(const std::vector<Region>& regions);

// An image in such a part.
struct TensorImage {
    Rank rank = 0;
    std::uint64_t begin = 0;      // in the data, that is behind the header
    std::uint64_t bytes = 0;
    std::vector<Region> regions;  // as they lie in the image
};

// `images` as they lie; `header_bytes`: the length of what is returned, all of it. internal: it needs more.
Result<Bytes> encode_safetensors_header(const std::vector<TensorImage>& images, std::uint64_t header_bytes);

// The bytes of a header that follow its first eight. corrupt: no length that a header can have.
Result<std::uint64_t> safetensors_header_length(ByteView first_eight);
// The names of the tensors in a header, of the regions alone, with how many bytes each has.
Result<std::vector<std::pair<std::string, std::uint64_t>>> decode_safetensors_names(ByteView json);

// The index of a version: in which file each tensor is, how many bytes all of them have, and whose it is.
Bytes encode_safetensors_index(const std::map<std::string, std::string>& file_of, std::uint64_t bytes, Id128 incarnation);
// Of its first bytes: whether that incarnation's version has it.
inline constexpr std::uint64_t safetensors_index_begin_bytes = 256;
bool is_index_of(ByteView begin, Id128 incarnation);

}  // namespace cairn
