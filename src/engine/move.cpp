// Move: work changes hands while a flush runs, so that no leader holds up the others (a slow target, a busy node, groups that turned out
// unequal).
//
//   coordinator                       leader behind                      leader ahead
//   Progress of every leader  <------------------------------------------------
//   next_shift (model/balance)
//   Shed, until Given  ------------>  gives what it has not begun
//                      <------------  Given: sources, and their ranges
//   Take, until Taken  ------------------------------------------------>  its own from now on: fetches, writes
//                      <------------------------------------------------  Taken
//   nothing unstarted anywhere: Complete to all, no move after that
//
// Within a part the sources keep the range they would have gone to: the end of the giver's, which it has not come to. Across parts they get
// a new one behind everything else of the taker's part. So no block has two writers, and no source is in two hands: a giver forgets before it
// answers, a taker begins after it was told, and each answer is remembered for whoever asks again. When a node dies in between, the
// attempt ends and all begins anew from the images.
#include <algorithm>

#include "base/trace.hpp"
#include "engine/internal.hpp"

namespace cairn {

using namespace engine;

// ---- coordinator ----

namespace {
// Of a leader's first part, as a number: that of the first part that lies there, too. Without targets all are alike.
std::uint32_t target_of(const Contest& contest, const message::Lead& lead) {
    const std::string& target = lead.parts.front().target;
    const auto same = [&](const PartPlan& part) { return part.target == target; };
    return std::find_if(contest.plan.begin(), contest.plan.end(), same)->part;
}
}  // namespace

// Looks whether work should move, or is all begun. Called when a leader has told its progress.
void Node::Impl::shift_work(Flight& flight) {
    Contest& contest = *flight.contest;
    if (contest.finishing) return;
    std::vector<LeaderLoad> loads;
    bool any_left = false;
    for (const auto& [node, track] : contest.leaders) {
        any_left |= !track.progress_known || track.progress.unstarted_bytes > 0;
        if (!track.progress_known) continue;
        const bool moving = std::any_of(contest.moves.begin(), contest.moves.end(), [n = node](const auto& move) {
            return move.second.from == n || move.second.to == n;
        });
        loads.push_back({node, track.progress.unstarted_bytes, track.progress.begun_bytes, static_cast<double>(track.progress.bytes_per_s), moving, track.full, target_of(contest, track.lead)});
    }
    if (!any_left && contest.moves.empty()) return finish(flight);
    if (settings.placement != Placement::append) return;  // every offset is fixed
    const Nanos elapsed = world.clock.now() - contest.begun;
    const bool settled = elapsed >= 2 * settings.heartbeat;
    while (const std::optional<Shift> shift = next_shift(loads, contest.block_bytes, static_cast<double>(elapsed) / second, settled)) {
        const std::uint32_t number = ++contest.moves_begun;
        contest.moves[number] = {shift->from, shift->to, shift->bytes, {}};
        send(flight, shift->from, message::Shed{contest.attempt_id, number, shift->to, shift->bytes});
        for (LeaderLoad& load : loads) load.moving |= load.leader == shift->from || load.leader == shift->to;
    }
}

void Node::Impl::repeat_moves(Flight& flight) {
    const Contest& contest = *flight.contest;
    for (const auto& [number, move] : contest.moves) {
        if (move.take) send(flight, move.to, *move.take);
        else send(flight, move.from, message::Shed{contest.attempt_id, number, move.to, move.bytes});
    }
}

namespace {

bool writes(const PartPlan& part, NodeIndex leader) {
    return std::any_of(part.shares.begin(), part.shares.end(), [&](const Share& share) { return share.leader == leader; });
}

// A place behind all else in a part that `leader` writes, for as many bytes; nothing when there is no room.
std::optional<std::pair<std::uint32_t, std::uint64_t>> place_in_parts_of(Contest& contest, NodeIndex leader, std::uint64_t bytes) {
    for (const PartPlan& part : contest.plan) {
        std::uint64_t& end = contest.part_ends[part.part];
        if (!writes(part, leader) || (part.sized_bytes != 0 && bytes > part.sized_bytes - end)) continue;
        const std::uint64_t offset = end;
        end += bytes;
        return std::pair{part.part, offset};
    }
    return std::nullopt;
}

}  // namespace

void Node::Impl::on_given(Flight& flight, NodeIndex from, message::Given given) {
    if (!flight.contest || flight.contest->attempt_id != given.attempt_id) return;
    Contest& contest = *flight.contest;
    const auto found = contest.moves.find(given.move);
    if (found == contest.moves.end() || found->second.from != from || found->second.take) return;
    Move& move = found->second;
    LeaderTrack& giver = contest.leaders.at(from);
    if (given.work.empty()) {
        giver.progress.unstarted_bytes = 0;  // it had nothing; its next word says more
        contest.moves.erase(found);
        return shift_work(flight);
    }
    std::uint64_t bytes = 0;
    for (const message::Work& work : given.work) {
        // What no giver of this attempt says is left unanswered: the attempt ends by its deadlines.
        if (work.part >= contest.plan.size() || !writes(contest.plan[work.part], from)) return;
        for (const NodeSources& node : work.nodes)
            if (!flight.sealed.count(node.node)) return;  // just lost: the attempt is about to end
        bytes += work.bytes;
    }
    message::Take take{contest.attempt_id, given.move, {}, {}};
    for (const message::Work& work : given.work) {
        take.work.push_back(work);
        if (writes(contest.plan[work.part], move.to)) continue;
        const auto place = place_in_parts_of(contest, move.to, work.bytes);
        if (!place) {  // no room in the taker's parts: the giver keeps it, all of it
            contest.leaders.at(move.to).full = true;
            take.work = given.work;
            move.to = from;
            break;
        }
        std::tie(take.work.back().part, take.work.back().offset) = *place;
    }
    for (std::size_t i = 0; i < take.work.size(); ++i)
        for (const NodeSources& node : take.work[i].nodes) {
            take.addresses.push_back({node.node, flight.job->addresses[node.node]});
            if (take.work[i].part == given.work[i].part) continue;  // its first leader knows these images
            LeaderTrack& first = contest.leaders.at(contest.plan[take.work[i].part].first_leader());
            for (const Source& source : node.sources)
                for (const ImageInfo& image : flight.sealed.at(node.node).images)
                    if (image.rank == source.rank) first.images.emplace(image.rank, image);
        }
    giver.progress.unstarted_bytes -= std::min(giver.progress.unstarted_bytes, bytes);
    LeaderTrack& taker = contest.leaders.at(move.to);
    ++taker.takes;
    taker.progress_known = false;  // until it tells of this one, too
    send(flight, move.to, take);
    move.take = std::move(take);
}

void Node::Impl::on_taken(Flight& flight, const message::Taken& taken) {
    if (!flight.contest || flight.contest->attempt_id != taken.attempt_id) return;
    flight.contest->moves.erase(taken.move);
    shift_work(flight);
}

void Node::Impl::finish(Flight& flight) {
    flight.contest->finishing = true;
    for (const auto& [node, track] : flight.contest->leaders) {
        message::Complete finish{flight.contest->attempt_id, {}};
        for (const auto& [rank, image] : track.images) finish.images.push_back(image);
        if (!track.done) send(flight, node, std::move(finish));
    }
}

// ---- leader ----

namespace {

// The work given so far, by part and range.
using Gifts = std::map<std::pair<std::uint32_t, std::uint32_t>, message::Work>;

// Up to `blocks` blocks off the end of one run; true when all of it went.
bool give_end(PartState& part, Run& run, std::uint64_t block, std::uint64_t& blocks, Gifts& gifts) {
    const std::uint64_t of_run = div_up(run.source.length, block), given = std::min(of_run, blocks);
    const std::uint64_t keep = (of_run - given) * block;
    const Source source{run.source.rank, run.source.image_offset + keep, run.source.length - keep};
    message::Work& work = gifts[{part.plan.part, run.range}];
    work.part = part.plan.part;
    work.bytes += given * block;
    const auto same_node = std::find_if(work.nodes.begin(), work.nodes.end(), [&](const NodeSources& n) { return n.node == run.node; });
    if (same_node == work.nodes.end()) work.nodes.push_back({run.node, {source}});
    else same_node->sources.push_back(source);
    run.source.length = keep;
    blocks -= given;
    return keep == 0;
}

void give_from(std::deque<Run>& runs, PartState& part, std::uint64_t block, std::uint64_t& blocks, Gifts& gifts) {
    while (blocks > 0 && !runs.empty() && give_end(part, runs.back(), block, blocks, gifts)) runs.pop_back();
}

// What costs least to move: first what lies on the taker's own node, then what had to travel anyway, then local data.
Gifts give(Attempt& attempt, NodeIndex to, std::uint64_t bytes) {
    const std::uint64_t block = attempt.lead.block_bytes;
    std::uint64_t blocks = bytes / block;
    Gifts gifts;
    for (const bool of_taker : {true, false})
        for (auto part = attempt.parts.rbegin(); part != attempt.parts.rend(); ++part)
            for (auto& runs : (*part)->remote)
                if (!of_taker || (!runs.empty() && runs.back().node == to)) give_from(runs, **part, block, blocks, gifts);
    for (auto part = attempt.parts.rbegin(); part != attempt.parts.rend(); ++part) give_from((*part)->local, **part, block, blocks, gifts);
    return gifts;
}

}  // namespace

void Node::Impl::on_shed(Flight& flight, const message::Shed& shed) {
    if (!flight.leads(shed.attempt_id) || flight.leading->over()) return;
    Attempt& attempt = *flight.leading;
    const auto before = attempt.given.find(shed.move);
    if (before != attempt.given.end()) return send(flight, 0, before->second);
    message::Given given{shed.attempt_id, shed.move, {}};
    if (!attempt.finishing)
        for (auto& [where, work] : give(attempt, shed.to, shed.bytes)) {
            Range& range = attempt.part(where.first)->ranges[where.second];
            range.end -= work.bytes;
            work.offset = range.end;
            for (const NodeSources& node : work.nodes)
                for (const Source& source : node.sources)
                    flight.state.node_expected_bytes -= std::min(flight.state.node_expected_bytes, source.length);
            given.work.push_back(std::move(work));
        }
    trace_span("leader", "work given", world.clock.now(), world.clock.now(), {{"bytes", shed.bytes}});
    attempt.given[shed.move] = given;
    send(flight, 0, std::move(given));
    attempt.work.notify_all();
}

void Node::Impl::on_take(Flight& flight, message::Take take) {
    if (!flight.leads(take.attempt_id) || flight.leading->over()) return;
    Attempt& attempt = *flight.leading;
    if (attempt.taken.insert(take.move).second) {
        for (const message::NodeAddress& entry : take.addresses) attempt.addresses.emplace(entry.node, entry.address);
        for (const message::Work& work : take.work) {
            PartState* part = attempt.part(work.part);
            if (!part || attempt.finishing) return attempt.fail({Code::internal, "was given work for a part that it does not write"});
            const auto range = static_cast<std::uint32_t>(part->ranges.size());
            part->ranges.push_back({work.offset, work.offset + work.bytes});
            for (const NodeSources& node : work.nodes)
                for (const Source& source : node.sources) {
                    flight.state.node_expected_bytes += source.length;
                    counters.taken_over_bytes += source.length;
                    const Run run{node.node, source, range, 0};
                    if (node.node == flight.job->self) part->local.push_back(run);
                    else part->remote.push_back({run});
                }
        }
        attempt.idle_told = false;
        trace_span("leader", "work taken", world.clock.now(), world.clock.now());
        attempt.work.notify_all();
    }
    send(flight, 0, message::Taken{take.attempt_id, take.move});
    tell_progress(attempt);
}

void Node::Impl::on_complete(Flight& flight, message::Complete finish) {
    if (!flight.leads(finish.attempt_id) || flight.leading->finishing) return;
    Attempt& attempt = *flight.leading;
    for (ImageInfo& image : finish.images) attempt.images.emplace(image.rank, std::move(image));
    attempt.finishing = true;
    attempt.work.notify_all();
}

}  // namespace cairn
