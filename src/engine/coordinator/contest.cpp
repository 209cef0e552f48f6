#include "engine/coordinator/contest.hpp"

#include <algorithm>

#include "base/units.hpp"
#include "engine/settings.hpp"
#include "format/names.hpp"
#include "format/part.hpp"
#include "model/tensor_places.hpp"

namespace cairn::engine {

namespace {

template <class Values, class Same>
bool contains(const Values& values, Same same) { return std::any_of(values.begin(), values.end(), same); }

// What the leader of a share must know of its sources: where they are.
void add_addresses(message::Lead& lead, const std::vector<NodeSources>& nodes, const AddressBook& addresses) {
    for (const NodeSources& node : nodes)
        if (!contains(lead.addresses, [&](const auto& a) { return a.node == node.node; })) lead.addresses.push_back({node.node, addresses.of(node.node)});
}

}  // namespace

bool says(const message::Progress& progress, std::uint32_t part) {
    return std::any_of(progress.parts.begin(), progress.parts.end(), [&](const message::PartProgress& each) { return each.part == part; });
}

std::vector<const PartInfo*> reported_parts(const Contest& contest, const Job& job) {
    std::map<std::string_view, const PartInfo*> by_file;
    for (const auto& [node, track] : contest.leaders)
        if (track.done)
            for (const PartInfo& part : track.done->parts) by_file[part.file] = &part;
    std::vector<const PartInfo*> parts(job.roster->files);
    for (const PartPlan& plan : contest.plan) {
        const auto found = by_file.find(part_file_name(job.part_name(plan, contest.attempt_id)));
        if (found != by_file.end()) parts[plan.number()] = found->second;
    }
    return parts;
}

bool awaits_replacement(const Contest& contest) {
    return std::any_of(contest.replaced.begin(), contest.replaced.end(), [&](const auto& each) {
        if (contest.leaders.at(contest.plan[each.first].first_leader()).done) return false;
        if (!each.second.with) return true;
        const PartPlan& with = each.second.with->with.front();
        return !contest.replaced.count(with.part) && !says(contest.leaders.at(with.first_leader()).progress, with.part);
    });
}

void make_leads(Contest& contest, const Job& job, const std::vector<NodeImages>& nodes) {
    std::map<NodeIndex, std::set<Rank>> known;  // whose images first leaders must know
    for (const PartPlan& part : contest.plan) {
        const NodeIndex first = part.first_leader();
        PartPlan all = part;
        for (Share& share : all.shares) {
            message::Lead& lead = contest.leaders[share.leader].lead;
            add_addresses(lead, share.nodes, job.addresses);
            for (const NodeSources& node : share.nodes)
                for (const Source& source : node.sources) known[first].insert(source.rank);
            if (share.leader == first) continue;
            lead.parts.push_back({part.part, part.target, part.sized_bytes, {part.shares.front(), share}});
            lead.parts.back().shares.front().nodes.clear();
            share.nodes.clear();
            add_addresses(lead, {{first, {}}}, job.addresses);
            add_addresses(contest.leaders[first].lead, {{share.leader, {}}}, job.addresses);
        }
        contest.leaders[first].lead.parts.push_back(std::move(all));
    }
    std::map<Rank, const ImageInfo*> images;
    for (const NodeImages& node : nodes)
        for (const ImageInfo& image : node.images) images[image.rank] = &image;
    for (const auto& [node, ranks] : known)
        for (Rank rank : ranks) contest.leaders[node].lead.images.push_back(*images.at(rank));
    for (auto& [node, track] : contest.leaders) {
        track.lead.attempt = contest.attempt;
        track.lead.attempt_id = contest.attempt_id;
        track.lead.parts_total = job.roster->files;
        track.lead.ranks_total = job.roster->ranks;
        track.lead.block_bytes = contest.block_bytes;
        track.lead.keep_own = contest.keep_own;
        track.lead.may_replace = contest.may_replace;
        track.lead.equal_pages = contest.equal_pages;
        track.lead.pack_bytes = contest.pack_bytes;
        track.lead.codec = contest.codec;
        track.lead.keys = contest.keys;
        track.lead.trial = contest.trial;
        track.lead.encode_at_follower = contest.encode_at_follower;
        track.lead.base = contest.base;
        track.lead.merge_ranks = contest.merge.ranks;
        track.lead.merge_bytes = contest.merge.turn_bytes;
        track.lead.trial_merge_ranks = contest.trial_merge.ranks;
        track.lead.trial_merge_bytes = contest.trial_merge.turn_bytes;
    }
}

namespace {
Status check_header(const TensorPlaces& places) {
    if (places.prefix_bytes - 8 <= tensors_header_bytes_max) return {};
    return {Code::unsupported, "names of tensors take up to " + format_bytes(places.prefix_bytes) + ", and the header of a safetensors file has at most " + format_bytes(tensors_header_bytes_max) +
                                   ": ask for more files (flush.files)"};
}
}  // namespace

Status check_sizes(const Contest& contest, const std::vector<NodeImages>& nodes, bool is_tensors) {
    std::map<Rank, const ImageInfo*> images;
    for (const NodeImages& node : nodes)
        for (const ImageInfo& image : node.images) images[image.rank] = &image;
    for (const PartPlan& part : contest.plan) {
        FooterCounts counts;
        std::map<Rank, ImageInfo> held;
        for (const Share& share : part.shares)
            for (const NodeSources& node : share.nodes)
                for (const Source& source : node.sources) {
                    counts.units += div_up(source.length, contest.block_bytes);
                    counts.pieces += contest.merge.ranks > 1 ? std::max<std::uint64_t>(1, div_up(source.length, contest.merge.turn_bytes)) : 1;
                    held.emplace(source.rank, *images.at(source.rank));
                    if (contest.equal_pages) counts.pieces += source.length / merged_run_bytes_max;
                }
        if (contest.equal_pages) counts.pieces += 2 * equal_pieces_max;  // each ends a run before it
        std::vector<ImageInfo> infos;
        if (is_tensors) TRY(check_header(tensor_places(part.shares.front().nodes, held)).within("part " + std::to_string(part.part)));
        for (auto& [rank, image] : held) {
            counts.units += image.cuts, counts.cuts += image.cuts;  // of an image of which others hold a part, too many
            infos.push_back(std::move(image));
        }
        TRY(check_part_size(counts, infos).within("part " + std::to_string(part.part)));
    }
    return {};
}

}  // namespace cairn::engine
