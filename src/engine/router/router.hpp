// Router: it owns the jobs and the versions of a node, hears the network, and hands each message to the role that it is for. For other rooms there is node.hpp.
//
// A flush, from sealed images to a committed version, in the order in which it happens. Every arrow is a message, also on one node:
//
//   coordinator                              leader of shares of some parts                 follower
//   plan ahead       <--------------------------------------------------------------------  Begun, once: all sizes are known  (coordinator/planner.cpp)
//                    <--------------------------------------------------------------------  Sealed, until it has ended  (follower/announce.cpp)
//   look: is it committed already?                                                                (coordinator/publisher.cpp)
//   gather: all nodes sealed                                                                      (coordinator/gatherer.cpp)
//     Noted  ---------------------------------------------------------------------------->  waits, or lacks images
//   the job's turn: one flush of a job at a time
//   plan, Lead to every leader  --------->   lead: per part, at the same time                     (coordinator/planner.cpp, leader/lead.cpp)
//                                              open, sized by its first leader; Opened            (leader/part_file.cpp)
//                                              receive: Want for each free buffer  ------>  serve: Chunk, payload  (leader/receiver.cpp, follower/serve.cpp)
//                                              W x write_loop: received first, then local data    (leader/writer.cpp)
//                                              with a codec: Room, Roomed for each run            (leader/rooms.cpp)
//   work changes hands  <----------------->  Progress; Shed, Given, Take, Taken                   (coordinator/mover.cpp, leader/moves.cpp)
//   a part's storage fails  <------------->  PartFailed, Replace: written again, elsewhere        (coordinator/replacer.cpp, leader/replacing.cpp)
//   Complete: all is begun  ------------->   fsync; ShareDone, ShareKept; footer, fsync           (leader/part_file.cpp)
//                    <--------------------   PartsDone, until Acknowledged                        (leader/lead.cpp)
//   commit: one manifest                                                                          (coordinator/publisher.cpp)
//   Ended to every node  --------------------------------------------------------------->  its waiters are told  (router.cpp, end)
//
// Every arrow can be lost and is asked again. A leader that falls silent, or fails otherwise, ends the attempt (Leave): the next one writes under new names (rule 2), and
// what the old one may still write is looked at by nobody. Cancel, from any node, ends the version.
//
// Who owns what: the router owns jobs and flights; a flight owns what this node knows of one version; each role's side of it is the role's. Coroutines
// run in one gate, which goes first; those of a part in the part's, which its attempt outlives.
#pragma once

#include "engine/coordinator/coordinator.hpp"
#include "engine/follower/follower.hpp"
#include "engine/io_node/io_node.hpp"
#include "engine/leader/leader.hpp"
#include "engine/router/node.hpp"

namespace cairn {

struct Node::Impl : engine::IoNode::Jobs {
    Impl(World world, Layout layout, FlushSettings settings);
    ~Impl() override;

    Task<void> dispatch_network();
    Task<void> dispatch_local();
    void hear(ByteView bytes);
    engine::Job* job_of(const message::Message& message) const;  // null: not known here, or its sender does not know it
    void refuse_older(const message::Message& message, std::uint32_t version);
    void handle(message::Message message) override;
    template <class Body>
    void route(const message::Message& message, const engine::JobPtr& job, Body& body);
    template <class Body>
    void hand(const engine::FlightPtr& flight, NodeIndex from, const Address& address, Body& body);
    engine::FlightPtr flight_of(const VersionKey& key);  // null: its job is not known here
    engine::Flight* find(const VersionKey& key) const;
    void end(engine::Flight& flight, const message::Ended& ended);

    // forget.cpp
    void forget_old(Id128 incarnation);
    bool forget(Id128 incarnation) override;

    const std::map<Id128, engine::JobPtr>& known() const override { return jobs; }
    void join(Id128 incarnation, engine::JobPtr job) override { jobs[incarnation] = std::move(job); }

    engine::Common common;
    std::map<Id128, engine::JobPtr> jobs;
    std::map<VersionKey, engine::FlightPtr> flights;
    std::vector<VersionKey> order;  // of first sight
    engine::Coordinator coordinator;
    engine::Leader leader;
    engine::Follower follower;
    engine::IoNode io_node;
    bool newer_told = false;
    Gate gate;  // last: its coroutines refer to all of the above
};

}  // namespace cairn
