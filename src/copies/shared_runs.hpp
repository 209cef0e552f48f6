// Runs of which several ranks of a node need pieces: one of them reads and decodes such a run, and the others have it from there. Two files in the node's scratch, the same for all of them: a table,
// which each of them maps, and the raw bytes of runs, on shelves.
//
// A run belongs on one shelf, so whoever wants it looks in one place, and a claim is one word that changes: free -> being claimed -> claimed -> ready or failed -> free. A shelf is free again when all
// who have pieces of its run have left it or are done. All zeros are a valid table, so the first who comes makes it, and nobody has to wait for him.
//
// Nothing of it is trusted, and nothing waits without a bound: a claim is never taken from its owner, who may be slow or dead, and whoever has waited too long reads by itself. What is read of a shelf are bytes that
// the reader verifies as if they came from a part; a shelf that was given to another run meanwhile shows that by its word.
#pragma once

#include <compare>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/types.hpp"
#include "world/world.hpp"

namespace cairn {

// Where, and among whom.
struct SharedPlace {
    std::string directory;    // in the node's scratch; made if need be
    std::string series;       // what begins so there and is not of `name` is of a restart that is over
    std::string name;         // of this restore of this version, and of no other one
    std::vector<Rank> ranks;  // of this node, that read this version's parts; increasing
    Rank self = 0;            // one of them
    std::size_t shelves = 0;  // 0: as many as the ranks take
    std::string path(const char* what) const { return directory + "/" + series + "-" + name + "." + what; }
};

class SharedRuns {
  public:
    static constexpr std::uint64_t shelf_bytes = 4 << 20;  // a longer run is not shared; packs and merged runs are not longer (model/merging.hpp)
    static constexpr std::size_t shelves_max = 64;         // of a node; four for each rank, while there are so many

    // Each of the ranks, once. `patience`: how long nobody else need be seen to do anything.
    static Task<Result<std::unique_ptr<SharedRuns>>> open(World& world, SharedPlace place, Nanos patience, Nanos deadline);
    // Gives up what it has claimed, and has nobody wait for it any more. Said, not done by a destructor: whoever was killed does not do it.
    void leave();

    struct Which {
        std::uint32_t part = 0;  // as its footer numbers it; below 2^24
        std::uint32_t run = 0;   // there
        std::uint32_t base = 0;  // 0: of the version; else 1 + place among its bases; below 2^8
        auto operator<=>(const Which&) const = default;
    };
    // A run as all who share it know it.
    struct Shared {
        Which which;
        std::size_t shelf = 0;
        std::vector<Rank> ranks;  // who has pieces of it, of those above
    };

    enum class Turn : std::uint8_t {
        mine,      // claimed: it is to be read, and then given or failed
        ready,     // to be taken
        failed,    // who claimed it could not have it
        claimed,   // by another: it may be ready soon
        occupied,  // its shelf has another run, which others have not taken yet
        alone,     // it is not to be had here
    };
    Turn turn(const Shared& run);
    // Of a run that this rank has claimed. Whatever comes of it, the claim is over.
    Task<void> give(const Shared& run, Slice raw);
    void fail(const Shared& run);  // unless it was given
    // Bytes of a run that is ready, unless they are another's by now.
    Task<Status> take(const Shared& run, std::uint64_t offset, Slice into);
    // This rank needs nothing of it, or nothing more.
    void pass(const Which& which, std::size_t shelf);
    // Looks at all shelves. Who waits for one of them knows then how long the others stand as they are, and waits no second time for who is dead.
    void watch();
    // What stands on a shelf, ready or failed, for this rank, among others; nothing: nothing does.
    std::optional<Which> waiting(std::size_t shelf) const;

    const std::vector<Rank>& ranks() const noexcept { return place_.ranks; }
    Rank self() const noexcept { return place_.self; }
    std::size_t shelves() const noexcept { return shelves_; }

    struct Counts {
        std::uint64_t made = 0;   // read by this rank, and there for the others
        std::uint64_t taken = 0;  // from others
        std::uint64_t alone = 0;  // read by this rank, though they are shared
        std::uint64_t taken_of_bases = 0;  // of those taken
    };
    Counts counts;

  private:
    class Table;
    struct Watched {
        std::uint64_t word = 0, left = 0;  // how many it waits for
        Nanos since = 0;
        std::uint64_t given_up = 0;  // a claim that nobody waits for any more
    };
    SharedRuns(World& world, SharedPlace place, Nanos patience);
    Task<Status> open_files(Nanos deadline);
    Task<Result<BufferPtr>> make_table(Nanos deadline);
    Task<Result<FilePtr>> open_runs(Nanos deadline);
    Task<void> remove_older(Nanos deadline);
    bool stands_still(std::size_t shelf, std::uint64_t word);
    bool claim(const Shared& run, std::uint64_t word);

    World& world_;
    SharedPlace place_;
    Nanos patience_;
    std::size_t self_ = 0;  // its place among the ranks
    std::size_t shelves_ = 0;
    BufferPtr map_;
    FilePtr runs_;
    bool has_no_room_ = false;
    std::vector<Watched> watched_;  // by shelf
};

}  // namespace cairn
