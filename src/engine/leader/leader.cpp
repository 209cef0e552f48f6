#include "engine/leader/leader.hpp"

namespace cairn::engine {

Leader::Leader(Common& c)
    : LeaderRole(c, ring_), ring_(c.world.clock, c.world.storage, c.settings.buffers, c.settings.buffer_bytes), rooms_(c, ring_),
      receiver_(c, ring_, rooms_), part_file_(c, ring_), trial_(c, ring_), writer_(c, ring_, part_file_, rooms_, trial_) {}

void Leader::hear(const FlightPtr& flight, NodeIndex from, message::ForLeader body) {
    std::visit(Hears{
                   [&](message::Lead& lead) { on_lead(flight, std::move(lead)); },
                   [&](message::Opened& opened) { part_file_.on_opened(*flight, opened); },
                   [&](message::Chunk& chunk) { receiver_.on_chunk(*flight, std::move(chunk)); },
                   [&](message::Shed& shed) { on_shed(*flight, shed); },
                   [&](message::Take& take) { on_take(*flight, std::move(take)); },
                   [&](message::Complete& complete) { on_complete(*flight, std::move(complete)); },
                   [&](message::ShareDone& done) { part_file_.on_share_done(*flight, from, std::move(done)); },
                   [&](message::ShareKept& kept) { part_file_.on_share_kept(*flight, kept); },
                   [&](message::Room& room) { rooms_.on_room(*flight, from, room); },
                   [&](message::Roomed& roomed) { rooms_.on_roomed(*flight, roomed); },
                   [&](message::Replace& replace) { on_replace(*flight, std::move(replace)); },
                   [&](message::Acknowledged& acknowledged) { on_acknowledged(*flight, acknowledged); },
                   [&](message::Leave& leave) { on_leave(*flight, leave); },
               },
               body);
}

bool Leader::is_leading(const Flight& flight) const { return flight.leader && flight.leader->leading; }

void Leader::on_end(Flight& flight) {
    if (!flight.leader) return;
    if (const std::shared_ptr<Attempt> attempt = flight.leader->leading) {
        attempt->fail({Code::superseded, "the version has ended"});
        attempt->left = true;
        attempt->work.notify_all();
    }
    flight.leader->opened.clear();
}

std::function<void(std::uint64_t, std::uint64_t)> Leader::watch_send(Flight& flight) {
    const std::shared_ptr<Attempt> attempt = flight.leader ? flight.leader->leading : nullptr;
    if (!attempt) return [](std::uint64_t, std::uint64_t) {};
    attempt->begin_send(world.clock.now());
    return [this, attempt](std::uint64_t bytes, std::uint64_t raw_bytes) {
        if (attempt->end_send(world.clock.now(), bytes, raw_bytes)) tell_progress(*attempt);
    };
}

void Leader::let_go(Flight& flight) {
    if (flight.leader) flight.leader->leading.reset();
}

}  // namespace cairn::engine
