#include "model/merging.hpp"

#include <algorithm>

namespace cairn {

MergePolicy fitting(std::uint32_t ranks, std::uint64_t turn_bytes, std::uint64_t run_bytes, std::uint64_t block_bytes) {
    const std::uint64_t blocks = run_bytes / block_bytes;
    const std::uint64_t images = std::min<std::uint64_t>({ranks, merge_ranks_most, blocks});
    if (images < 2) return {};
    const std::uint64_t turn_blocks = std::clamp<std::uint64_t>(div_up(std::min(turn_bytes, run_bytes), block_bytes), 1, blocks / images);
    return {static_cast<std::uint32_t>(images), turn_blocks * block_bytes, run_bytes};
}

MergePolicy as_chosen(std::uint32_t ranks, std::uint64_t turn_bytes, std::uint64_t run_bytes, std::uint64_t block_bytes) {
    const std::uint64_t turn = round_up(turn_bytes, block_bytes);
    const std::uint64_t images = turn == 0 ? 0 : std::min<std::uint64_t>({ranks, merge_ranks_most, run_bytes / turn});
    return images < 2 ? MergePolicy() : MergePolicy{static_cast<std::uint32_t>(images), turn, run_bytes};
}

std::vector<Pack> take_merged(NodeSources& node, const SpacePolicy& space, const MergePolicy& policy) {
    std::vector<Pack> groups;
    if (policy.ranks < 2 || space.pack_bytes == 0) return groups;
    const auto is_merged = [&](const Source& source) { return source.length > 0 && source.length >= space.pack_bytes / 2; };
    auto count = static_cast<std::uint64_t>(std::count_if(node.sources.begin(), node.sources.end(), is_merged));
    if (policy.ranks == 2) count -= count % 2;  // the last of an odd number is alone; of more than two together none is
    if (count < 2) return groups;
    groups.resize(div_up(count, policy.ranks));  // all of much the same size
    std::vector<Source> others;
    std::uint64_t taken = 0;
    for (const Source& source : node.sources) {
        if (taken == count || !is_merged(source)) others.push_back(source);
        else groups[taken++ * groups.size() / count].push_back({node.node, source});
    }
    node.sources = std::move(others);
    return groups;
}

namespace {

// Off the front of a source; behind what the run has of it, where that is its end so far.
void move_front(NodeSource& from, std::uint64_t bytes, Pack& run) {
    Source& source = from.source;
    Source* const before = run.empty() ? nullptr : &run.back().source;
    if (before && before->rank == source.rank && before->image_offset + before->length == source.image_offset) before->length += bytes;
    else run.push_back({from.node, {source.rank, source.image_offset, bytes}});
    source.image_offset += bytes;
    source.length -= bytes;
}

std::uint64_t round_bytes(const Pack& group, std::uint64_t turn_bytes) {
    std::uint64_t sum = 0;
    for (const NodeSource& each : group) sum += std::min(turn_bytes, each.source.length);
    return sum;
}

}  // namespace

Pack cut_run(Pack& group, const MergePolicy& policy, std::uint64_t bytes_max) {
    const std::uint64_t most = std::min(bytes_max, policy.run_bytes);
    Pack run;
    std::uint64_t bytes = 0;
    do {
        bytes += round_bytes(group, policy.turn_bytes);
        for (NodeSource& each : group) move_front(each, std::min(policy.turn_bytes, each.source.length), run);
        std::erase_if(group, [](const NodeSource& each) { return each.source.length == 0; });
    } while (group.size() > 1 && bytes + round_bytes(group, policy.turn_bytes) <= most);
    // A little that is left of one goes along: as a run of its own it would be a short one.
    if (group.size() == 1 && group.front().source.length <= std::min(policy.turn_bytes, most - std::min(most, bytes))) {
        move_front(group.front(), group.front().source.length, run);
        group.clear();
    }
    return run;
}

Pack split_end(Pack& group, const MergePolicy& policy, std::uint64_t blocks, std::uint64_t block_bytes) {
    std::uint64_t longest = 0;
    for (const NodeSource& each : group) longest = std::max(longest, each.source.length);
    // Of each source what lies behind so many turns.
    const auto behind = [&](std::uint64_t turns) {
        std::uint64_t sum = 0;
        for (const NodeSource& each : group) sum += div_up(each.source.length - std::min(each.source.length, turns * policy.turn_bytes), block_bytes);
        return sum;
    };
    std::uint64_t least = 0, most = div_up(longest, policy.turn_bytes);  // turns that stay; with `most` nothing is given
    while (least < most) {
        const std::uint64_t middle = least + (most - least) / 2;
        if (behind(middle) <= blocks) most = middle;
        else least = middle + 1;
    }
    Pack given;
    for (NodeSource& each : group) {
        const std::uint64_t stays = std::min(each.source.length, least * policy.turn_bytes);
        if (stays < each.source.length) given.push_back({each.node, {each.source.rank, each.source.image_offset + stays, each.source.length - stays}});
        each.source.length = stays;
    }
    std::erase_if(group, [](const NodeSource& each) { return each.source.length == 0; });
    return given;
}

namespace {
// Of what is stored apart. A rank alone reads and decodes the runs of its whole group, and a job that starts again decodes all of them for each rank: less than a tenth does not pay for that, and the
// same data that are encoded in other runs differ by some hundredths. What is merged stays so while it is worth half of it.
constexpr double worth_merging = 0.9, worth_staying_merged = 0.95;
constexpr double least_merged = 0.01;  // of the raw bytes: whoever decodes so many more saves nothing where hardly any are stored
constexpr std::uint32_t trials_to_change = 2;  // of two places: one place says little of all
constexpr std::uint64_t merge_trials_apart_most = 16;
}  // namespace

void MergeChoice::record(const MergeTried& tried) {
    ++versions_;
    const bool is_told = tried.apart_bytes > 0 && tried.merged_bytes > 0;
    if (is_told) {
        shorter_ = tried.apart_bytes / tried.merged_bytes;
        const double kept = (merges_ ? worth_staying_merged : worth_merging) * tried.apart_bytes;
        const bool says = tried.merged_bytes <= kept && tried.apart_bytes - tried.merged_bytes >= least_merged * tried.raw_bytes;
        against_ = says == merges_ ? 0 : against_ + 1;
        trials_apart_ = against_ > 0 ? 1 : std::min(2 * trials_apart_, merge_trials_apart_most);
        if (against_ == trials_to_change) merges_ = says, against_ = 0;
    }
    if (tried.is_asked || against_ > 0) trial_due_ = versions_ + trials_apart_ - 1;
}

}  // namespace cairn
