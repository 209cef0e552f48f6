// Rhythm: when the application will communicate next. Iterative programs do so at regular intervals, step after step, and what a flush has on
// the card when an exchange begins is what the exchange loses: so it is better gone by then.
//
// The times at which exchanges began give the interval, as long as the last few agree, but for one of four. The first exchange of a flush comes as long after the
// flush began as the one before did, since both follow a checkpoint. An exchange that does not come is not waited for.
#pragma once

#include <deque>
#include <optional>

#include "world/world.hpp"

namespace cairn {

class Rhythm {
  public:
    void flush_begins(Nanos now);
    void exchange_begins(Nanos now);
    // One begins within `lead` (a quarter of the interval at most), or should have a moment ago.
    bool expects_one(Nanos now, Nanos lead) const;
    // Between the beginnings of exchanges; nothing while the last ones do not agree.
    std::optional<Nanos> interval() const;

  private:
    std::deque<Nanos> intervals_;       // the last few
    std::optional<Nanos> last_;         // exchange of this flush
    std::optional<Nanos> begun_;        // this flush
    std::optional<Nanos> first_after_;  // the last flush's first exchange, from its beginning
};

}  // namespace cairn
