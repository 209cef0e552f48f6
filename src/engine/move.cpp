// Move: work changes hands while a flush runs, so that no leader holds up the others (a slow target, a busy node, groups that turned out
// unequal).
//
//   coordinator                       leader behind                      leader ahead
//   Progress of every leader  <------------------------------------------------
//   next_shifts (model/balance)
//   Shed, until Given  ------------>  gives what it has not begun
//                      <------------  Given: sources, and their ranges
//   Take, until Taken  ------------------------------------------------>  its own from now on: fetches, writes
//                      <------------------------------------------------  Taken
//   nothing unstarted anywhere: Complete to all, no move after that
//
// A leader's work in one part is what is behind or ahead: one with parts on a slow and on a fast target moves work from one to the other.
// Within a part the sources keep the range they would have gone to: the end of the giver's, which it has not come to. Across parts they get
// a new one behind everything else of the other part. So no block has two writers, and no source is in two hands: a giver forgets before it
// answers, a taker begins after it was told, and each answer is remembered for whoever asks again. When a node dies in between, the
// attempt ends and all begins anew from the images.
#include <algorithm>
#include <utility>

#include "base/trace.hpp"
#include "engine/internal.hpp"

namespace cairn {

using namespace engine;

// ---- coordinator ----

namespace {
std::uint64_t unstarted_bytes(const message::Progress& progress) {
    std::uint64_t sum = 0;
    for (const message::PartProgress& part : progress.parts) sum += part.unstarted_bytes;
    return sum;
}

// What a leader said of a part; null where it does not write there.
message::PartProgress* of_part(message::Progress& progress, std::uint32_t part) {
    const auto found = std::find_if(progress.parts.begin(), progress.parts.end(), [&](const auto& each) { return each.part == part; });
    return found == progress.parts.end() ? nullptr : &*found;
}
}  // namespace

void Node::Impl::tell_progress(Attempt& attempt) {
    message::Progress progress{attempt.lead.attempt_id, ++attempt.progress_sequence, attempt.written_bytes, {}, static_cast<std::uint32_t>(attempt.taken.size())};
    for (const auto& part : attempt.parts) {
        const double rate = part->rate.per_s(world.clock.now(), part->writing_bytes > 0);
        progress.parts.push_back({part->plan.part, part->unstarted_bytes(), part->begun_bytes(), static_cast<std::uint64_t>(rate)});
    }
    send(*attempt.flight, 0, std::move(progress));
}

// Looks whether work should move, or is all begun. Called when a leader has told its progress.
// At a flush's end every leader says at nearly the same time that it is idle. To compare all of them costs the coordinator up to a microsecond
// each, so it is done at most every five for each of them.
void Node::Impl::shift_soon(Flight& flight) {
    Contest& contest = *flight.contest;
    const Nanos next = contest.shifted + static_cast<Nanos>(contest.leaders.size()) * 5 * microsecond;
    if (world.clock.now() >= next) shift_work(flight);
    else if (!std::exchange(contest.shift_due, true)) gate.spawn(shift_later(flights.at(flight.key), contest.attempt_id, next));
}

Task<void> Node::Impl::shift_later(FlightPtr flight, Id128 attempt_id, Nanos when) {
    co_await world.clock.sleep_until(when);
    if (!flight->contest || flight->contest->attempt_id != attempt_id) co_return;
    flight->contest->shift_due = false;
    shift_work(*flight);
}

void Node::Impl::shift_work(Flight& flight) {
    Contest& contest = *flight.contest;
    if (contest.finishing) return;
    contest.shifted = world.clock.now();
    const Nanos elapsed = world.clock.now() - contest.begun;
    const bool settled = elapsed >= 2 * settings.heartbeat;
    std::vector<LeaderLoad> loads;
    std::set<NodeIndex> moving;
    for (const auto& [number, move] : contest.moves) moving.insert({move.from, move.to});
    bool any_left = false;
    for (const auto& [node, track] : contest.leaders) {
        any_left |= !track.progress_known || unstarted_bytes(track.progress) > 0;
        if (!track.progress_known) continue;
        std::vector<LeaderLoad> parts;
        for (const message::PartProgress& part : track.progress.parts) {
            if (part.part >= contest.plan.size()) continue;
            const auto took = contest.took.find({node, part.part});
            parts.push_back({node, part.unstarted_bytes, part.begun_bytes, static_cast<double>(part.bytes_per_s), moving.count(node) > 0,
                             contest.full.count(part.part) > 0, contest.targets[part.part], part.part,
                             track.declined || (took != contest.took.end() && world.clock.now() - took->second < settings.heartbeat)});
        }
        for (LeaderLoad& load : contest.keep_own ? loads_of_card(std::move(parts)) : loads_of(std::move(parts), track.most_bytes_per_s, settled))
            loads.push_back(load);
    }
    if (!any_left && contest.moves.empty()) return finish(flight);
    if (settings.placement != Placement::append) return;  // every offset is fixed
    for (const Shift& shift : next_shifts(std::move(loads), contest.block_bytes, static_cast<double>(elapsed) / second, settled)) {
        const std::uint32_t number = ++contest.moves_begun;
        contest.moves[number] = {shift.from, shift.to, shift.from_part, shift.to_part, shift.bytes, {}};
        send(flight, shift.from, message::Shed{contest.attempt_id, number, shift.from_part, shift.to, shift.bytes});
    }
}

void Node::Impl::repeat_moves(Flight& flight) {
    const Contest& contest = *flight.contest;
    for (const auto& [number, move] : contest.moves) {
        if (move.take) send(flight, move.to, *move.take);
        else send(flight, move.from, message::Shed{contest.attempt_id, number, move.from_part, move.to, move.bytes});
    }
}

namespace {

bool writes(const PartPlan& part, NodeIndex leader) {
    return std::any_of(part.shares.begin(), part.shares.end(), [&](const Share& share) { return share.leader == leader; });
}

// A place behind all else in a part, for as many bytes; nothing when there is no room.
std::optional<std::uint64_t> place_in(Contest& contest, std::uint32_t part, std::uint64_t bytes) {
    const std::uint64_t sized_bytes = contest.plan[part].sized_bytes;
    std::uint64_t& end = contest.part_ends[part];
    if (sized_bytes != 0 && bytes > sized_bytes - end) return std::nullopt;
    return std::exchange(end, end + bytes);
}

}  // namespace

void Node::Impl::on_given(Flight& flight, NodeIndex from, message::Given given) {
    if (!flight.contest || flight.contest->attempt_id != given.attempt_id) return;
    Contest& contest = *flight.contest;
    const auto found = contest.moves.find(given.move);
    if (found == contest.moves.end() || found->second.from != from || found->second.take) return;
    Move& move = found->second;
    LeaderTrack& giver = contest.leaders.at(from);
    message::PartProgress* const told = of_part(giver.progress, move.from_part);
    if (given.work.empty()) {
        giver.declined = true;  // until its next word
        contest.moves.erase(found);
        return shift_soon(flight);
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
        if (work.part == move.to_part) continue;
        const auto place = place_in(contest, move.to_part, work.bytes);
        if (!place) {  // no room in the taker's part: the giver keeps it, all of it
            contest.full.insert(move.to_part);
            take.work = given.work;
            move.to = from;
            break;
        }
        take.work.back().part = move.to_part;
        take.work.back().offset = *place;
    }
    for (std::size_t i = 0; i < take.work.size(); ++i)
        for (const NodeSources& node : take.work[i].nodes) {
            take.addresses.push_back({node.node, flight.job->addresses.of(node.node)});
            if (take.work[i].part == given.work[i].part) continue;  // its first leader knows these images
            LeaderTrack& first = contest.leaders.at(contest.plan[take.work[i].part].first_leader());
            for (const Source& source : node.sources)
                for (const ImageInfo& image : flight.sealed.at(node.node).images)
                    if (image.rank == source.rank) first.images.emplace(image.rank, image);
        }
    if (told) told->unstarted_bytes -= std::min(told->unstarted_bytes, bytes);
    LeaderTrack& taker = contest.leaders.at(move.to);
    ++taker.takes;
    taker.progress_known = false;  // until it tells of this one, too
    for (const message::Work& work : take.work) contest.took[{move.to, work.part}] = world.clock.now();
    send(flight, move.to, take);
    move.take = std::move(take);
}

void Node::Impl::on_taken(Flight& flight, const message::Taken& taken) {
    if (!flight.contest || flight.contest->attempt_id != taken.attempt_id) return;
    flight.contest->moves.erase(taken.move);
    shift_soon(flight);
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

// What costs least to move: first what lies on the taker's own node, then what had to travel anyway, then local data: where cards
// decide, another leader gets no more than a portion of those.
Gifts give(Attempt& attempt, const message::Shed& shed, NodeIndex self, Nanos now) {
    const std::uint64_t block = attempt.lead.block_bytes;
    std::uint64_t blocks = shed.bytes / block;
    Gifts gifts;
    PartState* const part = attempt.part(shed.part);
    if (!part) return gifts;
    for (const bool of_taker : {true, false})
        for (auto& runs : part->remote)
            if (!of_taker || (!runs.empty() && runs.back().node == shed.to)) give_from(runs, *part, block, blocks, gifts);
    if (shed.to == self || !attempt.lead.keep_own) {
        give_from(part->local, *part, block, blocks, gifts);
        return gifts;
    }
    double bytes_per_s = 0;
    for (const auto& each : attempt.parts) bytes_per_s += each->rate.per_s(now, each->writing_bytes > 0);
    const std::uint64_t allowed = attempt.portions.allowed(bytes_per_s, block), most = std::min(blocks, allowed / block);
    std::uint64_t left = most;
    give_from(part->local, *part, block, left, gifts);
    attempt.portions.given((most - left) * block, allowed);
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
        for (auto& [where, work] : give(attempt, shed, flight.job->self, world.clock.now())) {
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
    if (const Status can = check_work(*flight.job, take.work); !can.ok()) return attempt.fail(can);
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
        attempt.idle_parts_told = attempt.idle_parts();
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
