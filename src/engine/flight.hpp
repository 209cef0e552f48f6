// One version, seen from one node: its images here, how far it is, and a side of each role that only that role knows.
#pragma once

#include "copies/held.hpp"
#include "engine/job.hpp"
#include "engine/version_state.hpp"

namespace cairn::engine {

struct FollowerSide;
struct LeaderSide;
struct CoordinatorSide;

struct Flight : std::enable_shared_from_this<Flight> {
    Flight(World& world, VersionKey k, JobPtr j);
    VersionKey key;
    JobPtr job;
    Event news;  // anything of this version changed

    HeldImages images;
    VersionState state;
    Nanos since = 0;  // first heard of
    Nanos coordinator_heard = 0;

    // Each made by its role when it first has something to remember.
    std::shared_ptr<FollowerSide> follower;
    std::shared_ptr<LeaderSide> leader;
    std::shared_ptr<CoordinatorSide> coordinator;

    bool all_local_sealed() const { return images.size() == job->own_ranks().size(); }
    // What waiters are told; one that is said again is no new one.
    void fail(Status failure);
};
// Who announces a version, decides on it, leads or reads holds it until he is done: one that nobody holds may be forgotten.
using FlightPtr = std::shared_ptr<Flight>;

inline HeldImagesPtr images_of(const FlightPtr& flight) { return {flight, &flight->images}; }

}  // namespace cairn::engine
