#include "engine/coordinator/replacer.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "base/trace.hpp"
#include "catalog/roots.hpp"
#include "model/contents.hpp"
#include "model/space.hpp"

namespace cairn::engine {

namespace {
constexpr std::uint32_t failures_max = 2;  // of replacements of one part
}  // namespace

Replacer::Replacer(Common& c) : CoordinatorRole(c) {}

bool Replacer::is_current(const Flight& flight, Id128 attempt_id) const { return side(flight).contest && side(flight).contest->attempt_id == attempt_id; }

// Of an older attempt, or of a part that none of its leaders failed on, is nobody's business any more. So is one that does not write there.
void Replacer::on_part_failed(FlightPtr flight, NodeIndex from, const message::PartFailed& failed) {
    if (!is_current(*flight, failed.attempt_id)) return send(*flight, from, message::Leave{failed.attempt_id});
    Contest& contest = *side(*flight).contest;
    const auto track = contest.leaders.find(from);
    if (track == contest.leaders.end() || failed.part >= contest.plan.size()) return;
    track->second.heard = world.clock.now();
    const std::vector<Share>& shares = contest.plan[failed.part].shares;
    if (std::none_of(shares.begin(), shares.end(), [&](const Share& share) { return share.leader == from; })) return;
    // Its first leader reported it, so it is complete: only an answer to this leader was lost.
    if (contest.leaders.at(contest.plan[failed.part].first_leader()).done) return send(*flight, from, message::Replace{contest.attempt_id, failed.part, {}, {}});
    if (!contest.replaced.emplace(failed.part, Replaced{failed.text, {}}).second) return tell(*flight, failed.part, from);
    const std::string& target = contest.plan[failed.part].target;
    if (!target.empty()) avoid(*flight->job, target, failed.text);
    side(*flight).leaves_files = true;
    tell(*flight, failed.part, from);
    if (contest.plan[failed.part].replacement == failures_max) {  // one node on target after target: it is the node
        experience(*flight->job).unfit[from] = world.clock.in(avoided_for);
        contest.irreplaceable = failed.part;
        return flight->news.notify_all();
    }
    gate.spawn(replace(flight, contest.attempt_id, failed.part));
}

namespace {

// Somebody may have given work of this part away, or to it, and the coordinator not heard of it yet.
bool is_changing_hands(const Contest& contest, std::uint32_t part) {
    return std::any_of(contest.moves.begin(), contest.moves.end(), [&](const auto& each) { return !each.second.take && (each.second.from_part == part || each.second.to_part == part); });
}

std::uint32_t replacement_number(const Contest& contest, std::uint32_t number) {
    std::uint32_t last = 0;
    for (const PartPlan& part : contest.plan)
        if (part.number() == number) last = std::max(last, part.replacement);
    return last + 1;
}

// Targets have numbers, by which the mover tells them apart.
std::uint32_t target_number(const Contest& contest, const std::string& target) {
    std::uint32_t next = 0;
    for (std::size_t i = 0; i < contest.plan.size(); ++i) {
        if (contest.plan[i].target == target) return contest.targets[i];
        next = std::max(next, contest.targets[i] + 1);
    }
    return next;
}

std::uint64_t bytes_of(const std::vector<NodeSources>& nodes) {
    std::uint64_t sum = 0;
    for (const NodeSources& node : nodes)
        for (const Source& source : node.sources) sum += source.length;
    return sum;
}

}  // namespace

// Of those that did not fail, and have room as far as is known, the one that gets least of this version.
std::optional<std::string> Replacer::choose_target(Job& job, const Contest& contest, std::uint64_t bytes) const {
    std::map<std::string, std::uint64_t> given_bytes;
    for (std::size_t i = 0; i < contest.plan.size(); ++i)
        if (!contest.replaced.count(static_cast<std::uint32_t>(i))) given_bytes[contest.plan[i].target] += contest.part_space_bytes[i];
    std::optional<std::string> best;
    for (const std::string& target : common.storage_driver(job)->targets()) {
        const auto free_bytes = experience(job).free_bytes.find(target);
        const bool is_full = free_bytes != experience(job).free_bytes.end() && free_bytes->second < given_bytes[target] + bytes;
        if (is_avoided(job, target) || is_full) continue;
        if (!best || given_bytes[target] < given_bytes[*best]) best = target;
    }
    return best;
}

// The version's directory below a root that may have got no part of it yet. Its name is durable before anybody writes there.
Task<Status> Replacer::make_directory(FlightPtr flight, std::string target) {
    if (flight->job->root_of(target) == 0) co_return Status();
    Status made = co_await make_version_below(world, target, flight->key, world.clock.in(settings.io_wait));
    if (!made.ok()) co_return made;
    side(*flight).made_below.insert(target);
    const std::string directory = Layout::version_below(target, flight->key);
    Status synced = co_await world.storage.fsync_directory(directory.substr(0, directory.rfind('/')), world.clock.in(settings.io_wait));
    co_return synced;
}

Task<void> Replacer::replace(FlightPtr flight, Id128 attempt_id, std::uint32_t part) {
    const TraceSpan span(world.clock, "coordinator", "replace part " + std::to_string(part));
    Job& job = *flight->job;
    while (is_current(*flight, attempt_id) && is_changing_hands(*side(*flight).contest, part)) co_await world.clock.sleep(settings.heartbeat / 8);
    std::optional<std::string> target;
    Status made;
    do {
        if (!is_current(*flight, attempt_id)) co_return;
        const Contest& contest = *side(*flight).contest;
        target = choose_target(job, contest, bytes_of(contents(contest.plan[part], contest.moved)));
        if (!target) break;
        made = co_await make_directory(flight, *target);
        if (!made.ok()) avoid(job, *target, made.text());
    } while (!made.ok());
    if (!is_current(*flight, attempt_id)) co_return;
    Contest& contest = *side(*flight).contest;
    if (!target) {
        contest.irreplaceable = part;
        flight->news.notify_all();
        co_return;
    }
    const PartPlan& old = contest.plan[part];
    if (contest.leaders.at(old.first_leader()).done) co_return;  // it was complete before it heard of this
    PartPlan with;
    with.part = static_cast<std::uint32_t>(contest.plan.size());
    with.target = *target;
    with.replaces = old.number();
    with.replacement = replacement_number(contest, old.number());
    Share share{old.first_leader(), 0, 0, contents(old, contest.moved)};
    share.bytes = space_of(share.nodes, {contest.block_bytes, contest.pack_bytes});
    log_warning("part-replaced", {{"name", job.roster->name}, {"version", flight->key.version}, {"part", with.replaces}, {"bytes", bytes_of(share.nodes)}, {"from", old.target}, {"to", with.target}});
    message::Replace replace{attempt_id, part, {}, {}};
    for (const NodeSources& node : share.nodes) replace.addresses.push_back({node.node, job.addresses.of(node.node)});
    contest.part_space_bytes.push_back(share.bytes);
    contest.targets.push_back(target_number(contest, with.target));
    with.shares.push_back(std::move(share));
    replace.with.push_back(with);
    contest.plan.push_back(std::move(with));
    contest.replaced.at(part).with = std::move(replace);
    tell(*flight, part);
}

// `asks`: it says that the part failed, so it has not heard, though it tells nothing of the part any more.
void Replacer::tell(Flight& flight, std::uint32_t part, std::optional<NodeIndex> asks) {
    const Contest& contest = *side(flight).contest;
    const std::optional<message::Replace>& replace = contest.replaced.at(part).with;
    const PartPlan& old = contest.plan[part];
    for (const Share& share : old.shares) {
        const LeaderTrack& track = contest.leaders.at(share.leader);
        const bool is_first = share.leader == old.first_leader();
        const bool has_dropped = track.progress.sequence > 0 && !says(track.progress, part);
        const bool has_begun = !is_first || (replace && (says(track.progress, replace->with.front().part) || contest.replaced.count(replace->with.front().part)));
        if (track.done || (has_dropped && has_begun && asks != share.leader)) continue;
        if (is_first && replace) send(flight, share.leader, *replace);
        else send(flight, share.leader, message::Replace{contest.attempt_id, part, {}, {}});
    }
}

void Replacer::repeat(Flight& flight) {
    for (const auto& [part, replace] : side(flight).contest->replaced) tell(flight, part);
}

}  // namespace cairn::engine
