#include "model/contents.hpp"

#include <algorithm>
#include <map>

namespace cairn {

namespace {

// Ranges of one image, by where they begin; none touches another.
class Ranges {
  public:
    void add(std::uint64_t begin, std::uint64_t end) {
        auto next = ends_.upper_bound(begin);
        if (next != ends_.begin() && std::prev(next)->second >= begin) {
            --next;
            begin = next->first;
        }
        while (next != ends_.end() && next->first <= end) {
            end = std::max(end, next->second);
            next = ends_.erase(next);
        }
        ends_[begin] = end;
    }
    void take_away(std::uint64_t begin, std::uint64_t end) {
        auto next = ends_.upper_bound(begin);
        if (next != ends_.begin()) --next;
        while (next != ends_.end() && next->first < end) {
            const auto [has_begin, has_end] = *next;
            if (has_end <= begin) {
                ++next;
                continue;
            }
            next = ends_.erase(next);
            if (has_begin < begin) ends_[has_begin] = begin;
            if (has_end > end) ends_[end] = has_end;
        }
    }
    const std::map<std::uint64_t, std::uint64_t>& ends() const { return ends_; }

  private:
    std::map<std::uint64_t, std::uint64_t> ends_;
};

using Images = std::map<std::pair<NodeIndex, Rank>, Ranges>;

void add(Images& images, const std::vector<NodeSources>& nodes) {
    for (const NodeSources& node : nodes)
        for (const Source& source : node.sources)
            if (source.length > 0) images[{node.node, source.rank}].add(source.image_offset, source.image_offset + source.length);
}

void take_away(Images& images, const std::vector<NodeSources>& nodes) {
    for (const NodeSources& node : nodes)
        for (const Source& source : node.sources)
            if (source.length > 0) images[{node.node, source.rank}].take_away(source.image_offset, source.image_offset + source.length);
}

}  // namespace

std::vector<NodeSources> contents(const PartPlan& part, const std::vector<Moved>& moved) {
    Images images;
    std::map<NodeIndex, std::vector<Source>> by_node;
    for (const Share& share : part.shares) {
        add(images, share.nodes);
        for (const NodeSources& node : share.nodes)
            for (const Source& source : node.sources)
                if (source.length == 0) by_node[node.node].push_back(source);
    }
    for (const Moved& each : moved) {
        if (each.from_part == part.part) take_away(images, each.nodes);
        if (each.to_part == part.part) add(images, each.nodes);
    }
    for (const auto& [image, ranges] : images)
        for (const auto& [begin, end] : ranges.ends()) by_node[image.first].push_back({image.second, begin, end - begin});
    std::vector<NodeSources> nodes;
    for (auto& [node, sources] : by_node) {
        std::sort(sources.begin(), sources.end(), [](const Source& a, const Source& b) { return std::pair(a.rank, a.image_offset) < std::pair(b.rank, b.image_offset); });
        nodes.push_back({node, std::move(sources)});
    }
    return nodes;
}

}  // namespace cairn
