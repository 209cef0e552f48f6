// Runs of bases that several ranks of a node need: which of them this rank still needs, and whose turn each is. One of the ranks reads and decodes such a run, like one of the version itself
// (shared_reads.hpp). Of this room alone.
//
// Whoever decodes a run with a base holds memory, and perhaps a claim, while it waits for runs of the base. So these have shelves of their own, and what stands ready there is taken into this rank's memory whenever
// one of its readers looks for something to do, whichever run needs it: shelves become free whatever a rank waits for. A rank without memory for that waits for no shelf, and reads by itself. Who
// has claimed a run of a base waits for memory and storage only.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "copies/reading.hpp"
#include "copies/shared_runs.hpp"

namespace cairn {

class SharedBases {
  public:
    // `memory`: that of encoded runs of bases.
    SharedBases(World& world, SharedRuns& node, EncodedRuns& memory, Nanos patience) : world_(world), node_(node), memory_(memory), patience_(patience) {}

    using Dependent = std::pair<std::size_t, std::size_t>;  // a run of the version: footer and run
    // Before anything is read: the reads of a base that it needs.
    void need(Dependent run, const ReadSource& base, const std::vector<PartRead>& reads);
    // It was read, by whomever.
    void has_been_read(Dependent run);

    // A run of a base that is read whole.
    struct Run {
        SharedRuns::Shared shared;  // of no ranks: no two of them need it
        EncodedRuns::Which which;
        const StoredRun* stored = nullptr;
        std::set<std::uint32_t> pieces = {};  // that runs of the version are decoded with
        std::uint32_t wanted = 0;             // by so many runs of the version that were not read yet
        bool is_busy = false;                 // a reader of this rank is about it
        bool is_alone = false;                // others were to have it, and had not, or something else
    };
    struct Next {
        std::size_t index = 0;                            // of the reads
        SharedRuns::Turn turn = SharedRuns::Turn::alone;  // mine, ready, failed or alone
        Run* run = nullptr;                               // null: no other rank of the node needs it
    };
    // Of these reads of a base, which are not empty. Waits where there is nothing to do but that. Nothing: `failure` is one by now.
    Task<std::optional<Next>> next(const ReadSource& base, const std::vector<PartRead>& reads, const Status& failure);
    void ended(const Next& next);

    // What is ready, as far as there is room. False: there is none for something.
    Task<bool> take_ready();
    // Into memory, whatever has to go for it. It may fail: then it is this rank's to read.
    Task<void> take(Run& run);

    SharedRuns& node() const noexcept { return node_; }

  private:
    using Shared = std::vector<std::optional<SharedRuns::Shared>>;
    Run& run_of_read(const ReadSource& base, const PartRead& read);
    Run* find(const ReadSource& base, const PartRead& read);
    std::optional<Next> ask(std::size_t index, Run* run, bool has_room);

    World& world_;
    SharedRuns& node_;
    EncodedRuns& memory_;
    Nanos patience_;
    std::map<std::pair<std::uint32_t, std::size_t>, Shared> shared_;  // by base and footer: of each run
    std::map<SharedRuns::Which, Run> runs_;
    std::map<Dependent, std::vector<Run*>> needs_;  // of those that were not read yet
};

}  // namespace cairn
