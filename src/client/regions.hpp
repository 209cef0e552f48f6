// Regions: what the application protects, and how that becomes the layout of an image.
//
// Layout: regions in the order of protection, each at a multiple of 64 bytes (whole cache lines for the copy), files at
// a multiple of a page. Gaps are zero.
#pragma once

#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.hpp"
#include "cairn/cairn.h"
#include "client/memory_map.hpp"
#include "model/types.hpp"

namespace cairn {

inline constexpr std::uint64_t memory_align_bytes = 64;  // where memory begins in an image: whole cache lines for the copy

struct ProtectedRegion {
    std::string name;
    RegionKind kind = RegionKind::memory;

    // memory
    void* data = nullptr;
    DataType type = DataType::bytes;
    std::vector<std::uint64_t> shape;
    std::vector<std::uint64_t> global_shape, global_offset;  // of a block of an array of all ranks; else empty
    std::uint64_t bytes = 0;

    // callback
    cairn_size_function size = nullptr;
    cairn_serialise_function serialise = nullptr;
    cairn_deserialise_function deserialise = nullptr;
    void* context = nullptr;

    // file
    std::string path;  // absolute

    std::vector<DescribedArray> described;  // what the application says lies in it; of a region of bytes
};

class RegionTable {
  public:
    RegionTable() = default;
    RegionTable(const RegionTable&) = delete;  // by_name_ points into regions_
    Status add_memory(const char* name, void* data, int type, std::uint32_t ndim, const std::uint64_t* shape);
    // A block of an array that all ranks have together.
    Status add_block(const char* name, void* data, int type, std::uint32_t ndim, const std::uint64_t* shape, const std::uint64_t* global_shape,
                     const std::uint64_t* global_offset);
    Status add_callbacks(const char* name, cairn_size_function size, cairn_serialise_function serialise,
                         cairn_deserialise_function deserialise, void* context);
    Status add_file(const char* name, const char* path);
    Status remove(const char* name);
    // Of a region of bytes: at `offset` of it lies an array. `type` as in cairn_describe; `array` is its name, and may be null.
    Status describe(const char* name, std::uint64_t offset, int type, std::uint32_t ndim, const std::uint64_t* shape, const char* array);

    const ProtectedRegion* find(std::string_view name) const;
    const std::list<ProtectedRegion>& all() const noexcept { return regions_; }  // in order of protection

    // Asks callbacks and files for their sizes. Every memory region is readable, or the error names the one that is
    // not. `is_dense`: memory begins on a multiple of its numbers' size, and not of 64 bytes, so that little or nothing lies between two arrays.
    Result<std::vector<Region>> lay_out(const MemoryMap& map, bool is_dense, std::uint64_t& image_bytes) const;

  private:
    Status check_new(const char* name) const;
    Result<ProtectedRegion> make_memory(const char* name, void* data, int type, std::uint32_t ndim, const std::uint64_t* shape) const;
    void add(ProtectedRegion region);

    std::list<ProtectedRegion> regions_;
    std::unordered_map<std::string_view, std::list<ProtectedRegion>::iterator> by_name_;  // of names in regions_
};

// Whether what a version holds fits where it should go: same kind of region, type, shape. The error says what is there
// and what is protected.
Status check_fits(const ProtectedRegion& wanted, const Region& kept);

}  // namespace cairn
