// Follower: the node's own images of a version. It says that they are sealed until the coordinator ends the version, and gives the bytes of any range of
// them to whoever asks. It knows of no attempt, no leader and no plan.
//
// Who asks may have the bytes encoded, into a buffer of the follower's own. There are few, and nobody waits for one: what can not be encoded now goes out raw.
#pragma once

#include <deque>
#include <map>

#include "engine/ring.hpp"
#include "engine/role.hpp"

namespace cairn::engine {

struct FollowerSide {
    bool announcing = false;
    std::optional<NodeIndex> unsealed;  // a node that the coordinator still waited for when it was last heard
    // Requests answered lately, so that a repeated one does not send its payload twice; tag 0: being worked on.
    std::map<std::uint64_t, message::Chunk> served;
    std::deque<std::uint64_t> served_order;
};

class Follower : Role {
  public:
    // Called when a payload begins to go out; what it gives is called when that is over, with the bytes that went and the raw bytes that they are. Somebody on
    // this node may want to know what its card carries, and what of its images is gone.
    using WatchSend = std::function<std::function<void(std::uint64_t, std::uint64_t)>(Flight& flight)>;

    Follower(Common& common, WatchSend watch_send);

    void hear(const FlightPtr& flight, NodeIndex from, const Address& address, message::ForFollower body);
    // An image is being filled: once all of the node's are, or are sealed, the coordinator may plan with their sizes.
    void on_begun(const Job& job, const VersionKey& key, const HeldImages& sealed);
    // An image was sealed. The first one of a version begins to be announced.
    void on_image(const FlightPtr& flight);
    void on_end(Flight& flight);  // remembered for a while yet, but not what it took
    std::optional<NodeIndex> unsealed(const Flight& flight) const;

  private:
    static FollowerSide& side(Flight& flight);

    // announce.cpp
    Task<void> announce(FlightPtr flight);
    Task<void> read_coordinators_address(FlightPtr flight);
    Task<void> learn_alone(FlightPtr flight);
    void on_noted(FlightPtr flight, const message::Noted& noted);

    // serve.cpp
    void on_want(FlightPtr flight, NodeIndex from, Address address, message::Want want);
    void answer_want(Flight& flight, NodeIndex from, Address address, message::Chunk chunk, bool ends_with_version);
    Task<void> serve(FlightPtr flight, NodeIndex from, Address address, message::Want want, ReasonRow reason);
    Task<std::vector<NumberArray>> arrays_told(const HeldImage& held, const Source& source, Nanos until);
    Task<Slice> encoded(const Job& job, const message::Want& want, const HeldImage& held, Slice raw, message::Chunk& chunk);

    BufferRing encoding_;
    WatchSend watch_send_;
};

}  // namespace cairn::engine
