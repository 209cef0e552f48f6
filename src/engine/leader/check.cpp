#include "engine/leader/check.hpp"

#include <algorithm>
#include <map>

#include "base/units.hpp"

namespace cairn::engine {

namespace {

// Of sources, and of shares and addresses.
bool is_node(const Job& job, NodeIndex node) { return node < job.nodes(); }

bool are_nodes(const Job& job, const std::vector<NodeSources>& nodes) {
    return std::all_of(nodes.begin(), nodes.end(), [&](const NodeSources& each) { return is_node(job, each.node); });
}

bool are_nodes(const Job& job, const std::vector<message::NodeAddress>& addresses) {
    return std::all_of(addresses.begin(), addresses.end(), [&](const message::NodeAddress& each) { return is_node(job, each.node); });
}

// What lies behind the space that it was given with would be written over what another leader writes. Many long sources may add up to little (2^64).
bool fits(const message::Work& work, const SpacePolicy& space) {
    std::uint64_t left = work.bytes;
    for (const NodeSources& node : work.nodes)
        for (const Source& source : node.sources) {
            if (source.length > left) return false;
            left -= source.length;
        }
    return space_of(work.nodes, space) <= work.bytes;
}

Status refused(std::string what) { return {Code::internal, "asked for something that can not be: " + std::move(what)}; }

// A tensor lies where the header of its file says, which one leader knows of whole images only.
Status check_tensors(const PartPlan& part, std::map<Rank, ImageInfo> left) {
    if (part.shares.size() != 1) return refused("a safetensors file of several leaders");
    for (const NodeSources& node : part.shares.front().nodes)
        for (const Source& source : node.sources) {
            const auto image = left.find(source.rank);
            if (image == left.end() || source.image_offset != 0 || source.length != image->second.bytes) return refused("a safetensors file with something else than whole images, each once");
            left.erase(image);
        }
    return {};
}

}  // namespace

Status check_lead(const Job& job, const message::Lead& lead, std::uint64_t buffer_bytes, Placement placement) {
    if (lead.block_bytes > buffer_bytes)  // a node with ranks has said so when it was given an image
        return invalid_argument("blocks of " + format_bytes(lead.block_bytes) + " (flush.block_bytes) do not fit this daemon's buffers of " +
                                format_bytes(buffer_bytes) + " (flush.buffer_bytes when it was started, less where flush.memory_share says so)");
    if (lead.pack_bytes != 0 && placement != Placement::append)
        return invalid_argument("the coordinator plans with flush.placement = append, and this daemon has another: give all nodes the same");
    if (lead.pack_bytes > buffer_bytes)
        return invalid_argument("small images are packed into runs of " + format_bytes(lead.pack_bytes) + ", as the coordinator's flush.buffer_bytes is, and this daemon's buffers have " +
                                format_bytes(buffer_bytes) + ": give all nodes the same");
    if (!are_nodes(job, lead.addresses)) return refused("an address of a node that the job does not have");
    std::map<Rank, ImageInfo> images;
    for (const ImageInfo& image : lead.images) images.emplace(image.rank, image);
    for (const PartPlan& part : lead.parts) {
        bool is_ours = false;
        for (const Share& share : part.shares) {
            if (!is_node(job, share.leader) || !are_nodes(job, share.nodes)) return refused("data of a node that the job does not have");
            is_ours |= share.leader == job.self;
        }
        if (!is_ours) return refused("part " + std::to_string(part.part) + ", of which it has no share");
        if (job.roster->layout == FileLayout::tensors) TRY(check_tensors(part, images));
    }
    return {};
}

Status check_replacement(const Job& job, const message::Replace& replace, const SpacePolicy& space, const std::map<Rank, ImageInfo>& images) {
    if (!are_nodes(job, replace.addresses)) return refused("an address of a node that the job does not have");
    for (const PartPlan& part : replace.with) {
        const Share& share = part.shares.front();
        if (share.leader != job.self) return refused("part " + std::to_string(part.part) + ", of which it has no share");
        if (!are_nodes(job, share.nodes)) return refused("data of a node that the job does not have");
        if (job.roster->layout == FileLayout::tensors) TRY(check_tensors(part, images));
        if (space_of(share.nodes, space) > share.bytes) return refused("a part of " + format_bytes(share.bytes) + " with more data than that");
        for (const NodeSources& node : share.nodes)
            for (const Source& source : node.sources)
                if (source.image_offset % space.block_bytes != 0) return refused("a run of an image that does not start on a block");
    }
    return {};
}

Status check_work(const Job& job, const std::vector<message::Work>& work, const SpacePolicy& space) {
    for (const message::Work& each : work) {
        if (!are_nodes(job, each.nodes)) return refused("work with data of a node that the job does not have");
        if (!fits(each, space)) return refused("work for part " + std::to_string(each.part) + " that takes more than the " + format_bytes(each.bytes) + " that it is given with");
    }
    return {};
}

}  // namespace cairn::engine
