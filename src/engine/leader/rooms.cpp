#include "engine/leader/rooms.hpp"

#include <algorithm>
#include <utility>

#include "format/limits.hpp"
#include "model/space.hpp"

namespace cairn::engine {

bool are_handed_out(const Attempt& attempt, Placement placement) {
    if (attempt.flight->job->roster->layout == FileLayout::tensors) return false;
    return placement == Placement::append && (attempt.lead.parts_total > 1 || !attempt.lead.codec.empty() || attempt.lead.equal_pages);
}

Rooms::Rooms(Common& c, BufferRing& r) : LeaderRole(c, r) {}

// A file that several nodes write must not grow under their writes (part_file.hpp): what it was sized to is the end of its space.
Result<std::uint64_t> Rooms::hand_out(const Attempt& attempt, PartState& part, std::uint64_t bytes) {
    const std::uint64_t space = space_of(bytes, {attempt.lead.block_bytes, attempt.lead.pack_bytes});
    const std::uint64_t most = part.plan.sized_bytes != 0 ? part.plan.sized_bytes : bytes_max;
    if (part.rooms_end > most || space > most - part.rooms_end) return Status(Code::internal, "more was to be stored in this part than was planned");
    return std::exchange(part.rooms_end, part.rooms_end + space);
}

void Rooms::ask(Attempt& attempt, PartState& part, PendingChunk::AskedRoom& room, std::uint64_t bytes) {
    const NodeIndex first = part.plan.first_leader();
    send_to(*attempt.flight, first, attempt.addresses[first], message::Room{attempt.lead.attempt_id, part.plan.part, room.number, bytes});
    room.again = world.clock.in(settings.heartbeat);
}

void Rooms::ask_early(Attempt& attempt, PartState& part, PendingChunk& chunk, std::uint64_t bytes) {
    if (part.first || attempt.codec != Codec::none || !are_handed_out(attempt, settings.placement)) return;
    chunk.room.emplace().number = part.rooms_asked++;
    ask(attempt, part, *chunk.room, bytes);
}

Task<Result<std::uint64_t>> Rooms::take(Attempt& attempt, PartState& part, PendingChunk& chunk, std::uint64_t bytes) {
    if (part.first) co_return hand_out(attempt, part, bytes);
    if (!chunk.room) chunk.room.emplace().number = part.rooms_asked++;
    const std::uint32_t number = chunk.room->number;
    const NodeIndex first = part.plan.first_leader();
    const Nanos give_up = world.clock.in(settings.io_wait);
    while (!attempt.over(part) && !part.rooms_got.count(number) && world.clock.now() < give_up) {
        if (world.clock.now() >= chunk.room->again) ask(attempt, part, *chunk.room, bytes);
        co_await attempt.work.wait(chunk.room->again);
    }
    if (attempt.over(part)) co_return Status(Code::cancelled, "attempt over");
    const auto got = part.rooms_got.find(number);
    if (got == part.rooms_got.end()) {
        part.blameless = true;
        co_return unavailable("its first leader, " + attempt.flight->job->node_name(first) + ", did not say where this node's data go");
    }
    const std::uint64_t offset = got->second;
    part.rooms_got.erase(got);
    co_return offset;
}

// Asked again it gives the same: the answer was lost.
void Rooms::on_room(Flight& flight, NodeIndex from, const message::Room& room) {
    LeaderSide& own = side(flight);
    PartState* part = own.leads(room.attempt_id) && !own.leading->over() ? own.leading->part(room.part) : nullptr;
    const auto is_leader = [&] { return std::any_of(part->plan.shares.begin(), part->plan.shares.end(), [&](const Share& share) { return share.leader == from; }); };
    if (!part || !part->first || !is_leader()) return;
    const auto [given, is_new] = part->rooms_given.emplace(std::pair(from, room.number), 0);
    if (is_new) {
        const Result<std::uint64_t> offset = hand_out(*own.leading, *part, room.bytes);
        if (!offset.ok()) {
            part->rooms_given.erase(given);
            return own.leading->fail_part(offset.status(), *part);
        }
        given->second = *offset;
    }
    send(flight, from, message::Roomed{room.attempt_id, room.part, room.number, given->second});
}

void Rooms::on_roomed(Flight& flight, const message::Roomed& roomed) {
    LeaderSide& own = side(flight);
    PartState* part = own.leads(roomed.attempt_id) ? own.leading->part(roomed.part) : nullptr;
    if (!part || roomed.number >= part->rooms_asked || part->rooms_done.count(roomed.number)) return;
    part->rooms_done.insert(roomed.number);
    part->rooms_got.emplace(roomed.number, roomed.offset);
    own.leading->work.notify_all();
}

}  // namespace cairn::engine
