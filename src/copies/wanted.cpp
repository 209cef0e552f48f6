// Ranges become increasing runs with gaps between them; the last run that begins before a unit's end is the only one that can touch it.
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

std::vector<ImageRange> Wanted::units_in(const Units& units, std::uint64_t length, std::uint64_t bytes_max) const {
    const std::uint64_t offset = units.offset, limit = offset + length, block = units.block_bytes;
    const std::vector<std::uint64_t> ends = unit_ends(units, length);
    std::vector<ImageRange> found;
    const auto add = [&](std::uint64_t begin, std::uint64_t end) {  // of the run, and units begin and end there
        if (!found.empty() && found.back().offset + found.back().length >= offset + begin) found.back().length = offset + end - found.back().offset;
        else found.push_back({offset + begin, end - begin});
    };
    if (all_ && length > 0) add(0, length);
    auto run = std::partition_point(runs_.begin(), runs_.end(), [&](const ImageRange& each) { return each.offset + each.length <= offset; });
    for (; run != runs_.end() && run->offset < limit; ++run) {
        const std::uint64_t from = run->offset <= offset ? 0 : run->offset - offset, to = std::min(run->offset + run->length, limit) - offset;
        const auto first = std::upper_bound(ends.begin(), ends.end(), from);
        add(first == ends.begin() ? 0 : *std::prev(first), *std::lower_bound(first, ends.end(), to));
    }
    std::vector<ImageRange> cut;
    for (const ImageRange& each : found)
        for (std::uint64_t at = each.offset, end = at + each.length; at < end; at += cut.back().length)
            cut.push_back({at, std::min(at / block * block + bytes_max, end) - at});
    return cut;
}

}  // namespace cairn
