// Pace: the background work of a node gives way to the application. Whoever moves data asks first (`admit`), chunk by chunk, and waits its turn
// where a limit says so: bytes a second through the network card each way, bytes a second through memory, CPU seconds a second, bytes under
// way at the same time; or nobody at all. Limits come from outside and may change at any moment; they hold for what is asked from then on, and for whoever waits.
//
// A bucket fills at its rate, and what is admitted may overdraw it: then the next one waits until the debt is paid. So a chunk of any size goes
// through, in one piece, and the rate holds over time. Buckets hold a twentieth of a second's worth: what was not used earlier is not made up for.
//
// Pacing delays, it never fails anything: a wait ends after `wait_max` whatever the limits say, which the engine makes a part of its I/O
// deadline. Whoever waits says by `over` when there is no use in waiting any more; whoever makes that true calls wake().
//
// Loop only. Works on the world's clock alone: the same in the simulated world.
#pragma once

#include <functional>
#include <list>

#include "model/pace_step.hpp"
#include "world/world.hpp"

namespace cairn {

// 0: no limit.
struct PaceLimits {
    double in_bytes_s = 0, out_bytes_s = 0;  // through the network card
    double memory_bytes_s = 0;               // read from and written to memory
    double cores = 0;                        // CPU seconds a second
    std::uint64_t under_way_bytes = 0;       // admitted and not over yet, each way; one admission always may be
    bool closed = false;                     // nobody is admitted
    bool operator==(const PaceLimits&) const = default;
};

struct PaceCounters {
    std::uint64_t in_bytes = 0, out_bytes = 0;  // admitted
    Nanos waited = 0;                           // sum over admissions
};

class Pace {
    struct Lane;

  public:
    using Step = PaceStep;

    // Held while the bytes are under way.
    class [[nodiscard]] Pass {
      public:
        Pass() = default;
        Pass(Pass&& other) noexcept : lane_(std::exchange(other.lane_, nullptr)), bytes_(other.bytes_) {}
        Pass& operator=(Pass&&) = delete;
        ~Pass();

      private:
        friend class Pace;
        Pass(Lane* lane, std::uint64_t bytes) : lane_(lane), bytes_(bytes) {}
        Lane* lane_ = nullptr;
        std::uint64_t bytes_ = 0;
    };

    Pace(Clock& clock, Nanos wait_max);
    Pace(const Pace&) = delete;

    // First come, first served, each way; serve_at_once does not wait, and those who come later pay for it. Ends at once when `over` says so, at `until`, and after wait_max.
    Task<Pass> admit(Step step, std::uint64_t bytes, std::function<bool()> over, Nanos until = never);
    // Of what was admitted, so much will not go through the card after all: it came to be less on its way. For as long as its pass is held.
    void give_back(Pass& pass, std::uint64_t bytes);
    // What one write may be at most, so that a limit that tightens takes effect soon; a multiple of 64 KiB.
    std::uint64_t piece_bytes() const;
    Nanos wait_max() const noexcept { return wait_max_; }
    // Somebody waits now, or the last one waited a short while ago: who else waits for a buffer has to be patient.
    bool holds_back() const;

    void set_limits(const PaceLimits& limits);
    const PaceLimits& limits() const noexcept { return limits_; }
    void spent_cpu(Nanos used);  // since it was last told
    void wake();                 // an `over` may have changed

    // Data was moved within the last second, or waits for its turn.
    bool active() const;
    Event& begun() noexcept { return begun_; }  // it became active
    const PaceCounters& counters() const noexcept { return counters_; }
    // Admitted and not over: what of the above may not have reached the network yet.
    std::uint64_t under_way_in() const noexcept { return in_.under_way; }
    std::uint64_t under_way_out() const noexcept { return out_.under_way; }

  private:
    struct Bucket {
        double rate = 0, balance = 0;  // units a second; units
        Nanos at = 0;
        void fill(Nanos now);
        void set_rate(double wanted, Nanos now);
        void take(double units, Nanos now);
        void give_back(double units, Nanos now);
        Nanos opens_at(Nanos now);  // now: it is open
    };
    struct Lane {
        explicit Lane(Clock& clock) : turn(clock) {}
        Bucket bytes;
        std::uint64_t under_way = 0;
        std::list<const void*> waiting;  // in order
        Event turn;
    };
    struct Place;

    Lane& lane_of(Step step) { return step == Step::fetch ? in_ : step == Step::gather ? own_ : out_; }
    Nanos opens_at(Lane& lane, std::uint64_t bytes);
    void take(Lane& lane, Step step, std::uint64_t bytes);
    void note_activity();

    Clock& clock_;
    const Nanos wait_max_;
    PaceLimits limits_;
    PaceCounters counters_;
    Bucket memory_, cpu_;
    Lane in_, out_, own_;  // own_: what stays on this node
    Event begun_;
    Nanos moved_ = -never, held_back_ = -never;
};

}  // namespace cairn
