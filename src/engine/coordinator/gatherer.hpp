// Gatherer: all nodes' words that their images of a version are sealed, with all sizes: what an election needs (fgcs24, Algorithm 1; the paper's
// all-gather within a group is one message per node here, answered with the plan).
//
// Nobody waits for ever: a version that some rank does not seal within version_wait is abandoned by name; its images stay in scratch, and
// when the missing ones turn up after all, the flush begins anew. A version that can not be committed any more is given up for all nodes: one that ranks went
// past (a newer one is committed, and their nodes say that they lack this one), and one that nobody has said for version_wait that he holds.
//
// Dedicated I/O nodes are called when a version begins to be sealed; those that answer before all of it is sealed, or within a heartbeat, lead; the others
// are absent, and from then on only called.
#pragma once

#include "engine/coordinator/side.hpp"

namespace cairn::engine {

class Gatherer : CoordinatorRole {
  public:
    explicit Gatherer(Common& common);

    // True when every node has said that it sealed the version; false when it was cancelled meanwhile, or can not be committed any more.
    Task<bool> gather(FlightPtr flight);
    // True when all nodes' images are there, or are again within peer_wait.
    Task<bool> wait_for_the_lost(FlightPtr flight);
    // Why a version will not become complete; nothing while it may.
    std::optional<std::string> why_never(const Flight& flight) const;
    // Not, where its node has another daemon on record.
    Task<Status> check_still_serves(FlightPtr flight);
    // To every node, and remembered for whoever asks.
    void tell_all(Flight& flight, const message::Ended& ended);
    // The answer of an I/O node, or of one that lacks images.
    void on_noted(Flight& flight, NodeIndex from);

  private:
    void tell_missing(Flight& flight);
    std::string missing_text(const Flight& flight) const;
    void call_io_nodes(FlightPtr flight);
    Task<void> read_io_address(FlightPtr flight, NodeIndex node);
    Task<void> hear_io_nodes(FlightPtr flight, Nanos since);
};

}  // namespace cairn::engine
