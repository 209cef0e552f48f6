// The region index: what an image's regions are, as the last bytes of the image itself. It travels, is checksummed and is stored as the image is, so that no message
// and no footer grows with the number of regions. It is a tree of pages by name, so that one region out of very many is found by reading three of them.
//
// Order: pages of regions, then the pages above them, level by level; the topmost is the last. Behind it lie 32 bytes that say where it is.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/status.hpp"
#include "model/types.hpp"

namespace cairn {

inline constexpr std::uint64_t region_index_align = 64;              // where one begins in its image
inline constexpr std::uint64_t region_index_end_bytes = 32;
inline constexpr std::uint64_t region_page_bytes = 16ull << 10;      // of regions, about; one region more than that is a page of its own
inline constexpr std::uint64_t directory_page_bytes = 64ull << 10;   // of pages above, at most
inline constexpr int region_index_levels_max = 16;                    // each has at least a hundred times the pages of the one above it
// Read from the end of an index, so many bytes have its end and its topmost page.
inline constexpr std::uint64_t region_index_first_read_bytes = directory_page_bytes + region_index_end_bytes;

// A page, in the index; both are multiples of 8.
struct IndexPage {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    bool operator==(const IndexPage&) const = default;
};

struct RegionIndex {
    Bytes bytes;                   // a multiple of 8; empty where there are no regions
    std::vector<IndexPage> pages;  // front to back; the end of the index belongs to the last
};
RegionIndex encode_region_index(const std::vector<Region>& regions);

struct IndexRoot {
    IndexPage page;
    std::uint64_t regions = 0;  // how many there are
};
// Of the last 32 bytes of an index.
Result<IndexRoot> decode_region_index_end(ByteView end, std::uint64_t index_bytes);

// What a page knows of a name: the region, or the page below that would know it, or neither when the image has none of that name.
struct InPage {
    std::optional<Region> region;
    std::optional<IndexPage> below;
};
// `at`: where the page lies; those below it lie before it. `data_bytes`: of the image before its index, which regions do not leave.
Result<InPage> find_in_page(ByteView page, const IndexPage& at, std::string_view name, std::uint64_t data_bytes);

// All regions, as they lie in the image.
Result<std::vector<Region>> decode_region_index(ByteView index, std::uint64_t data_bytes);

}  // namespace cairn
