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

}  // namespace cairn
