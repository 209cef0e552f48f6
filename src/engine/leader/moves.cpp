// Moves, the leader's side: work that it has not begun is given away, work of others is taken over. The coordinator decides (coordinator/mover.cpp tells
// how); a giver forgets before it answers, a taker begins after it was told, and each answer is remembered for whoever asks again.
#include <algorithm>

#include "base/trace.hpp"
#include "engine/leader/check.hpp"
#include "engine/leader/leader.hpp"

namespace cairn::engine {

namespace {

// The work given so far. What goes to one range is one, but a pack, which must become the same pack again: each of those has a work of its own.
struct Gift {
    std::uint32_t range = 0;
    bool packed = false;
    message::Work work;
};
using Gifts = std::vector<Gift>;

void add_source(message::Work& work, const NodeSource& from) {
    const auto same_node = std::find_if(work.nodes.begin(), work.nodes.end(), [&](const NodeSources& n) { return n.node == from.node; });
    if (same_node == work.nodes.end()) work.nodes.push_back({from.node, {from.source}});
    else same_node->sources.push_back(from.source);
}

void add(Gifts& gifts, const PartState& part, const std::vector<Piece>& pieces, const SpacePolicy& space) {
    for (const Piece& piece : pieces) {
        const bool packed = !piece.packed.empty();
        auto gift = std::find_if(gifts.begin(), gifts.end(), [&](const Gift& each) { return !packed && !each.packed && each.range == piece.range; });
        if (gift == gifts.end()) gift = gifts.insert(gift, Gift{piece.range, packed, {part.plan.part, 0, 0, {}}});
        if (!piece.merged) gift->work.bytes += space_of(piece.bytes(), space);
        else  // whoever takes them may not merge them
            for (const NodeSource& each : piece.packed) gift->work.bytes += space_of(each.source.length, space);
        if (packed)
            for (const NodeSource& each : piece.packed) add_source(gift->work, each);
        else add_source(gift->work, {piece.node, piece.source});
    }
}

// What this node will send of it.
std::uint64_t own_bytes(const std::vector<Piece>& pieces, NodeIndex self) {
    std::uint64_t sum = 0;
    for (const Piece& piece : pieces) {
        if (piece.packed.empty()) sum += piece.node == self ? piece.source.length : 0;
        for (const NodeSource& each : piece.packed) sum += each.node == self ? each.source.length : 0;
    }
    return sum;
}

// What costs least to move: first what lies on the taker's own node, then what had to travel anyway, then local data: where cards
// decide, another leader gets no more than a portion of those.
Gifts give(Attempt& attempt, const message::Shed& shed, NodeIndex self, Nanos now) {
    const std::uint64_t block = attempt.lead.block_bytes;
    const SpacePolicy space{block, attempt.lead.pack_bytes};
    std::uint64_t blocks = shed.bytes / block;
    Gifts gifts;
    PartState* const part = attempt.part(shed.part);
    if (!part || part->dropped) return gifts;
    add(gifts, *part, part->work.give_remote(shed.to, blocks), space);
    add(gifts, *part, part->work.give_remote(std::nullopt, blocks), space);
    if (shed.to == self || !attempt.lead.keep_own) {
        add(gifts, *part, part->work.give_local(blocks), space);
        return gifts;
    }
    double bytes_per_s = 0;
    for (const auto& each : attempt.parts) bytes_per_s += each->rate.per_s(now, each->writing_bytes > 0);
    const std::uint64_t allowed = attempt.portions.allowed(bytes_per_s, block);
    std::uint64_t most = std::min(blocks, allowed / block);
    const std::vector<Piece> local = part->work.give_local(most);
    add(gifts, *part, local, space);
    attempt.portions.given(own_bytes(local, self), allowed);
    return gifts;
}

}  // namespace

void Leader::on_shed(Flight& flight, const message::Shed& shed) {
    LeaderSide& own = side(flight);
    if (!own.leads(shed.attempt_id) || own.leading->over()) return;
    Attempt& attempt = *own.leading;
    const auto before = attempt.given.find(shed.move);
    if (before != attempt.given.end()) {
        send_to_coordinator(flight, before->second);
        return;
    }
    message::Given given{shed.attempt_id, shed.move, {}};
    if (!attempt.finishing)
        for (auto& [range_index, packed, work] : give(attempt, shed, flight.job->self, world.clock.now())) {
            Range& range = attempt.part(work.part)->ranges[range_index];
            range.end -= work.bytes;
            work.offset = range.end;
            for (const NodeSources& node : work.nodes)
                for (const Source& source : node.sources)
                    flight.state.node_expected_bytes -= std::min(flight.state.node_expected_bytes, source.length);
            given.work.push_back(std::move(work));
        }
    trace_span("leader", "work given", world.clock.now(), world.clock.now(), {{"bytes", shed.bytes}});
    attempt.given[shed.move] = given;
    send_to_coordinator(flight, std::move(given));
    attempt.work.notify_all();
}

void Leader::on_take(Flight& flight, message::Take take) {
    LeaderSide& own = side(flight);
    if (!own.leads(take.attempt_id) || own.leading->over()) return;
    Attempt& attempt = *own.leading;
    if (const Status can = check_work(*flight.job, take.work, {attempt.lead.block_bytes, attempt.lead.pack_bytes}); !can.ok()) return attempt.fail(can);
    if (attempt.taken.insert(take.move).second) {
        for (const message::NodeAddress& entry : take.addresses) attempt.addresses.emplace(entry.node, entry.address);
        for (const message::Work& work : take.work) {
            PartState* part = attempt.part(work.part);
            if (!part || attempt.finishing) return attempt.fail({Code::internal, "was given work for a part that it does not write"});
            if (part->dropped) continue;  // the coordinator counts it among what is to be written in another file
            const auto range = static_cast<std::uint32_t>(part->ranges.size());
            part->ranges.push_back({work.offset, work.offset + work.bytes});
            for (const NodeSources& node : work.nodes)
                for (const Source& source : node.sources) {
                    flight.state.node_expected_bytes += source.length;
                    counters.taken_over_bytes += source.length;
                }
            part->work.add(work.nodes, range);
        }
        attempt.idle_told = false;
        attempt.idle_parts_told = attempt.idle_parts();
        trace_span("leader", "work taken", world.clock.now(), world.clock.now());
        attempt.work.notify_all();
    }
    send_to_coordinator(flight, message::Taken{take.attempt_id, take.move});
    tell_progress(attempt);
}

void Leader::on_complete(Flight& flight, message::Complete finish) {
    LeaderSide& own = side(flight);
    if (!own.leads(finish.attempt_id) || own.leading->finishing) return;
    Attempt& attempt = *own.leading;
    for (ImageInfo& image : finish.images) attempt.images.emplace(image.rank, std::move(image));
    attempt.finishing = true;
    attempt.work.notify_all();
}

}  // namespace cairn::engine
