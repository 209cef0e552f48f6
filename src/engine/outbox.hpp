// Outbox: what a node says to the members of its jobs, signed with the job's secret. Datagrams: whoever needs an answer asks again.
#pragma once

#include "engine/flight.hpp"
#include "world/channel.hpp"
#include "world/gate.hpp"

namespace cairn::engine {

class Outbox {
  public:
    Outbox(World& world, Gate& gate, Nanos send_wait);

    // To where the node was last heard of. False: longer than a message can be, and never sent; asking again is no use.
    bool send(const Flight& flight, NodeIndex to, message::Body body);
    bool send_to(const Flight& flight, NodeIndex to, Address address, message::Body body);
    // Of a version that has no flight yet.
    bool send(const Job& job, const VersionKey& key, NodeIndex to, message::Body body);
    // What it said to itself comes out here.
    Channel<message::Message>& to_self() noexcept { return to_self_; }

  private:
    bool send_to(const Job& job, const VersionKey& key, NodeIndex to, Address address, message::Body body);
    Task<void> transmit(Address address, Bytes bytes);

    World& world_;
    Gate& gate_;
    const Nanos send_wait_;
    Channel<message::Message> to_self_;
};

}  // namespace cairn::engine
