// Network: messages and payloads between the daemons of a job.
//
// Messages are datagrams: whole or not at all, but they may be lost, delayed, repeated and reordered. The engine asks again.
// Payloads go straight into a posted buffer, matched by a tag that the receiver chose and sent along in its request: a free buffer is
// a credit, and without one no data moves (fgcs24, Algorithms 2 and 3).
#pragma once

#include <string>

#include "world/buffer.hpp"
#include "world/channel.hpp"

namespace cairn {

// What the transport calls an endpoint, printable; comes from self() of some Network.
using Address = std::string;

class Network {
  public:
    virtual ~Network() = default;

    virtual Address self() const = 0;

    // Hands a message over for sending; ok says nothing about arrival. Messages up to message_bytes_max.
    virtual Task<Status> send(Address to, Bytes message, Nanos deadline) = 0;
    virtual Channel<Bytes>& inbox() = 0;

    // Sender's side of a payload, also to itself. Ends when `data` may be changed again, or at the deadline.
    virtual Task<Status> send_payload(Address to, std::uint64_t tag, Slice data, Nanos deadline) = 0;
    // Receiver's side: post first, then ask for the data, then wait. Tags are not reused by one endpoint. The length received may
    // be less than the slice. A wait that ends without data has withdrawn the posting; the transport holds the slice's buffer until it
    // really lets go of it. A payload whose tag is not posted (any more) is dropped.
    virtual Status post_payload(std::uint64_t tag, Slice into) = 0;
    virtual Task<Result<std::uint64_t>> wait_payload(std::uint64_t tag, Nanos deadline) = 0;

    static constexpr std::uint64_t message_bytes_max = 64ull << 20;
};

}  // namespace cairn
