// Ranges become increasing runs with gaps between them; the last run that begins before a block's end is the only one that can touch it.
#include "copies/wanted.hpp"

#include <algorithm>

namespace cairn {

Wanted::Wanted(std::vector<ImageRange> ranges) : all_(ranges.empty()) {
    std::sort(ranges.begin(), ranges.end(), [](const ImageRange& a, const ImageRange& b) { return a.offset < b.offset; });
    for (const ImageRange& range : ranges) {
        if (range.length == 0) continue;
        if (runs_.empty() || runs_.back().offset + runs_.back().length < range.offset) {
            runs_.push_back(range);
            continue;
        }
        ImageRange& last = runs_.back();
        last.length = std::max(last.offset + last.length, range.offset + range.length) - last.offset;
    }
}

bool Wanted::touches(std::uint64_t offset, std::uint64_t length) const {
    if (all_) return true;
    const auto after = std::partition_point(runs_.begin(), runs_.end(), [&](const ImageRange& run) { return run.offset < offset + length; });
    return after != runs_.begin() && offset < std::prev(after)->offset + std::prev(after)->length;
}

std::vector<ImageRange> Wanted::blocks_in(std::uint64_t offset, std::uint64_t length, std::uint64_t block_bytes) const {
    if (all_) return {{offset, length}};
    const std::uint64_t limit = offset + length;
    auto run = std::partition_point(runs_.begin(), runs_.end(), [&](const ImageRange& each) { return each.offset + each.length <= offset; });
    std::vector<ImageRange> found;
    for (; run != runs_.end() && run->offset < limit; ++run) {
        const std::uint64_t first = run->offset <= offset ? offset : offset + (run->offset - offset) / block_bytes * block_bytes;
        const std::uint64_t last = std::min(run->offset + run->length, limit) - offset;
        const std::uint64_t end = std::min(limit, offset + (last + block_bytes - 1) / block_bytes * block_bytes);
        if (!found.empty() && found.back().offset + found.back().length >= first) found.back().length = end - found.back().offset;
        else found.push_back({first, end - first});
    }
    return found;
}

}  // namespace cairn
