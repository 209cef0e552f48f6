// FabricNetwork: messages and payloads between daemons over libfabric's reliable datagram endpoints.
//
// Messages are cut into fragments that fit the provider's eager path; each is sent from the message and received into
// one of a few buffers posted beforehand. Payloads are tagged transfers, straight from the sender's slice into the
// posted one; over tcp the provider makes them a rendezvous: the receiver reads the sender's memory once the tag is
// matched.
//
// What the provider does not do, and this class does:
//  - a peer that died is not reported: every operation has a deadline; a send that the provider still holds `cut_after`
//    past it has its connection cut, which frees the buffer. Until then the buffer is held (rule 6). A posting that is
//    being filled is held until the rest comes or the connection ends: a stopped sender holds it while it is stopped, a
//    lost host for half a minute;
//  - a payload nobody posted would wait in the provider for ever, and its sender with it: receives that match anything
//    stand last in line and take a few scrap bytes of it, which sets the sender free. What finds none of them free is
//    dropped, and its sender left to his deadline;
//  - progress is manual: descriptors of the completion queues wake the loop; a slow timer runs only while something is
//    under way.
//
// With provider "tcp" a host with several cards listens at all of them; its address names them, and whoever sends to it chooses among them (ways.hpp,
// fabric_ways.cpp).
//
// Everything runs on the loop's thread. Coroutines still waiting when the network is destroyed end with
// Code::cancelled.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "world/network.hpp"
#include "world/real/cards.hpp"
#include "world/real/loop.hpp"

namespace cairn {

class FabricCore;

struct FabricSettings {
    std::string provider = "tcp";  // "tcp" is "tcp;ofi_rxm"; anything else is libfabric's own provider name
    // An IPv4 or IPv6 address of this host, or the name of one of its interfaces; for providers without IP addressing
    // the name of a libfabric domain. Empty: with tcp all cards (cards.hpp); else the first interface that is up and not
    // loopback, else loopback.
    std::string interface;
    std::map<std::string, std::uint32_t> rates_mbps;  // of interfaces, where they are known better than by the kernel
    std::vector<HostCard> host_cards;                 // empty: those that the kernel tells of

    std::uint32_t message_buffers = 128;                // fragments that can arrive between two turns of the loop
    std::uint32_t inbox_messages = 4096;                // more are dropped
    std::uint64_t inbox_bytes = 256ull << 20;           // more are dropped
    std::uint64_t partial_bytes_sender = 128ull << 20;  // messages half received, from one sender
    std::uint64_t partial_bytes = 256ull << 20;         // and from all
    Nanos partial_wait = 10 * second;                   // since the last fragment; then the message is dropped
    Nanos cut_after = 2 * second;                       // a send held past its deadline: then the connection is cut
    Nanos probe_after = 10 * second;  // a withdrawn posting held: then it is found out whether its sender's host lives

    // Over which card another daemon is reached, where it has several.
    Nanos way_patience = second;         // for faster ones than one over which it has answered
    Nanos way_at_most = 3 * second;      // for any; then it is tried where it always was
    Nanos way_doubt = 2 * second;        // nothing went through: then all of them are tried
    Nanos way_look_again = 30 * second;  // at faster ones than the one in use
};

// A network card over which daemons are reached or reach this one.
struct FabricCard {
    std::string interface;
    std::uint32_t rate_mbps = 0;  // 0: not known
    std::size_t nodes = 0;        // other daemons that are reached over it now
};

// What happened, for status and tests. Counts since open.
struct FabricCounters {
    std::uint64_t messages_sent = 0;
    std::uint64_t messages_received = 0;
    std::uint64_t messages_dropped = 0;    // inbox full, fragments missing, late or malformed
    std::uint64_t payloads_discarded = 0;  // nobody had posted the tag
    std::uint64_t connections_cut = 0;
    std::uint64_t provider_errors = 0;
    std::uint64_t operations_held = 0;  // now: withdrawn or past their deadline, buffer still held
};

class FabricNetwork final : public Network {
  public:
    // invalid_argument: no such provider, interface or address (says which there are). The first call of a process
    // reads libfabric's parameters from the environment and fills in some for its duration: call it before starting
    // threads.
    static Result<std::unique_ptr<FabricNetwork>> open(Loop& loop, const FabricSettings& settings);
    ~FabricNetwork() override;

    Address self() const override;  // "tcp://192.0.2.7:40123", "efa://<hex>"
    Task<Status> send(Address to, Bytes message, Nanos deadline) override;
    Channel<Bytes>& inbox() override;
    Task<Status> send_payload(Address to, std::uint64_t tag, Slice data, Nanos deadline) override;
    Status post_payload(std::uint64_t tag, Slice into) override;
    Task<Result<std::uint64_t>> wait_payload(std::uint64_t tag, Nanos deadline) override;

    FabricCounters counters() const;
    // In the order of preference. Empty: of another provider than tcp, or loopback.
    std::vector<FabricCard> cards() const;
    // The one in use: over which most others are reached, the first while there are none; and why.
    FabricCard card() const;
    const std::string& card_choice() const;

  private:
    explicit FabricNetwork(std::shared_ptr<FabricCore> core);
    std::shared_ptr<FabricCore> core_;
};

}  // namespace cairn
