#include "engine/coordinator/mover.hpp"

#include <algorithm>
#include <utility>

#include "base/trace.hpp"

namespace cairn::engine {

Mover::Mover(Common& c) : CoordinatorRole(c) {}

void Mover::repeat(Flight& flight) {
    repeat_moves(flight);
    if (side(flight).contest->finishing) finish(flight);
    else shift_soon(flight);
}

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

// Looks whether work should move, or is all begun. Called when a leader has told its progress.
// At a flush's end every leader says at nearly the same time that it is idle. To compare all of them costs the coordinator up to a microsecond
// each, so it is done at most every five for each of them.
void Mover::shift_soon(Flight& flight) {
    Contest& contest = *side(flight).contest;
    const Nanos next = contest.shifted + static_cast<Nanos>(contest.leaders.size()) * 5 * microsecond;
    if (world.clock.now() >= next) shift_work(flight);
    else if (!std::exchange(contest.shift_due, true)) gate.spawn(shift_later(flight.shared_from_this(), contest.attempt_id, next));
}

Task<void> Mover::shift_later(FlightPtr flight, Id128 attempt_id, Nanos when) {
    CoordinatorSide& own = side(*flight);
    co_await world.clock.sleep_until(when);
    if (!own.contest || own.contest->attempt_id != attempt_id) co_return;
    own.contest->shift_due = false;
    shift_work(*flight);
}

void Mover::shift_work(Flight& flight) {
    Contest& contest = *side(flight).contest;
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
            if (part.part >= contest.plan.size() || contest.replaced.count(part.part)) continue;
            const auto took = contest.took.find({node, part.part});
            parts.push_back({node, part.unstarted_bytes, part.begun_bytes, static_cast<double>(part.bytes_per_s), moving.count(node) > 0,
                             contest.full.count(part.part) > 0, contest.targets[part.part], part.part,
                             track.declined || (took != contest.took.end() && world.clock.now() - took->second < settings.heartbeat)});
        }
        for (LeaderLoad& load : contest.keep_own ? loads_of_card(std::move(parts)) : loads_of(std::move(parts), track.most_bytes_per_s, settled))
            loads.push_back(load);
    }
    if (!any_left && contest.moves.empty() && !awaits_replacement(contest)) return finish(flight);
    if (settings.placement != Placement::append || flight.job->roster->layout != FileLayout::parts) return;  // every offset is fixed, or every file has its owner
    for (const Shift& shift : next_shifts(std::move(loads), contest.block_bytes, static_cast<double>(elapsed) / second, settled)) {
        const std::uint32_t number = ++contest.moves_begun;
        contest.moves[number] = {shift.from, shift.to, shift.from_part, shift.to_part, shift.bytes, {}};
        send(flight, shift.from, message::Shed{contest.attempt_id, number, shift.from_part, shift.to, shift.bytes});
    }
}

void Mover::repeat_moves(Flight& flight) {
    const Contest& contest = *side(flight).contest;
    for (const auto& [number, move] : contest.moves) {
        if (move.take) send(flight, move.to, *move.take);
        else send(flight, move.from, message::Shed{contest.attempt_id, number, move.from_part, move.to, move.bytes});
    }
}

namespace {

bool writes(const PartPlan& part, NodeIndex leader) {
    return std::any_of(part.shares.begin(), part.shares.end(), [&](const Share& share) { return share.leader == leader; });
}

// Room for work from another part; false where the part was not sized for so much. Where it goes there, its first leader says (leader/rooms.hpp).
bool take_room(Contest& contest, std::uint32_t part, std::uint64_t bytes) {
    const std::uint64_t sized_bytes = contest.plan[part].sized_bytes;
    std::uint64_t& space = contest.part_space_bytes[part];
    if (sized_bytes != 0 && bytes > sized_bytes - space) return false;
    space += bytes;
    return true;
}

}  // namespace

void Mover::on_given(Flight& flight, NodeIndex from, message::Given given) {
    CoordinatorSide& own = side(flight);
    if (!own.contest || own.contest->attempt_id != given.attempt_id) return;
    Contest& contest = *own.contest;
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
            if (!own.sealed.count(node.node)) return;  // just lost: the attempt is about to end
        bytes += work.bytes;
    }
    message::Take take{contest.attempt_id, given.move, {}, {}};
    for (const message::Work& work : given.work) {
        take.work.push_back(work);
        if (work.part == move.to_part) continue;
        if (!take_room(contest, move.to_part, work.bytes)) {  // the giver keeps it, all of it
            contest.full.insert(move.to_part);
            take.work = given.work;
            move.to = from;
            break;
        }
        take.work.back().part = move.to_part;
        take.work.back().offset = 0;
    }
    for (std::size_t i = 0; i < take.work.size(); ++i)
        for (const NodeSources& node : take.work[i].nodes) {
            take.addresses.push_back({node.node, flight.job->addresses.of(node.node)});
            if (take.work[i].part == given.work[i].part) continue;  // its first leader knows these images
            LeaderTrack& first = contest.leaders.at(contest.plan[take.work[i].part].first_leader());
            for (const Source& source : node.sources)
                for (const ImageInfo& image : own.sealed.at(node.node).images)
                    if (image.rank == source.rank) first.images.emplace(image.rank, image);
        }
    for (std::size_t i = 0; contest.may_replace && i < take.work.size(); ++i)
        if (take.work[i].part != given.work[i].part) contest.moved.push_back({given.work[i].part, take.work[i].part, take.work[i].nodes});
    if (told) told->unstarted_bytes -= std::min(told->unstarted_bytes, bytes);
    LeaderTrack& taker = contest.leaders.at(move.to);
    ++taker.takes;
    taker.progress_known = false;  // until it tells of this one, too
    for (const message::Work& work : take.work) contest.took[{move.to, work.part}] = world.clock.now();
    send(flight, move.to, take);
    move.take = std::move(take);
}

void Mover::on_taken(Flight& flight, const message::Taken& taken) {
    CoordinatorSide& own = side(flight);
    if (!own.contest || own.contest->attempt_id != taken.attempt_id) return;
    own.contest->moves.erase(taken.move);
    shift_soon(flight);
}

void Mover::finish(Flight& flight) {
    CoordinatorSide& own = side(flight);
    own.contest->finishing = true;
    for (const auto& [node, track] : own.contest->leaders) {
        message::Complete finish{own.contest->attempt_id, {}};
        for (const auto& [rank, image] : track.images) finish.images.push_back(image);
        if (!track.done) send(flight, node, std::move(finish));
    }
}

}  // namespace cairn::engine
