// Coordinator: one daemon decides on a version: it plans, watches the leaders, publishes, and says how the version ended.
//
//   all sizes known: planned ahead           (planner.hpp)
//   look: is it committed already?           (publisher.hpp)
//   gather: all nodes sealed                 (gatherer.hpp)
//   the job's turn: one flush at a time
//   plan, Lead to every leader               (planner.hpp)
//   Progress heard, work changes hands       (mover.hpp)
//   PartsDone of all: commit, one manifest   (publisher.hpp)
//   Ended to every node
//
// A leader that falls silent, or fails, ends the attempt: the next one writes under new names (rule 2), and what the old one may still write is looked at
// by nobody. An attempt that failed is tried again, at once and then after pauses, until the version is committed, cancelled or can not be complete any more.
#pragma once

#include "engine/coordinator/gatherer.hpp"
#include "engine/coordinator/mover.hpp"
#include "engine/coordinator/planner.hpp"
#include "engine/coordinator/publisher.hpp"
#include "engine/coordinator/replacer.hpp"
#include "engine/coordinator/target_maps.hpp"

namespace cairn::engine {

class Coordinator : CoordinatorRole {
  public:
    explicit Coordinator(Common& common);

    void hear(const FlightPtr& flight, NodeIndex from, message::ForCoordinator body);
    void hear_ahead(const JobPtr& job, Version version, NodeIndex from, message::ForCoordinatorAhead body);
    bool is_coordinating(const Flight& flight) const;
    bool has_all(const Flight& flight) const;  // every node said that it sealed it

  private:
    Task<void> coordinate(FlightPtr flight);
    std::string why_given_up(const Flight& flight, const Status& failed_before) const;
    Task<void> wait_for_news(FlightPtr flight, bool knew_of_cancel, Nanos& pause);
    Task<Status> attempt(FlightPtr flight);
    Task<void> sync_names(FlightPtr flight, std::vector<PartPlan> plan, Status* first_bad);
    Task<Status> make_below_roots(FlightPtr flight, const std::vector<PartPlan>& plan);
    void repeat(Flight& flight);
    std::optional<Status> contest_state(Flight& flight);
    std::optional<Status> silent_leader(Flight& flight);
    void on_begun(const JobPtr& job, Version version, NodeIndex from, message::Begun begun);
    void on_sealed(FlightPtr flight, NodeIndex from, message::Sealed sealed);
    void on_progress(Flight& flight, NodeIndex from, const message::Progress& progress);
    void on_parts_done(Flight& flight, NodeIndex from, message::PartsDone done);
    void on_cancel(FlightPtr flight, NodeIndex from, message::Cancel cancel);

    Gatherer gatherer_;
    Planner planner_;
    TargetMaps target_maps_;
    Mover mover_;
    Replacer replacer_;
    Publisher publisher_;
};

}  // namespace cairn::engine
