// Mover: work changes hands while a flush runs, so that no leader holds up the others (a slow target, a busy node, groups that turned out
// unequal).
//
//   coordinator                       leader behind                      leader ahead
//   Progress of every leader  <------------------------------------------------
//   next_shifts (model/balance)
//   Shed, until Given  ------------>  gives what it has not begun
//                      <------------  Given: sources, and their ranges
//   Take, until Taken  ------------------------------------------------>  its own from now on: fetches, writes
//                      <------------------------------------------------  Taken
//   nothing unstarted anywhere: Complete to all, no move after that
//
// A leader's work in one part is what is behind or ahead: one with parts on a slow and on a fast target moves work from one to the other.
// Within a part the sources keep the range they would have gone to: the end of the giver's, which it has not come to. Across parts they get
// a new one behind everything else of the other part. So no block has two writers, and no source is in two hands: a giver forgets before it
// answers, a taker begins after it was told, and each answer is remembered for whoever asks again. When a node dies in between, the
// attempt ends and all begins anew from the images. The leaders' side is in leader/moves.cpp.
#pragma once

#include "engine/coordinator/side.hpp"

namespace cairn::engine {

class Mover : CoordinatorRole {
  public:
    explicit Mover(Common& common);

    // Looks whether work should move, or is all begun: when a leader has told its progress.
    void shift_soon(Flight& flight);
    // Every heartbeat: what was not answered is said once more.
    void repeat(Flight& flight);
    void on_given(Flight& flight, NodeIndex from, message::Given given);
    void on_taken(Flight& flight, const message::Taken& taken);

  private:
    Task<void> shift_later(FlightPtr flight, Id128 attempt_id, Nanos when);
    void shift_work(Flight& flight);
    void repeat_moves(Flight& flight);
    void finish(Flight& flight);
};

}  // namespace cairn::engine
