// Who takes over work from whom, and how many leaders a flush gets. Pure functions of what leaders measured.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "model/plan.hpp"

namespace cairn {

// What the coordinator knows of one leader's work in one part while a flush runs.
struct LeaderLoad {
    NodeIndex leader = 0;
    std::uint64_t unstarted_bytes = 0;  // nobody has begun to fetch or write them
    std::uint64_t begun_bytes = 0;      // it has begun with them: they stay its own
    double bytes_per_s = 0;             // it wrote lately; 0: not measured yet
    bool moving = false;                // work is on its way from this leader or to it
    bool full = false;                  // the part has no room for more
    std::uint32_t target = 0;           // where the part lies; the same for all where that is not known
    std::uint32_t part = 0;
    bool took = false;  // a moment ago: gives none, else work that nobody is seen to write could go round for ever
};

// The parts of one leader. One that is done with a part could go on there as fast as its card allows beside what it still writes elsewhere, and
// that once: its best part stands for all that are done, at the most it ever wrote (`most_bytes_per_s`, all parts together) less what it writes
// now, but no faster than it wrote there, and only where it did. Until rates have settled a part that was not measured yet may be about to take
// what is left of the card.
std::vector<LeaderLoad> loads_of(std::vector<LeaderLoad> parts, double most_bytes_per_s, bool settled);

// The same where the leader's card decides (model/card.hpp): its parts share that card, and when one of them is done the others get what it had. So
// they end together, and as long as any is left no other begins anything.
std::vector<LeaderLoad> loads_of_card(std::vector<LeaderLoad> parts);

// Work that should change hands: from a leader's part into another's, or into another part of its own that lies on a faster target.
struct Shift {
    NodeIndex from = 0, to = 0;
    std::uint64_t bytes = 0;
    std::uint32_t from_part = 0, to_part = 0;
    bool operator==(const Shift&) const = default;
};

// The shifts that would let all leaders end at the same time, one after the other, each leader in at most one: water filling. All bytes not written over all rates is when
// everybody would end; the leader that is farthest behind that gives, the one farthest ahead takes, as much as brings the nearer of the
// two there. A leader with nothing left to begin takes at once. One that is still busy takes only when rates have settled (`settled`)
// and the difference is worth the trouble, since estimates waver: work that is moved twice travels twice.
//
// Leaders of one target help each other first, and gladly: it holds the same bytes afterwards. What goes to another target makes targets
// unequal, so there the difference must be more than leaders differ by chance (of `elapsed_s`, the flush so far).
std::vector<Shift> next_shifts(std::vector<LeaderLoad> loads, std::uint64_t block_bytes, double elapsed_s, bool settled);

// How many nodes write: the fewest that reach what was best lately, since more writers than storage can serve cost the application and
// everybody else at the file system, and win nothing.
class LeaderChoice {
  public:
    // Of `most` nodes that may lead, for so many parts. `most` first, then about an eighth fewer as long as that loses nothing: a multiple of the
    // parts, since a leader of two ties their targets together, and never more than a quarter fewer at once, which may make a try a third longer. Where that
    // leaves nothing to try (K above 3/8 of the nodes), all write.
    std::uint32_t next(std::uint32_t files, std::uint32_t most);
    void record(std::uint32_t leaders, std::uint64_t bytes, double seconds);
    // Whether each should write what it holds where all lead: the cards decided lately, as more leaders saw than saw the contrary.
    bool keep_own() const { return keep_own_; }
    void record_cards(std::uint32_t full, std::uint32_t with_room);
    // What was measured says nothing of how it goes from now on.
    void begin_anew() { measured_.clear(); }

  private:
    bool keep_own_ = false;
    bool is_due(std::uint32_t leaders) const;  // to be tried, or tried again
    struct Measured {
        double bytes_per_s = 0;  // the better of the last two: noise only ever slows down
        double before = 0;
        std::uint64_t at = 0;    // flush
        std::uint32_t times = 0;
    };
    std::map<std::uint32_t, Measured> measured_;
    std::uint64_t flushes_ = 0;
};

}  // namespace cairn
