// Leader: one attempt to write this node's shares of a version's parts, for the coordinator who asked for it.
//
//   lead (lead.cpp): per part, at the same time
//     open, sized by its first leader                         (part_file.hpp)
//     receive: Want for each free buffer ----> followers      (receiver.hpp)
//     W x write_loop: received first, then local data         (writer.hpp)
//     fsync, shares to the first leader, its footer, fsync    (part_file.hpp)
//   Progress every heartbeat; Shed and Take answered (moves.cpp)
//   PartsDone, until acknowledged
#pragma once

#include <deque>

#include "engine/leader/part_file.hpp"
#include "engine/leader/receiver.hpp"
#include "engine/leader/writer.hpp"

namespace cairn::engine {

class Leader : LeaderRole {
  public:
    explicit Leader(Common& common);

    void hear(const FlightPtr& flight, NodeIndex from, message::ForLeader body);
    bool is_leading(const Flight& flight) const;
    void on_end(Flight& flight);
    // A payload begins to go out from this node: what is given is called when it is over (Follower::WatchSend).
    std::function<void(std::uint64_t, std::uint64_t)> watch_send(Flight& flight);
    // A version's attempt refers back to it: before both go.
    void let_go(Flight& flight);
    std::uint64_t buffer_bytes() const noexcept { return ring_.buffer_bytes(); }

  private:
    // lead.cpp
    void on_lead(FlightPtr flight, message::Lead lead);
    void on_acknowledged(Flight& flight, const message::Acknowledged& acknowledged);
    void on_leave(Flight& flight, const message::Leave& leave);
    Task<void> lead(std::shared_ptr<Attempt> attempt);
    void begin_part(Attempt& attempt, std::size_t place);
    Task<void> write_part(Attempt& attempt, PartState& part, std::size_t place);
    Task<void> report(std::shared_ptr<Attempt> attempt);
    void tell_progress(Attempt& attempt);
    void watch_coordinator(Attempt& attempt);

    // moves.cpp
    void on_shed(Flight& flight, const message::Shed& shed);
    void on_take(Flight& flight, message::Take take);
    void on_complete(Flight& flight, message::Complete finish);

    // replacing.cpp
    static bool has_untold_failure(const Attempt& attempt);
    void tell_failures(Attempt& attempt);
    void on_replace(Flight& flight, message::Replace replace);

    BufferRing ring_;
    RecentIds attempts_seen_{4096};  // that this node was asked to lead, or must not: whatever else is forgotten, none is led again
    Rooms rooms_;
    Receiver receiver_;
    PartFile part_file_;
    Trial trial_;
    Writer writer_;
};

}  // namespace cairn::engine
