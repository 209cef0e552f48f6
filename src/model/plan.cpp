// Groups, election (fgcs24, Algorithm 1) and the division of images into parts.
#include "model/plan.hpp"

#include <algorithm>

#include "base/status.hpp"

namespace cairn {

std::uint64_t node_bytes(const NodeImages& node) {
    std::uint64_t sum = 0;
    for (const ImageInfo& image : node.images) sum += image.bytes;
    return sum;
}

std::uint32_t group_of(NodeIndex node, std::uint32_t nodes, std::uint32_t files) {
    return static_cast<std::uint32_t>(std::uint64_t{node} * files / nodes);
}

NodeIndex elect(const std::vector<NodeImages>& nodes, const std::vector<NodeIndex>& group) {
    CAIRN_CHECK(!group.empty());
    return *std::max_element(group.begin(), group.end(), [&](NodeIndex a, NodeIndex b) {
        const auto bytes_a = node_bytes(nodes[a]), bytes_b = node_bytes(nodes[b]);
        return bytes_a != bytes_b ? bytes_a < bytes_b : a > b;
    });
}

namespace {

NodeSources whole_node(const NodeImages& node) {
    NodeSources result{node.node, {}};
    for (const ImageInfo& image : node.images) result.sources.push_back({image.rank, 0, image.bytes});
    return result;
}

// Cuts one node's images, laid end to end in blocks, into `count` runs of nearly equal numbers of blocks. An image of no bytes goes
// into the run that is open when it comes, so that every rank has its place.
std::vector<NodeSources> cut(const NodeImages& node, std::uint32_t count, std::uint64_t block_bytes) {
    std::uint64_t blocks = 0;
    for (const ImageInfo& image : node.images) blocks += div_up(image.bytes, block_bytes);
    std::vector<NodeSources> runs(count, NodeSources{node.node, {}});
    std::uint64_t before = 0;  // blocks already given out
    std::uint32_t run = 0;
    const auto end_of = [&](std::uint32_t r) { return blocks * (r + 1) / count; };
    for (const ImageInfo& image : node.images) {
        if (image.bytes == 0) runs[run].sources.push_back({image.rank, 0, 0});
        for (std::uint64_t offset = 0; offset < image.bytes;) {
            while (before == end_of(run)) ++run;
            const std::uint64_t room = (end_of(run) - before) * block_bytes;
            const std::uint64_t length = std::min(room, image.bytes - offset);
            runs[run].sources.push_back({image.rank, offset, length});
            offset += length;
            before += div_up(length, block_bytes);
        }
    }
    return runs;
}

}  // namespace

std::vector<PartPlan> make_plan(const std::vector<NodeImages>& nodes, std::uint32_t files, std::uint64_t block_bytes) {
    const auto count = static_cast<std::uint32_t>(nodes.size());
    CAIRN_CHECK(count > 0 && files > 0);
    std::vector<PartPlan> plan(files);
    for (std::uint32_t part = 0; part < files; ++part) plan[part].part = part;
    if (files <= count) {
        std::vector<std::vector<NodeIndex>> groups(files);
        for (NodeIndex node = 0; node < count; ++node) groups[group_of(node, count, files)].push_back(node);
        for (std::uint32_t part = 0; part < files; ++part) {
            plan[part].leader = elect(nodes, groups[part]);
            for (NodeIndex node : groups[part]) plan[part].nodes.push_back(whole_node(nodes[node]));
        }
        return plan;
    }
    for (std::uint32_t first = 0; first < files;) {
        const auto leader = static_cast<NodeIndex>(std::uint64_t{first} * count / files);
        std::uint32_t last = first;
        while (last < files && std::uint64_t{last} * count / files == leader) ++last;
        std::vector<NodeSources> runs = cut(nodes[leader], last - first, block_bytes);
        for (std::uint32_t part = first; part < last; ++part) {
            plan[part].leader = leader;
            plan[part].nodes.push_back(std::move(runs[part - first]));
        }
        first = last;
    }
    return plan;
}

std::uint64_t chunk_bytes(std::uint64_t buffer_bytes, std::uint64_t block_bytes, std::uint64_t part_bytes, std::uint32_t writers) {
    const std::uint64_t share = round_up(std::max<std::uint64_t>(1, part_bytes / (4ull * std::max(1u, writers))), block_bytes);
    return std::min(buffer_bytes / block_bytes * block_bytes, std::max(block_bytes, share));
}

}  // namespace cairn
