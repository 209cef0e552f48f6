// Handing out: ranges by offset, and beside each how far any before it reaches, so that the first that a run can touch is found by halving.
#include "read/hand_out.hpp"

#include <algorithm>

namespace cairn {

void HandOut::add(Rank rank, ImageRange range, Receiver receiver) {
    if (range.length == 0) return;  // it has all its bytes
    by_rank_[rank].push_back({range, 0, 0, std::move(receiver)});
    sorted_ = false;
}

void HandOut::sort() {
    for (auto& [rank, all] : by_rank_) {
        std::stable_sort(all.begin(), all.end(), [](const Waiting& a, const Waiting& b) { return a.range.offset < b.range.offset; });
        std::uint64_t ends_at_most = 0;
        for (Waiting& each : all) each.ends_at_most = ends_at_most = std::max(ends_at_most, each.range.offset + each.range.length);
    }
    sorted_ = true;
}

Status HandOut::take(Rank rank, std::uint64_t image_offset, const Slice& data) {
    if (!sorted_) sort();
    const auto found = by_rank_.find(rank);
    if (found == by_rank_.end()) return {};
    std::vector<Waiting>& all = found->second;
    const std::uint64_t run_end = image_offset + data.length;
    auto each = std::partition_point(all.begin(), all.end(), [&](const Waiting& w) { return w.ends_at_most <= image_offset; });
    for (; each != all.end() && each->range.offset < run_end; ++each) {
        ++looked_at_;
        const std::uint64_t begin = std::max(image_offset, each->range.offset);
        const std::uint64_t end = std::min(run_end, each->range.offset + each->range.length);
        if (begin >= end) continue;
        each->taken_bytes += end - begin;
        TRY(each->receiver(begin - each->range.offset, data.part(begin - image_offset, end - begin)));
    }
    return {};
}

std::vector<WantedImage> HandOut::wanted() const {
    std::vector<WantedImage> wanted;
    for (const auto& [rank, all] : by_rank_) {
        WantedImage& image = wanted.emplace_back(WantedImage{rank, {}});
        for (const Waiting& each : all) image.ranges.push_back(each.range);
    }
    return wanted;
}

Status HandOut::check_complete() const {
    for (const auto& [rank, all] : by_rank_)
        for (const Waiting& each : all)
            if (each.taken_bytes != each.range.length)
                return {Code::internal, "of " + std::to_string(each.range.length) + " bytes from " + std::to_string(each.range.offset) + " of the image of rank " +
                                            std::to_string(rank) + " " + std::to_string(each.taken_bytes) + " were handed out"};
    return {};
}

}  // namespace cairn
