// The images that a node holds in scratch, with what is known of their checksums, and their reads. Checksums are made at the first read, whoever wants
// the bytes; where they came with the image that read compares them, and an image that is not what was captured is not flushed.
//
// To read mapped memory is to touch it, on a thread that nobody can call back: where scratch does not give a page, that thread stays
// there. So nobody waits for a read itself, only for news of it, with a bound; and bytes that are being read are not read a second time beside it,
// which would only cost another thread. A version whose image scratch does not give back fails by that name, attempt by attempt, and leaves its
// turn to later ones.
//
// An image that can be read once only, or is asked of who has it, comes into a buffer first (once.hpp).
//
// The bound is on progress: reads are done in the order in which they began, so one is only late from when all before it were done. And
// it is counted in heartbeats of this loop: while the daemon stood still (SIGSTOP, a suspended machine) no read could end either.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "copies/image_arrays.hpp"
#include "copies/once.hpp"
#include "copies/scratch.hpp"
#include "model/plan.hpp"
#include "world/gate.hpp"

namespace cairn {

struct HeldImage {
    LocalImage image;
    std::vector<std::uint64_t> unit_ends;  // in the image
    std::vector<std::uint64_t> checksums;  // by unit, like all below
    std::vector<bool> known;  // made, or compared with what was told
    std::size_t unknown = 0;
    bool is_told = false;  // the capture made the checksums, or an earlier daemon: the first read compares
    std::optional<std::pair<std::uint64_t, std::uint64_t>> damaged;  // from where to where in the image it found other bytes
    std::uint32_t users = 0;      // reads and writes under way that refer to the mapping
    bool may_be_written = false;  // a write into its slot outlived its deadline
    std::shared_ptr<OnceState> once;  // of one that is read into buffers
    std::shared_ptr<ImageArrays> arrays;
};
HeldImage held_image(LocalImage image, Describers describers = {});

// Of one version, by rank. Whoever reads shares in the ownership, and keeps every image in its place until it is done.
using HeldImages = std::map<Rank, HeldImage>;
using HeldImagesPtr = std::shared_ptr<HeldImages>;

// The bytes of a range of an image; invalid_argument where it has none there, or where it is no whole units.
Result<Slice> held_bytes(const HeldImage& held, const Source& source);

// Of whole units of an image, made or told; nothing where some are not made yet. Whoever uses them compares.
std::optional<UnitChecksums> known_checksums(const HeldImage& held, const Source& source);

// Whether some of these bytes could be read once only, and were: no more than what a buffer still holds of them is to be had.
bool is_used_up(const HeldImage& held, const Source& source);

// Of the source's bytes.
FindArrays arrays_of(const HeldImage& held, const Source& source);

class HeldReads {
  public:
    // Those that run do so in this gate, which is destroyed before the images are. buffer_bytes: of each of the buffers of once.hpp.
    HeldReads(World& world, Gate& gate, Nanos heartbeat, Nanos io_wait, std::uint64_t buffer_bytes);
    HeldReads(const HeldReads&) = delete;

    // A range of an image, and its checksums: of the mapping, or of a buffer that is kept as long as the slice is. not_found: it is not held, or is used up.
    // Ends early, as cancelled, when nobody wants it any more (`over`).
    Task<Result<HeldBytes>> bytes_of(HeldImagesPtr images, Source source, WantedFor use, std::function<bool()> over);

  private:
    Task<Result<UnitChecksums>> checksums_of(HeldImagesPtr images, Source source, std::function<bool()> over);
    // Units of an image that are being read for the first time.
    struct Read {
        const HeldImage* of = nullptr;
        std::size_t first = 0, end = 0;
        Nanos waited = 0;  // since it was at the front
        std::shared_ptr<Event> ended = nullptr;
        bool covers(const HeldImage& held, std::size_t unit) const { return of == &held && unit >= first && unit < end; }
    };

    Read next_to_read(const HeldImage& held, std::size_t first, std::size_t end) const;
    Task<void> make(HeldImagesPtr images, Rank rank, Read read);
    Task<void> watch();
    Status check(const HeldImage& held, std::size_t first, std::size_t end) const;
    Task<void> keep(HeldImagesPtr images, Rank rank);

    World& world_;
    Gate& gate_;
    const Nanos heartbeat_, io_wait_;
    std::map<std::uint64_t, Read> reads_;  // under way, in the order in which they began
    std::uint64_t begun_ = 0;
    bool watched_ = false;  // by one task: each adds to their waits
    OnceReads once_;
};

}  // namespace cairn
