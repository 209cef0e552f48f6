// What the roles of a node have in common: the world, where things lie, the settings, the pace, the node's sums, and the ways out: messages to members of
// the job, news to whoever waits. A role knows no other role: they meet in messages, also on one node. (What a follower sends over the card that a leader writes to, the router tells
// that leader.)
#pragma once

#include <functional>
#include <optional>

#include "catalog/layout.hpp"
#include "copies/held.hpp"
#include "engine/outbox.hpp"
#include "engine/pace.hpp"
#include "engine/settings.hpp"
#include "storage/driver.hpp"

namespace cairn::engine {

// Of one node. Owned by the router, whose gate is destroyed before this is.
struct Common {
    Common(World w, Layout l, FlushSettings s, Gate& g);
    World world;
    const Layout layout;
    const FlushSettings settings;
    Gate& gate;
    Pace pace;  // before all whose coroutines hold passes
    Event changed;
    NodeCounters counters;
    Outbox outbox;
    HeldReads reads;
    std::shared_ptr<const PlacementTargets> targets = std::make_shared<PlacementTargets>();
    std::function<bool(Id128)> has_unseen_images = [](Id128) { return false; };
    Describers describers;  // of what files in images say
    std::optional<Nanos> stopping;  // since when
    std::function<void(Flight&, const message::Ended&)> end;  // the coordinator's word on a version, from wherever it came

    std::unique_ptr<StorageDriver> storage_driver(const Job& job) const;  // as its roots and the targets of persistent are now
    void update(Flight& flight);  // something changed that somebody may wait for
};

// The table of what a role does at each message.
template <class... Handlers>
struct Hears : Handlers... {
    using Handlers::operator()...;
};
template <class... Handlers>
Hears(Handlers...) -> Hears<Handlers...>;  // clang 14 does not deduce an aggregate's

class Role {
  protected:
    explicit Role(Common& c) : common(c), world(c.world), layout(c.layout), settings(c.settings), gate(c.gate), pace(c.pace), counters(c.counters) {}
    bool send(const Flight& flight, NodeIndex to, message::Body body) { return common.outbox.send(flight, to, std::move(body)); }
    bool send_to_coordinator(const Flight& flight, message::Body body) { return send(flight, flight.job->coordinator(), std::move(body)); }
    bool send_to(const Flight& flight, NodeIndex to, Address address, message::Body body) {
        return common.outbox.send_to(flight, to, std::move(address), std::move(body));
    }

    Common& common;
    World& world;
    const Layout& layout;
    const FlushSettings& settings;
    Gate& gate;
    Pace& pace;
    NodeCounters& counters;
};

// Of a wait that ended so late: a daemon that stands still (SIGSTOP, a batch system) hears nobody meanwhile.
inline Nanos stood_still(Nanos late, const FlushSettings& settings) { return late > settings.heartbeat ? late : 0; }

// The job's own record of its start: where it is not to be seen, another file system is mounted at persistent, and nothing counts that is found there.
Task<Status> check_record(Common& common, FlightPtr flight);

// The address that a node's daemon has put on record beside the job's roster. Where there is none, the one of the open stays.
Task<Result<Address>> address_on_record(Common& common, FlightPtr flight, NodeIndex node);

}  // namespace cairn::engine
