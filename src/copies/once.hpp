// Images that can be read once only: memory that its owner takes back, a stream.
//
// A range of one is read into a buffer, and its checksums are made from there: what they are of is what is sent or written, however often. The buffer keeps the
// range until another one needs it, so that whoever asks for it again, because it came damaged or not at all, may have it still. Once that is over, the range
// is used up, and the version can not be committed any more: its flush says so to the coordinator.
//
// What is asked of a source that has it (image_source.hpp) comes into these buffers, too, which the source can write to. It is used up by nothing but the source's
// end: whatever no buffer keeps any more is asked for again.
//
// There are two buffers for what is sent, and two for what this node writes itself, besides those of the ring: one is emptied while the other is filled. Whoever
// finds none waits. Whoever writes may hold one while the application goes first (engine/pace.hpp), and whoever waits for an answer would not know why.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "copies/image_source.hpp"
#include "model/plan.hpp"
#include "world/world.hpp"

namespace cairn {

// What was read of an image, by unit. Its address is the image's identity: a buffer may outlive what it was read from.
struct OnceState {
    std::vector<bool> used;
    std::shared_ptr<ImageSource> source = nullptr;  // null: each byte can be read once
    bool is_gone = false;                           // the source
    bool is_any_used(std::size_t first, std::size_t end) const;
};

// Checksums of raw bytes, one a unit, and how they are divided.
struct UnitChecksums {
    std::vector<std::uint64_t> checksums, cuts;
};

// What bytes are wanted for: to be sent or copied at once, or to be written.
enum class WantedFor : std::uint8_t { sending, writing };

// A range of an image in hand.
struct HeldBytes {
    Slice data;
    UnitChecksums sums;
};

class OnceReads {
  public:
    static constexpr std::size_t buffers_each = 2, buffers_most = 2 * buffers_each;

    // buffer_bytes: of each buffer; one that a longer range needs is as long as that.
    OnceReads(World& world, Nanos heartbeat, Nanos io_wait, std::uint64_t buffer_bytes);
    OnceReads(const OnceReads&) = delete;

    struct Range {
        std::shared_ptr<OnceState> of;
        Rank rank = 0;
        std::uint64_t offset = 0;         // in the image
        std::size_t first = 0, end = 0;   // units
        Slice raw;
        Units units;
    };
    // not_found: it is used up; deadline: none of the buffers came free for so long, or the image did not answer; cancelled: `over`.
    Task<Result<HeldBytes>> take(Range range, WantedFor use, std::function<bool()> over);

  private:
    struct Kept {
        BufferPtr base;
        WantedFor use = WantedFor::sending;
        std::weak_ptr<OnceState> of;
        std::size_t first = 0, end = 0;  // units
        std::uint64_t length = 0, number = 0;
        UnitChecksums sums;
        bool reading = false;
        bool is_given = false;  // memory of a source
    };
    using KeptPtr = std::shared_ptr<Kept>;

    KeptPtr find(const Range& range) const;
    Result<KeptPtr> a_free_one(const Range& range, WantedFor use);
    Task<Status> copy(const Range& range, Slice into);
    Task<Status> read(const Range& range, KeptPtr into);
    HeldBytes lend(const Kept& kept) const;

    World& world_;
    const Nanos heartbeat_, io_wait_;
    const std::uint64_t buffer_bytes_;
    std::vector<KeptPtr> kept_;
    std::uint64_t taken_ = 0;
    struct Freed;
    std::shared_ptr<Freed> freed_;  // shared with the deleters of what was lent
};

}  // namespace cairn
