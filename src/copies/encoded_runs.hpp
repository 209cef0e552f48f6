// Encoded runs in memory. Who wants any byte of a run with a codec needs all its stored bytes and all its raw ones, up to 2 GiB: so what the readers of one
// restore hold of them has a bound. A run that is wanted again soon (by a stream, which goes through the image piece by piece) is kept as long as nobody else needs the
// room, and not decoded again.
#pragma once

#include <compare>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "model/types.hpp"
#include "world/world.hpp"

namespace cairn {

class SharedRuns;

// Raw bytes of a run in memory: all of it, or some of its pieces.
struct RunBytes {
    Slice memory;
    std::map<std::uint32_t, std::uint64_t> places = {};  // in memory, of each of these pieces; none: all of the run
    // One of its pieces; no buffer: it is not here.
    Slice piece(std::uint32_t index, const StoredPiece& of) const {
        const auto found = places.find(index);
        if (!places.empty() && found == places.end()) return {};
        return memory.part(places.empty() ? of.at : found->second, of.length);
    }
};

// Of one opened version; those of its bases have as much besides.
class EncodedRuns {
  public:
    // At most `bytes_max` together, or one run that needs more, alone. `node`: which of them other ranks of the node read for this one, and the other way round; null: none.
    EncodedRuns(World& world, std::uint64_t bytes_max, SharedRuns* node = nullptr);
    SharedRuns* node() const noexcept { return node_; }

    // Goes back when it and all buffers that were made in it are gone, also those that a read or a decoding which outlived its deadline holds.
    using Room = std::shared_ptr<std::uint64_t>;  // how many bytes
    // deadline: in `patience` nobody gave any room back. Those who wait take what they find in any order; every run comes to its turn, the last one when all others are done.
    Task<Result<Room>> take(std::uint64_t bytes, Nanos patience);
    // Of room for several buffers that was taken at once, so many bytes by themselves.
    Room split(Room& room, std::uint64_t bytes);
    Result<Slice> allocate(Room room, std::uint64_t bytes);

    struct Which {
        std::size_t footer = 0, run = 0;
        std::uint32_t base = 0;  // 0: of the version; else 1 + place among its bases
        auto operator<=>(const Which&) const = default;
    };
    void keep(Which which, RunBytes bytes);
    Slice take_kept(Which which);  // no buffer: it is to be decoded
    bool keeps(Which which) const;
    std::optional<RunBytes> kept(Which which) const;  // and stays
    void drop(Which which);                           // nobody wants it again
    bool has_room(std::uint64_t bytes) const;         // without anything that is kept going for it

    // The encoded runs of bases. Who waits for their memory may hold some of this, and nobody waits the other way round.
    EncodedRuns& of_base();
    // Of a base, whose runs may be wanted by several who read at once: what is kept, and stays. No buffer: it is the caller's to decode, and to give to all others, who wait for it.
    Task<Slice> share(Which which, Nanos patience);
    void shared(Which which, Slice raw);  // no buffer: it can not be had, and who waits tries himself

  private:
    struct Kept {
        Which which;
        RunBytes bytes;
    };
    std::vector<Kept>::const_iterator find(Which which) const;
    struct Held {
        explicit Held(Clock& clock) : less(clock) {}
        std::uint64_t bytes = 0;
        Event less;
    };
    Room room_of(std::uint64_t bytes);

    World& world_;
    const std::uint64_t bytes_max_;
    SharedRuns* const node_;
    std::shared_ptr<Held> held_;  // shared with all room, which may outlive this
    std::vector<Kept> kept_;      // those go first that were kept first
    std::vector<Which> decoded_now_;
    Event decoded_;
    std::unique_ptr<EncodedRuns> of_base_;
};

}  // namespace cairn
