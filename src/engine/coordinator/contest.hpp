// An attempt at a version, as its coordinator sees it: the plan, what each leader was told and said, and the work that changes hands. Plain state.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "engine/job.hpp"
#include "model/balance.hpp"
#include "model/card.hpp"
#include "model/contents.hpp"
#include "model/merging.hpp"

namespace cairn::engine {

// What the coordinator remembers of an attempt.
struct LeaderTrack {
    message::Lead lead;
    Nanos heard = 0;
    bool answered = false;
    bool declined = false;       // gave nothing when it was asked, and has not told of its progress since
    Nanos again = 0, pause = 0;  // when it is told once more, as long as it did not
    std::optional<message::PartsDone> done;
    message::Progress progress;       // the newest
    bool progress_known = false;      // it tells of all that was given to this leader
    double most_bytes_per_s = 0;      // it ever wrote, all parts together
    std::uint32_t takes = 0;          // moves to it
    std::map<Rank, ImageInfo> images; // that came into parts it is the first leader of, for its Complete
};
// Work on its way from one leader to another.
struct Move {
    NodeIndex from = 0, to = 0;
    std::uint32_t from_part = 0, to_part = 0;
    std::uint64_t bytes = 0;            // asked for
    std::optional<message::Take> take;  // given by `from`, on its way to `to`
};
// A part whose storage failed (replacer.hpp).
struct Replaced {
    std::string why;
    std::optional<message::Replace> with;  // what its first leader is told, once that is known
};
struct Contest {
    Id128 attempt_id;
    std::uint32_t attempt = 0;
    Nanos begun = 0;
    std::uint64_t block_bytes = 0;
    bool keep_own = false;                // cards decide: each leader writes what it holds
    std::uint64_t pack_bytes = 0;         // SpacePolicy's
    std::string codec;                    // of all its leaders; empty: none
    KeyEfforts keys;                      // as in Lead
    std::string trial;                    // a codec that all its leaders try; empty: none
    bool encode_at_follower = false;
    Version base = 0;                     // as in Lead
    MergePolicy merge;
    bool equal_pages = false;             // as in Lead
    MergePolicy trial_merge;              // that all its leaders try
    std::vector<PartPlan> plan;
    std::vector<std::string> node_targets;  // as in Manifest
    std::vector<std::uint32_t> targets;   // of each part, as a number: without targets all are alike
    std::map<NodeIndex, LeaderTrack> leaders;
    std::size_t open = 0;                 // leaders that have not reported
    std::optional<NodeIndex> failed;      // one that reported why it can not
    Nanos looked = 0;                     // when it was last seen to that no leader is silent
    Nanos shifted = 0;                    // when work was last compared
    bool shift_due = false;               // somebody waits to do so
    std::map<std::uint32_t, Move> moves;  // under way, by number
    std::uint32_t moves_begun = 0;
    std::vector<std::uint64_t> part_space_bytes;  // of each part: planned for it, and come into it from others
    std::set<std::uint32_t> full;         // parts that have no room for more of it
    std::map<std::pair<NodeIndex, std::uint32_t>, Nanos> took;  // when a leader last took work into a part
    bool finishing = false;               // no more moves
    bool may_replace = false;             // as in Lead
    std::vector<Moved> moved;             // then: all work that went from one part to another
    std::map<std::uint32_t, Replaced> replaced;  // by part; the parts that came in their places stand at the end of `plan`
    std::optional<std::uint32_t> irreplaceable;  // one of these, for which no target is left
    bool may_be_published = false;        // from here on its manifest may stand, whatever we are told: its parts stay
    bool stands = false;                  // its manifest is the version's
    AddressBook addresses;                // the job's when it began
    std::optional<NodeIndex> unsendable;  // what this leader must be told is longer than a message can be
    std::optional<NodeIndex> restarted;   // its daemon was started again since: what it was asked for is forgotten
};

// One of its parts was replaced, and the leader of the new one has not said yet that it knows.
bool awaits_replacement(const Contest& contest);
bool says(const message::Progress& progress, std::uint32_t part);

// What leaders reported of each part, by its number; null: nobody did. Where one was replaced it is the file that was complete: a leader that reported does not hear of it any more.
std::vector<const PartInfo*> reported_parts(const Contest& contest, const Job& job);

// One Lead to every leader: its own shares with their sources; of the others' what it needs to work with them.
void make_leads(Contest& contest, const Job& job, const std::vector<NodeImages>& nodes);

// Whether the footer of each part can tell what the plan puts there: else it would be found out when all is written. Of what is merged it has a piece for each turn, at most: leaders make none shorter.
Status check_sizes(const Contest& contest, const std::vector<NodeImages>& nodes, bool is_tensors);

}  // namespace cairn::engine
