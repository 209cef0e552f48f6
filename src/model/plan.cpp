// Groups, election (fgcs24, Algorithm 1) and the division of images into shares of parts.
#include "model/plan.hpp"

#include <algorithm>

#include "base/status.hpp"
#include "model/space.hpp"

namespace cairn {

std::uint64_t node_bytes(const NodeImages& node) {
    std::uint64_t sum = 0;
    for (const ImageInfo& image : node.images) sum += image.bytes;
    return sum;
}

std::uint64_t node_blocks(const NodeImages& node, std::uint64_t block_bytes) {
    std::uint64_t sum = 0;
    for (const ImageInfo& image : node.images) sum += div_up(image.bytes, block_bytes);
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

// A node's images laid end to end in blocks, handed out from the front.
class Supply {
  public:
    Supply(const NodeImages& node, std::uint64_t block_bytes) : node_(&node), block_bytes_(block_bytes), left_(node_blocks(node, block_bytes)) {}
    std::uint64_t left() const { return left_; }

    // Up to `blocks` blocks into a share. An image of no bytes goes along with what comes before or after it.
    std::uint64_t give(Share& share, std::uint64_t blocks) {
        std::uint64_t given = 0;
        std::vector<Source> sources;
        while (at_ < node_->images.size()) {
            const ImageInfo& image = node_->images[at_];
            const std::uint64_t length = std::min((blocks - given) * block_bytes_, image.bytes - offset_);
            if (length == 0 && image.bytes > 0) break;
            sources.push_back({image.rank, offset_, length});
            given += div_up(length, block_bytes_);
            offset_ += length;
            if (offset_ < image.bytes) break;
            ++at_;
            offset_ = 0;
        }
        left_ -= given;
        if (sources.empty()) return given;
        if (!share.nodes.empty() && share.nodes.back().node == node_->node)
            share.nodes.back().sources.insert(share.nodes.back().sources.end(), sources.begin(), sources.end());
        else share.nodes.push_back({node_->node, std::move(sources)});
        return given;
    }
    bool done() const { return at_ == node_->images.size(); }

  private:
    const NodeImages* node_;
    std::uint64_t block_bytes_;
    std::uint64_t left_;
    std::size_t at_ = 0;        // image
    std::uint64_t offset_ = 0;  // in it
};

// Who may lead: dedicated I/O nodes where there are any, of those that are fit. When nobody is, nodes with images: they have just said that
// they are there.
std::vector<NodeIndex> candidates(const std::vector<NodeImages>& nodes, const std::vector<NodeIndex>& unfit) {
    std::vector<NodeIndex> with, without;
    for (const NodeImages& node : nodes)
        if (std::find(unfit.begin(), unfit.end(), node.node) == unfit.end()) (node.images.empty() ? without : with).push_back(node.node);
    if (!without.empty()) return without;
    if (with.empty())
        for (const NodeImages& node : nodes)
            if (!node.images.empty()) with.push_back(node.node);
    return with;
}

std::vector<NodeIndex> elect_leaders(const std::vector<NodeImages>& nodes, std::uint32_t leaders, const std::vector<NodeIndex>& unfit) {
    const std::vector<NodeIndex> able = candidates(nodes, unfit);
    const auto count = static_cast<std::uint32_t>(able.size());
    std::vector<std::vector<NodeIndex>> groups(std::clamp(leaders, 1u, count));
    for (std::uint32_t i = 0; i < count; ++i) groups[group_of(i, count, static_cast<std::uint32_t>(groups.size()))].push_back(able[i]);
    std::vector<NodeIndex> result;
    for (const auto& group : groups) result.push_back(elect(nodes, group));
    return result;
}

std::vector<std::uint64_t> part_ends(const PlanOptions& options, std::uint64_t blocks) {
    std::vector<std::uint64_t> ends;
    for (std::uint64_t part = 0, end = 0; part < options.files; ++part) {
        end = options.part_blocks.empty() ? blocks * (part + 1) / options.files : end + options.part_blocks[part];
        ends.push_back(end);
    }
    CAIRN_CHECK(ends.back() == blocks);
    return ends;
}

// What each leader's range ends at when all nodes with data lead and keep their own; else empty.
std::vector<std::uint64_t> own_ends(const std::vector<NodeImages>& nodes, const std::vector<NodeIndex>& leaders, const PlanOptions& options) {
    std::vector<std::uint64_t> ends;
    std::uint64_t end = 0;
    if (!options.keep_own) return ends;
    for (const NodeImages& node : nodes) {
        if (node.images.empty()) continue;
        if (ends.size() == leaders.size() || leaders[ends.size()] != node.node) return {};
        ends.push_back(end += node_blocks(node, options.block_bytes));
    }
    return ends;
}

// Where each leader's range ends. One that would end a hair beside a part's end ends there: a sliver is not worth a second leader.
std::vector<std::uint64_t> leader_ends(const PlanOptions& options, const std::vector<std::uint64_t>& parts, const std::vector<std::uint64_t>& own,
                                       std::size_t leaders) {
    const std::uint64_t blocks = parts.back(), hair = std::max<std::uint64_t>(2, blocks / leaders / 64);
    std::vector<std::uint64_t> ends;
    for (std::size_t leader = 0; leader < leaders; ++leader) {
        std::uint64_t end = own.empty() ? blocks * (leader + 1) / leaders : own[leader];
        if (options.whole_parts) {
            end = parts[div_up(std::uint64_t{leader + 1} * options.files, leaders) - 1];
        } else {
            const auto above = std::lower_bound(parts.begin(), parts.end(), end);
            if (*above - end <= hair) end = *above;
            else if (above != parts.begin() && end - above[-1] <= hair) end = above[-1];
        }
        ends.push_back(std::max(end, ends.empty() ? 0 : ends.back()));
    }
    return ends;
}

// A share that waits for its blocks.
struct Room {
    std::size_t part, share, leader;  // leader: position among the leaders
    std::uint64_t blocks;
};

// Parts with their shares, still empty, along the line.
std::vector<Room> divide(std::vector<PartPlan>& plan, const std::vector<NodeImages>& nodes, const std::vector<NodeIndex>& leaders,
                         const PlanOptions& options, std::uint64_t blocks) {
    const std::vector<std::uint64_t> parts = part_ends(options, blocks);
    const std::vector<std::uint64_t> ends = leader_ends(options, parts, own_ends(nodes, leaders, options), leaders.size());
    std::vector<Room> rooms;
    std::size_t leader = 0;
    std::uint64_t at = 0;
    for (std::size_t part = 0; part < plan.size(); ++part) {
        plan[part].part = static_cast<std::uint32_t>(part);
        do {
            while (leader + 1 < leaders.size() && ends[leader] <= at) ++leader;
            const std::uint64_t end = leader + 1 < leaders.size() ? std::min(ends[leader], parts[part]) : parts[part];
            rooms.push_back({part, plan[part].shares.size(), leader, end - at});
            plan[part].shares.push_back({leaders[leader], 0, 0, {}});
            at = end;
        } while (at < parts[part]);
    }
    return rooms;
}

// Who writes what this node holds: itself where it may lead.
NodeIndex writer_of(NodeIndex node, const std::vector<NodeImages>& nodes, const std::vector<NodeIndex>& able) {
    if (std::find(able.begin(), able.end(), node) != able.end()) return node;
    return able[std::uint64_t{node} * able.size() / nodes.size()];
}

std::vector<Source> whole_images(const std::vector<ImageInfo>& images) {
    std::vector<Source> sources;
    for (const ImageInfo& image : images) sources.push_back({image.rank, 0, image.bytes});
    return sources;
}

// A file for each rank, or node: orcheck's processes and nodes. Of each node the files come one after the other, in the order in which its writer takes them.
std::vector<PartPlan> plan_of_owners(const std::vector<NodeImages>& nodes, const PlanOptions& options) {
    const std::vector<NodeIndex> able = candidates(nodes, options.unfit);
    std::vector<PartPlan> plan(options.files);
    std::uint32_t node_part = 0;
    const auto put = [&](std::uint32_t part, NodeIndex node, std::vector<Source> sources) {
        CAIRN_CHECK(part < options.files);
        Share share{writer_of(node, nodes, able), 0, 0, {{node, std::move(sources)}}};
        share.bytes = space_of(share.nodes, {options.block_bytes, options.pack_bytes});
        plan[part].part = part;
        plan[part].shares.push_back(std::move(share));
    };
    for (const NodeImages& node : nodes) {
        if (node.images.empty()) continue;
        if (options.layout == FileLayout::nodes) put(node_part++, node.node, whole_images(node.images));
        else
            for (const ImageInfo& image : node.images) put(image.rank, node.node, whole_images({image}));
    }
    for (const PartPlan& part : plan) CAIRN_CHECK(part.shares.size() == 1);
    return plan;
}

// So many safetensors files, of whole images in the order of the nodes: as even in bytes as images allow, and each with one image at least. The node that holds most of one leads it.
std::vector<PartPlan> plan_of_tensors(const std::vector<NodeImages>& nodes, const PlanOptions& options) {
    const std::vector<NodeIndex> able = candidates(nodes, options.unfit);
    std::uint64_t left_bytes = 0;
    std::size_t left_images = 0;
    for (const NodeImages& node : nodes) left_bytes += node_bytes(node), left_images += node.images.size();
    std::vector<PartPlan> plan(options.files);
    std::vector<NodeSources> sources;
    std::uint32_t part = 0;
    std::uint64_t bytes = 0;
    const auto close_part = [&] {
        std::vector<NodeImages> held;  // of this part, by node
        for (const NodeSources& node : sources) {
            held.push_back({node.node, {}});
            for (const Source& source : node.sources) held.back().images.push_back({source.rank, source.length});
        }
        const auto most = std::max_element(held.begin(), held.end(), [](const NodeImages& a, const NodeImages& b) { return node_bytes(a) < node_bytes(b); });
        Share share{writer_of(most->node, nodes, able), 0, 0, std::move(sources)};
        share.bytes = space_of(share.nodes, {part_alignment, 0});  // each from a page on
        plan[part].part = part;
        plan[part++].shares.push_back(std::move(share));
        sources.clear();
        left_bytes -= std::exchange(bytes, 0);
    };
    for (const NodeImages& node : nodes)
        for (const ImageInfo& image : node.images) {
            const std::uint32_t parts_after = options.files - part - 1;
            const bool is_far = bytes + image.bytes / 2 > left_bytes / (parts_after + 1);  // with this image it would be farther from its share of what is left than without
            if (!sources.empty() && parts_after > 0 && (is_far || left_images == parts_after)) close_part();
            if (sources.empty() || sources.back().node != node.node) sources.push_back({node.node, {}});
            sources.back().sources.push_back({image.rank, 0, image.bytes});
            bytes += image.bytes;
            --left_images;
        }
    close_part();
    CAIRN_CHECK(part == options.files);
    return plan;
}

}  // namespace

NodeIndex owner_of(const PartPlan& part) {
    const std::vector<NodeSources>& holders = part.shares.front().nodes;
    return holders.front().node;
}

std::uint32_t leaders_max(const std::vector<NodeImages>& nodes, const std::vector<NodeIndex>& unfit) {
    return static_cast<std::uint32_t>(candidates(nodes, unfit).size());
}

std::vector<PartPlan> make_plan(const std::vector<NodeImages>& nodes, const PlanOptions& options) {
    CAIRN_CHECK(leaders_max(nodes, {}) > 0 && options.files > 0 && options.block_bytes > 0);
    if (options.layout == FileLayout::tensors) return plan_of_tensors(nodes, options);
    if (options.layout != FileLayout::parts) return plan_of_owners(nodes, options);
    std::uint64_t blocks = 0;
    std::vector<Supply> supplies;
    for (const NodeImages& node : nodes) {
        supplies.emplace_back(node, options.block_bytes);
        blocks += supplies.back().left();
    }
    std::vector<PartPlan> plan(options.files);
    const std::vector<NodeIndex> leaders = elect_leaders(nodes, options.whole_parts ? std::min(options.leaders, options.files) : options.leaders, options.unfit);
    std::vector<Room> rooms = divide(plan, nodes, leaders, options, blocks);
    const auto fill = [&](Room& room, Supply& supply) { room.blocks -= supply.give(plan[room.part].shares[room.share], room.blocks); };
    // Leaders keep what is theirs: it needs no network.
    for (Room& room : rooms) fill(room, supplies[leaders[room.leader]]);
    // What is left of a node goes to its own group's leader, then to whoever has room; all before `open` are full.
    std::vector<std::size_t> first(leaders.size() + 1, rooms.size());
    for (std::size_t i = rooms.size(); i-- > 0;) first[rooms[i].leader] = i;
    for (NodeIndex node = 0; node < nodes.size(); ++node) {
        const std::size_t home = std::uint64_t{node} * leaders.size() / nodes.size();
        for (std::size_t i = first[home]; i < rooms.size() && rooms[i].leader == home && supplies[node].left() > 0; ++i)
            if (rooms[i].blocks > 0) fill(rooms[i], supplies[node]);
    }
    std::size_t open = 0;
    for (Supply& supply : supplies)
        while (!supply.done()) {
            while (open + 1 < rooms.size() && rooms[open].blocks == 0) ++open;
            CAIRN_CHECK(rooms[open].blocks > 0 || supply.left() == 0);
            fill(rooms[open], supply);  // images of no bytes may come when all is full: they have a place there
        }
    for (PartPlan& part : plan) {
        std::uint64_t offset = 0;
        for (Share& share : part.shares) {
            std::sort(share.nodes.begin(), share.nodes.end(), [](const NodeSources& a, const NodeSources& b) { return a.node < b.node; });
            share.offset = offset;
            share.bytes = space_of(share.nodes, {options.block_bytes, options.pack_bytes});
            offset += share.bytes;
        }
    }
    return plan;
}

std::uint64_t chunk_bytes(std::uint64_t buffer_bytes, std::uint64_t block_bytes, std::uint64_t share_bytes, std::uint32_t writers) {
    const std::uint64_t share = round_up(std::max<std::uint64_t>(1, share_bytes / (4ull * std::max(1u, writers))), block_bytes);
    return std::min(buffer_bytes / block_bytes * block_bytes, std::max(block_bytes, share));
}

}  // namespace cairn
