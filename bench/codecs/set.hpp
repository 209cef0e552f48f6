// A set of checkpoints: the files of a folder, by process, with what they say of themselves.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codecs/merging.hpp"
#include "codecs/pipelines.hpp"
#include "describe/extent.hpp"

namespace cairn::bench {

struct SetFile {
    std::string name;  // below the folder
    std::uint32_t rank = 0;
    Bytes bytes;
    std::vector<Extent> extents;
    std::vector<std::uint32_t> keys;   // of each extent, an index of Set::keys
    std::vector<NumberArray> numbers;  // for Cairn's codecs
};
struct Set {
    std::string name;
    std::vector<std::string> keys;
    std::vector<SetFile> files;  // by rank, then by name
    std::uint32_t ranks = 0;
    std::uint64_t bytes() const;
};

// The number in which the names of most files differ is their rank; what has another name is rank 0's, as what one process writes for all. Throws std::runtime_error where a folder can not be read.
Set read_set(const std::string& folder);

// The files of ranks first to last, merged; `views` looks into `bytes`.
struct MergedSet {
    Layout layout;
    std::vector<StreamPlan> plan;
    std::vector<ByteView> files;
    Bytes bytes;
    Merged views;
    std::vector<std::uint64_t> stream_bytes;
    double merge_s = 0;  // of the processor: to copy, into memory that is there
};
Layout layout_of(const Set& set, std::uint32_t first, std::uint32_t last, Scheme scheme, std::uint64_t block_bytes, bool is_padded);
MergedSet merge(const Set& set, std::uint32_t first, std::uint32_t last, const Layout& layout);

double processor_seconds();  // of this thread

}  // namespace cairn::bench
