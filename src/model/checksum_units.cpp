#include "model/checksum_units.hpp"

#include <algorithm>

#include "base/bytes.hpp"

namespace cairn {

std::vector<std::uint64_t> unit_ends(const Units& units, std::uint64_t length) {
    std::vector<std::uint64_t> ends;
    const std::uint64_t begin = units.offset, end = begin + length, block = units.block_bytes;
    ends.reserve(length / block + units.cuts.size() + 2);
    auto cut = std::upper_bound(units.cuts.begin(), units.cuts.end(), begin);
    for (std::uint64_t at = begin; at < end;) {
        at = std::min(at / block * block + block, end);
        while (cut != units.cuts.end() && *cut < at) ends.push_back(*cut++ - begin);
        while (cut != units.cuts.end() && *cut == at) ++cut;
        ends.push_back(at - begin);
    }
    return ends;
}

std::uint64_t unit_count(std::uint64_t block_bytes, std::uint64_t offset, const std::vector<std::uint64_t>& cuts, std::uint64_t length) {
    if (length == 0) return 0;
    const std::uint64_t end = offset + length, blocks = div_up(end, block_bytes) - offset / block_bytes;
    const auto first = std::upper_bound(cuts.begin(), cuts.end(), offset);
    return blocks + static_cast<std::uint64_t>(std::lower_bound(first, cuts.end(), end) - first);
}

std::vector<std::uint64_t> cuts_within(const std::vector<std::uint64_t>& cuts, std::uint64_t offset, std::uint64_t length) {
    return {std::upper_bound(cuts.begin(), cuts.end(), offset), std::lower_bound(cuts.begin(), cuts.end(), offset + length)};
}

std::vector<std::uint64_t> cuts_of(const std::vector<Region>& regions, std::uint64_t image_bytes, std::uint64_t block_bytes) {
    std::vector<std::uint64_t> cuts;
    std::uint64_t last = 0;  // where the unit begins that the next cut ends, but for the ends of blocks
    const auto cut = [&](std::uint64_t at) {
        if (at > last && at < image_bytes && at % block_bytes != 0) cuts.push_back(at);
        last = std::max(last, at);
    };
    for (const Region& region : regions) {
        const bool alone = region.length >= unit_bytes_min;
        if (alone || region.offset >= last + unit_bytes_min) cut(region.offset);
        if (alone) cut(region.offset + region.length);
    }
    return cuts;
}

bool cuts_valid(const std::vector<std::uint64_t>& cuts, std::uint64_t offset, std::uint64_t bytes, std::uint64_t block_bytes) {
    std::uint64_t before = offset;
    for (const std::uint64_t cut : cuts) {
        if (cut <= before || cut - offset >= bytes || cut % block_bytes == 0) return false;
        before = cut;
    }
    return true;
}

void append_cuts(std::vector<std::uint64_t>& cuts, std::uint64_t meeting, const std::vector<std::uint64_t>& more, std::uint64_t block_bytes) {
    if (meeting % block_bytes != 0) cuts.push_back(meeting);
    cuts.insert(cuts.end(), more.begin(), more.end());
}

}  // namespace cairn
