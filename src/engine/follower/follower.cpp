#include "engine/follower/follower.hpp"

namespace cairn::engine {

Follower::Follower(Common& c, WatchSend watch_send)
    : Role(c), encoding_(world.clock, world.storage, settings.encode_buffers, settings.buffer_bytes), watch_send_(std::move(watch_send)) {}

FollowerSide& Follower::side(Flight& flight) {
    if (!flight.follower) flight.follower = std::make_shared<FollowerSide>();
    return *flight.follower;
}

void Follower::hear(const FlightPtr& flight, NodeIndex from, const Address& address, message::ForFollower body) {
    if (auto* want = std::get_if<message::Want>(&body)) on_want(flight, from, address, std::move(*want));
    else on_noted(flight, std::get<message::Noted>(body));
}

void Follower::on_image(const FlightPtr& flight) {
    if (std::exchange(side(*flight).announcing, true)) return;
    gate.spawn(announce(flight));
}

void Follower::on_end(Flight& flight) {
    if (!flight.follower) return;
    flight.follower->served.clear();
    flight.follower->served_order.clear();
}

std::optional<NodeIndex> Follower::unsealed(const Flight& flight) const { return flight.follower ? flight.follower->unsealed : std::nullopt; }

}  // namespace cairn::engine
