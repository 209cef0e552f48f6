#include "engine/outbox.hpp"

#include "base/log.hpp"
#include "format/message.hpp"

namespace cairn::engine {

Outbox::Outbox(World& world, Gate& gate, Nanos send_wait) : world_(world), gate_(gate), send_wait_(send_wait), to_self_(world.clock, 4096) {}

bool Outbox::send(const Flight& flight, NodeIndex to, message::Body body) { return send_to(flight, to, flight.job->addresses.of(to), std::move(body)); }

bool Outbox::send(const Job& job, const VersionKey& key, NodeIndex to, message::Body body) { return send_to(job, key, to, job.addresses.of(to), std::move(body)); }

bool Outbox::send_to(const Flight& flight, NodeIndex to, Address address, message::Body body) {
    return send_to(*flight.job, flight.key, to, std::move(address), std::move(body));
}

bool Outbox::send_to(const Job& job, const VersionKey& key, NodeIndex to, Address address, message::Body body) {
    message::Message message{job.roster->secret, key, job.self, world_.network.self(), std::move(body)};
    if (to == job.self) {
        to_self_.try_send(std::move(message));  // full: lost, like any datagram
        return true;
    }
    Bytes bytes = encode(message);
    const bool fits = bytes.size() <= Network::message_bytes_max;
    gate_.spawn(transmit(std::move(address), std::move(bytes)));
    return fits;
}

Task<void> Outbox::transmit(Address address, Bytes bytes) {
    const std::size_t size = bytes.size();
    const Status sent = co_await world_.network.send(std::move(address), std::move(bytes), world_.clock.in(send_wait_));
    if (sent.code() == Code::invalid_argument) log_error("message-can-not-be-sent", {{"bytes", size}, {"why", sent}});  // too large: it never will be
}

}  // namespace cairn::engine
