// Yielding: the daemon looks at the application while a flush moves data, and sets the limits of the flush (engine/pace.hpp) by it.
//
//   every rank of this node waits for Cairn       no limits: nobody is in the way
//   the application communicates, or is about to  nothing moves; asked again every 25 to 250 ms
//   it communicates without pauses                the caps, of memory's the same share as of the card
//   else                                          the caps alone
//
// An application that computes and communicates in turns is what this is made for: the flush moves while it computes. What slows an exchange
// down is what the flush has under way when it begins, so for a while after any communication that is kept small too, and where exchanges come
// at regular times (daemon/rhythm.hpp) nothing is begun shortly before.
#pragma once

#include <functional>
#include <optional>

#include "daemon/rhythm.hpp"
#include "daemon/traffic.hpp"
#include "engine/pace.hpp"

namespace cairn {

struct YieldSettings {
    PaceLimits caps;
    double share_busy = 1;            // of the card, while the application communicates without pauses; 1: does not matter whether it does
    std::uint64_t busy_bytes_s = 1;   // received or sent, from which on it communicates
    Nanos quiet = 100 * millisecond;  // for so long after that it still does
    std::string link;                 // directory of a card's counters; empty: the one that the daemons use
};

// What was seen since the last look.
struct YieldSample {
    Nanos now = 0;
    std::uint64_t application_bytes = 0;  // the larger of received and sent
    std::uint64_t link_bytes = 0;         // the same, of all that the card carried
    std::uint64_t own_bytes = 0;          // the same, of what the flush moved, over whichever card
    bool all_wait = false;                // every rank of this node waits for Cairn
};

// The rule alone: samples in, limits out.
class YieldPolicy {
  public:
    explicit YieldPolicy(YieldSettings settings) : settings_(std::move(settings)) {}
    void begin(Nanos now);  // a flush begins to move data
    PaceLimits next(const YieldSample& sample);

    double link_bytes_s() const { return link_bytes_s_; }  // of the card: the most that was seen. What drivers say is worth little
    bool our_card() const { return our_card_; }
    Nanos communicated() const { return communicated_; }   // sums since the start
    Nanos all_waited() const { return all_waited_; }

  private:
    void measure_link(const YieldSample& sample);
    void measure_communication(const YieldSample& sample, Nanos span);
    // The application communicates or is about to.
    bool should_close(const YieldSample& sample, Nanos span);

    YieldSettings settings_;
    Rhythm rhythm_;
    double pauses_ = 1;       // part of the last seconds that is left to a flush that keeps out of the application's way
    bool our_card_ = true;    // what the flush moves goes over the card that is looked at
    double link_bytes_s_ = 0;
    Nanos begun_ = 0, last_ = 0;
    std::optional<Nanos> busy_;  // the last time
    Nanos window_ = 0;           // of link_bytes_
    std::uint64_t link_bytes_ = 0;
    std::uint64_t link_total_ = 0, own_total_ = 0;  // since this flush began
    Nanos communicated_ = 0, all_waited_ = 0;
};

class Yielding {
  public:
    // The ranks' processes on this node, and whether all of them wait.
    struct Ranks {
        std::set<std::uint64_t> processes;
        bool all_wait = false;
    };
    // `card`: the name of the interface that the daemons' traffic goes over; asked at each flush. Empty: not known.
    Yielding(Clock& clock, Pace& pace, const YieldSettings& settings, std::function<std::string()> card);
    // Ends at once where there is nothing to do.
    Task<void> run(std::function<Ranks()> ranks);

  private:
    void begin(const std::function<Ranks()>& ranks);
    void look_at_card();
    YieldSample look(const Ranks& ranks);
    std::uint64_t of_others(const Traffic& link);
    void tell() const;
    void tell_what_is_looked_at() const;

    Clock& clock_;
    Pace& pace_;
    YieldSettings settings_;
    YieldPolicy policy_;
    bool told_elsewhere_ = false;
    std::optional<ApplicationTraffic> application_;
    std::function<std::string()> card_;
    std::string interface_;  // that is looked at
    std::optional<LinkCounters> link_;
    Traffic link_before_;
    PaceCounters own_before_;
    std::uint64_t in_before_ = 0, out_before_ = 0;  // under way at the last look
    Nanos begun_ = 0, cpu_before_ = 0;
    // At the beginning of this flush, for its last words.
    Nanos communicated_before_ = 0, all_waited_before_ = 0, held_back_before_ = 0, cpu_begun_ = 0;
};

}  // namespace cairn
