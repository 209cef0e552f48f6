// The plan of an attempt: all sizes, where parts go, how many lead, and what each leader is told. And what the last attempts and flushes
// showed that the next plan should know: nodes, targets and leaders to do without, and what the cards do. The plan itself is a pure function
// (model/plan.cpp), and so is the number of leaders (model/balance.cpp).
#include <algorithm>

#include "engine/internal.hpp"
#include "storage/placement.hpp"

namespace cairn {

using namespace engine;

namespace {
constexpr Nanos avoided_for = 300 * second;  // a leader, or a target, that made an attempt fail
}  // namespace

namespace {

template <class Values, class Same>
bool contains(const Values& values, Same same) { return std::any_of(values.begin(), values.end(), same); }

// What the leader of a share must know of its sources: where they are.
void add_addresses(message::Lead& lead, const std::vector<NodeSources>& nodes, const AddressBook& addresses) {
    for (const NodeSources& node : nodes)
        if (!contains(lead.addresses, [&](const auto& a) { return a.node == node.node; })) lead.addresses.push_back({node.node, addresses.of(node.node)});
}

}  // namespace

void engine::make_leads(Contest& contest, const Job& job, const std::vector<NodeImages>& nodes) {
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
    }
}

// The images of all nodes, none of an I/O node; their block size in `block_bytes`.
Result<std::vector<NodeImages>> Node::Impl::all_images(const Flight& flight, std::uint64_t& block_bytes) const {
    std::vector<NodeImages> nodes;
    for (NodeIndex node = 0; node < flight.job->nodes(); ++node) {
        nodes.push_back({node, {}});
        const auto found = flight.sealed.find(node);
        if (found == flight.sealed.end()) continue;  // an I/O node
        const message::Sealed& sealed = found->second;
        nodes.back().images = sealed.images;
        if (block_bytes == 0) block_bytes = sealed.block_bytes;
        if (sealed.block_bytes != block_bytes)
            return invalid_argument(version_text(flight.key) + ": " + flight.job->node_name(node) + " captured with flush.block_bytes = " +
                                    std::to_string(sealed.block_bytes) + ", node 0 with " + std::to_string(block_bytes) +
                                    "; give all nodes the same");
    }
    return nodes;
}

// A target on which a part failed gets none for a while: the next attempt would fail there, too.
// False when it lies where the file system put it.
bool Node::Impl::avoid_target_of(Flight& flight, std::uint32_t part) {
    if (part >= flight.contest->plan.size()) return false;
    const std::string& target = flight.contest->plan[part].target;
    if (!target.empty()) flight.job->avoided[target] = world.clock.in(avoided_for);
    return !target.empty();
}

// The targets that parts may go to.
std::vector<std::string> Node::Impl::usable_targets(const Job& job) const {
    std::vector<std::string> names;
    for (const std::string& name : targets->names) {
        const auto avoided = job.avoided.find(name);
        if (avoided == job.avoided.end() || world.clock.now() >= avoided->second) names.push_back(name);
    }
    return names;
}

// Groups, election and division (model/plan); as many leaders as were best lately, and the same bytes on every target.
std::vector<PartPlan> Node::Impl::plan_flush(Job& job, const std::vector<NodeImages>& nodes, const Contest& contest) {
    PlanOptions options;
    options.files = job.roster->files;
    options.block_bytes = contest.block_bytes;
    options.keep_own = contest.keep_own;
    for (const auto& [node, until] : job.unfit)
        if (world.clock.now() < until) options.unfit.push_back(node);
    options.unfit.insert(options.unfit.end(), job.absent.begin(), job.absent.end());
    options.whole_parts = settings.placement != Placement::append;
    const std::vector<std::string> names = usable_targets(job);
    options.leaders = settings.leaders != 0 ? settings.leaders : leader_choice(job).next(options.files, leaders_max(nodes, options.unfit));
    std::uint64_t blocks = 0;
    for (const NodeImages& node : nodes) blocks += node_blocks(node, contest.block_bytes);
    const std::vector<PartShare> shares = share_parts(blocks, options.files, static_cast<std::uint32_t>(names.size()), job.placement_turn++);
    for (const PartShare& share : shares) options.part_blocks.push_back(share.blocks);
    std::vector<PartPlan> plan = make_plan(nodes, options);
    for (PartPlan& part : plan)
        if (shares[part.part].target) part.target = names[*shares[part.part].target];
    for (PartPlan& part : plan)
        if (part.shares.size() > 1) part.sized_bytes = 2 * part.range_bytes();  // sparse, with room for work of other parts; cut at the end
    return plan;
}

// Its images are not to be had until it speaks up again. Without an I/O node all can go on.
void Node::Impl::lose(Flight& flight, NodeIndex node) {
    Job& job = *flight.job;
    if (node >= job.nodes()) return;
    flight.lose(node);
    if (job.has_ranks(node)) return;
    job.unfit[node] = world.clock.in(avoided_for);
    job.absent.insert(node);
    flight.lost_io_node = true;
}

// What the next attempt does without, of all that failed so far: nodes that were lost, targets on which a part failed, leaders that failed by
// themselves. A leader is not to blame for its target.
void Node::Impl::learn_from_failures(Flight& flight) {
    for (const auto& [node, track] : flight.contest->leaders) {
        if (!track.done || track.done->code == Code::ok) continue;
        const bool of_target = track.done->has_failed_part && avoid_target_of(flight, track.done->failed_part);
        if (track.done->has_lost) lose(flight, track.done->lost);
        else if (track.done->code != Code::superseded && !of_target) {
            flight.job->unfit[node] = world.clock.in(avoided_for);
            flight.lost_io_node |= !flight.job->has_ranks(node);
        }
    }
}

void Node::Impl::learn_from_cards(const Flight& flight) {
    std::uint32_t full = 0, with_room = 0;
    for (const auto& [node, track] : flight.contest->leaders) {
        full += track.done->card == Card::full;
        with_room += track.done->card == Card::has_room;
    }
    leader_choice(*flight.job).record_cards(full, with_room);
}

}  // namespace cairn
