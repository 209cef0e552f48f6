// The rules of `cairn gc`: what may go, and why, or why it is spared. Pure, over what somebody else found: nothing here looks at files, clocks or daemons.
//
// A version goes only where nobody may still want it: it is old, and its job is over, or a newer one has committed in its place. What can not be known is
// spared. Where something goes although its job may live somewhere, a tombstone fences it (removal.hpp).
#pragma once

#include <string>
#include <vector>

#include "catalog/needed.hpp"
#include "catalog/removal.hpp"

namespace cairn {

// What speaks for a job being alive.
struct GcJob {
    bool is_over = false;         // no roster of it is on record: nobody publishes its versions any more
    bool is_served_here = false;  // a daemon of this host that answers, or does not say no, takes part in it
};

// One version of a series.
struct GcVersion {
    VersionKey key;              // incarnation.low 0: nothing tells whose it is
    bool is_committed = false;
    bool is_current = false;     // in the current lineage, as far as that can be told
    bool is_in_scratch = false;  // some image of it is in this host's scratch
    bool is_old = false;         // none of its files changed lately
};

struct GcSeries {
    std::vector<GcVersion> versions;
    Id128 head;  // the incarnation that a restart goes on from; zero: none
    bool head_is_certain = false;
    bool lineage_is_certain = false;
    bool head_is_on_record = false;  // the lineage has a record that it went on from some version
    std::vector<Dependent> dependents;  // of all versions
    bool may_be_current(const GcVersion& version) const { return version.is_current || !lineage_is_certain; }
};

struct GcAnswer {
    enum class Act : std::uint8_t {
        nothing,        // there is nothing to say
        spare,          // it stays, and that is said
        take,           // behind a tombstone, or that goes itself: `fence`
        take_unfenced,  // nothing names whose it is, so nobody can be kept from committing it
    };
    Act act = Act::nothing;
    std::string why;
    Fence fence = Fence::keep;
};

// Whether nobody needs the fence of a version that is not there (any more): its job is over, this host's scratch does not hold it, and a restart would
// not look for it. `gone`: what is removed together with it.
bool fence_can_go(const GcSeries& series, const GcVersion& version, const GcJob& job, const std::vector<VersionKey>& gone);

// An open that a newer one has gone on from, or left behind, and that committed: nobody waits for the older one's unfinished versions.
bool is_superseded(const GcSeries& series, Id128 incarnation);

// What would be taken, but for a version that depends on it and is not `gone`, taken before it: that stays as long as its dependent does.
GcAnswer unless_needed(GcAnswer answer, const GcSeries& series, const VersionKey& key, const std::vector<VersionKey>& gone);

// Parts without a manifest, and no image of them in this host's scratch: being flushed, or left behind. `unknown`: the operator says that no job runs.
GcAnswer judge_unfinished(const GcSeries& series, const GcVersion& version, const GcJob& job, bool unknown);
// A tombstone stands: nothing beside it can be named. It goes itself when nobody needs it. `has_parts`: there is more than the tombstone.
GcAnswer judge_given_up(const GcSeries& series, const GcVersion& version, const GcJob& job, bool has_parts);
// Committed, beside the current lineage, and the operator wants such to go.
GcAnswer judge_other_lineage(const GcSeries& series, const GcVersion& version, const GcJob& job);

// Committed, in the current lineage, and the rule (removal.hpp) lets it go.
GcAnswer judge_beyond_retention(const GcSeries& series, const GcVersion& version, const GcJob& job);

// The record of a job of this series. With a roster it counts as alive until it is superseded. Not while a daemon of this host serves it, which is for
// the caller to ask, and last: most records need no such question.
bool record_can_go(bool is_young, bool has_roster, bool is_superseded);

// Where ranks of `job` without MPI met. Zero incarnation: none is named there.
GcAnswer judge_meeting(const std::string& job, Id128 incarnation, bool is_young, const GcJob& evidence, bool unknown);

}  // namespace cairn
