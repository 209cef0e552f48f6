// Equal pages: what several images of this node have in common goes into a part once. A plain value; of one part at one leader.
//
// Units (model/checksum_units.hpp) of the leader's own images are known by their checksums, wherever in an image they lie. A chunk that is about to be written is looked through: what looks the same as
// something that this leader writes into the same part is compared with that, byte for byte (the writer does so), and where it is the same it becomes one more piece of that run. The rest of the chunk is
// written as ever, with or without a codec, and later chunks may be found to be like it. So each image keeps its own checksums of every byte, and no reader need know how a piece came to its place.
//
// A stretch is taken where it is worth a run that ends before it and one that begins behind it. Of what is known there is a bound: what comes when that is reached shares places, and gives none.
//
// Whoever gives a place may still be on its way into the part. If it does not arrive, the part as a whole counts no more, and all that shares the place with it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.hpp"
#include "model/types.hpp"
#include "world/buffer.hpp"

namespace cairn::engine {

struct EqualPagesLimits {
    std::uint64_t stretch_bytes = 0;  // the shortest that is shared, where it is not all of a chunk; and of its pieces half as much on average
    std::uint64_t units = 0;          // that are known at once
    std::uint64_t pieces = 0;         // that share places, all together: a footer has a bound
    std::uint64_t run_units = 0;      // checksums of one run, and pieces: what is told of it in one message
    std::uint64_t run_pieces = 0;
};

// Bytes of an image of this node that are about to be written, and its units; `checksums` has one for each.
struct OwnBytes {
    Rank rank = 0;
    std::uint64_t image_offset = 0, length = 0;
    const std::vector<std::uint64_t>& checksums;
    const std::vector<std::uint64_t>& cuts;
};

class EqualPages {
  public:
    EqualPages(std::uint64_t block_bytes, EqualPagesLimits limits) : block_bytes_(block_bytes), limits_(limits) {}

    // Whole units of a chunk that look the same as what lies in one run; from the chunk's beginning.
    struct Match {
        std::size_t place = 0;  // which of those that were kept
        std::uint64_t at = 0;   // in its run
        std::uint64_t offset = 0, length = 0;
        std::size_t first_unit = 0, units = 0;
    };
    // What the chunk is made of, in order. Without matches it is to be written.
    struct Stretch {
        std::uint64_t offset = 0, length = 0;
        std::size_t first_unit = 0, units = 0;
        std::vector<Match> matches;
    };
    std::vector<Stretch> look_through(const OwnBytes& own) const;
    // What is to be written and lies side by side becomes one stretch.
    static std::vector<Stretch> joined(std::vector<Stretch> stretches);

    // Will be written, as a run of one piece: others may share it from now on. `memory`: where it is read from. Nothing: as much is known as may be.
    std::optional<std::size_t> keep(const OwnBytes& own, const Buffer* memory);
    // It is the run of that number.
    void written(std::size_t place, std::size_t run) { places_[place].run = run; }

    // Memory of one of them did not come back: nothing more is looked for, since each look would wait as long.
    void forget();

    // Whose bytes lie at a match's place, and from which memory.
    struct Held {
        Rank rank = 0;
        std::uint64_t image_offset = 0;
        const Buffer* memory = nullptr;
    };
    Held held(const Match& match) const;
    // `own`, in which these were found, was compared. False: one of the runs, or all of them, have as many pieces as they may have by now.
    bool share(const std::vector<Match>& matches, const OwnBytes& own);

    // Adds what shares their places to the runs. internal: one of these was never written.
    Status attach(std::vector<StoredRun>& runs);

    std::uint64_t shared_bytes() const { return shared_bytes_; }

  private:
    struct Place {
        Rank rank = 0;
        std::uint64_t image_offset = 0;
        const Buffer* memory = nullptr;
        std::vector<std::uint64_t> checksums;
        std::vector<std::uint32_t> ends;  // of its units; empty, with the checksums: nothing is found in it
        std::optional<std::size_t> run;
        std::uint64_t units = 0;  // of its run, with those who share it
        std::vector<StoredPiece> sharing;
        std::uint64_t begin_of(std::size_t unit) const { return unit == 0 ? 0 : ends[unit - 1]; }
        std::uint64_t length_of(std::size_t unit) const { return ends[unit] - begin_of(unit); }
    };
    // A unit of a place. An open-addressed table of these has 16 bytes for each.
    struct Known {
        std::uint64_t checksum = 0;
        std::uint32_t place = 0;  // 1 + which; 0: nothing is known here
        std::uint32_t unit = 0;
    };
    bool has_room(const Place& place, std::uint64_t units, std::uint64_t pieces) const;
    bool is_like(std::size_t place, std::size_t unit, std::uint64_t checksum, std::uint64_t length) const;
    const Known* find(std::uint64_t checksum) const;
    void insert(Known known, bool repeats);
    void grow();
    bool is_worth(const Stretch& stretch, std::uint64_t chunk_bytes) const;

    std::uint64_t block_bytes_;
    EqualPagesLimits limits_;
    std::vector<Place> places_;
    std::vector<Known> known_;  // a power of two of them
    std::uint64_t count_ = 0;        // of these, in use
    std::uint64_t kept_units_ = 0;   // of places, known or not
    bool is_forgotten_ = false;
    std::uint64_t shared_bytes_ = 0, shared_pieces_ = 0;
};

}  // namespace cairn::engine
