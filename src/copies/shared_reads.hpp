// In which order the readers of one reading take its reads, where other ranks of the node read runs of theirs (shared_runs.hpp). Of this room alone.
//
// What others have made ready goes first, whichever run that is, so that shelves become free whatever this rank waits for; then runs that had to wait; then the next of the turns (read_turns.hpp). A run
// that another rank reads just now is passed, and comes later.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "copies/read_turns.hpp"
#include "copies/shared_runs.hpp"

namespace cairn {

struct ReadSource;

// Whoever wants any of it reads all of it.
bool is_read_whole(const StoredRun& run, const PartRead& read);

// Runs of bases have shelves apart from those of the version: who has claimed one of the latter may wait for some of the former.
struct Shelves {
    std::size_t first = 0, count = 0;
};
Shelves shelves_of(const SharedRuns& node, bool has_bases, std::uint32_t base);

// The runs of a part, by run; nothing: no two of the node's ranks have pieces of it, or it is not one that is shared. `base`: as in SharedRuns::Which.
std::vector<std::optional<SharedRuns::Shared>> runs_shared(const SharedRuns& node, const OpenVersion& version, std::size_t footer, Shelves shelves, std::uint32_t base);

class SharedReads {
  public:
    SharedReads(ReadSource& of, const std::vector<PartRead>& reads);

    struct Next {
        std::size_t index = 0;                            // of the read
        SharedRuns::Turn turn = SharedRuns::Turn::alone;  // mine, ready, failed or alone
        const SharedRuns::Shared* run = nullptr;          // null: no other rank of the node needs it
    };
    // Waits where there is nothing to do but that. Nothing: all are taken, or `failure` is one by now.
    Task<std::optional<Next>> next(const Status& failure);
    void ended(const Next& next);
    bool is_empty() const noexcept { return turns_.is_empty() && passed_.empty(); }  // all are taken

  private:
    using Turn = SharedRuns::Turn;
    void find_shared();
    std::optional<Next> try_next();
    std::optional<Next> next_waiting();
    std::optional<Next> next_passed();
    std::optional<Next> ask(std::size_t index);
    Next take(std::size_t index, Turn turn);

    ReadSource& of_;
    SharedRuns* const shared_;  // null: nothing is
    const std::vector<PartRead>& reads_;
    ReadTurns turns_;
    std::vector<bool> is_taken_, is_of_turns_;           // by read: by a reader; by its turn, and not ended
    std::map<std::size_t, SharedRuns::Shared> runs_;     // by read
    std::map<SharedRuns::Which, std::size_t> reads_of_;  // of these runs
    std::vector<std::size_t> passed_;                    // in their order
    std::set<SharedRuns::Which> being_read_;
    bool is_last_ = true;  // this rank reads nothing of the version afterwards
};

}  // namespace cairn
