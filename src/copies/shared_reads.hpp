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

class SharedReads {
  public:
    // `shared` null: nothing is. `kept`: what it keeps needs no other rank.
    SharedReads(World& world, SharedRuns* shared, const OpenVersion& version, const std::vector<PartRead>& reads, const EncodedRuns& kept);

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
    std::vector<std::optional<SharedRuns::Shared>> shared_of(std::size_t footer) const;
    std::optional<Next> try_next();
    std::optional<Next> next_waiting();
    std::optional<Next> next_passed();
    std::optional<Next> ask(std::size_t index);
    Next take(std::size_t index, Turn turn);

    World& world_;
    SharedRuns* shared_;
    const OpenVersion& version_;
    const std::vector<PartRead>& reads_;
    const EncodedRuns& kept_;
    ReadTurns turns_;
    std::vector<bool> is_taken_, is_of_turns_;           // by read: by a reader; by its turn, and not ended
    std::map<std::size_t, SharedRuns::Shared> runs_;     // by read
    std::map<SharedRuns::Which, std::size_t> reads_of_;  // of these runs
    std::vector<std::size_t> passed_;                    // in their order
    std::set<SharedRuns::Which> being_read_;
    bool is_last_ = true;  // this rank reads nothing of the version afterwards
};

}  // namespace cairn
