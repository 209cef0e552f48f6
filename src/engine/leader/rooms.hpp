// Rooms: where in a part several leaders' runs go when nobody can know beforehand how long they are, because they are encoded. The part's first leader hands out
// its space, run by run, so that the file has no gap however much shorter they become.
//
//   first leader                          another leader of the part
//                             <---------  Room, with a number, until it is answered: so many bytes
//   the next bytes of the part; the same ones
//   for a number that it knows  --------->  Roomed
//
// Where offsets are planned (no codec) every leader fills its own range and asks nobody: what lies side by side in a file is then of one node, which file systems
// that lock ranges like better.
#pragma once

#include "engine/leader/side.hpp"

namespace cairn::engine {

class Rooms : LeaderRole {
  public:
    Rooms(Common& common, BufferRing& ring);

    // Where so many bytes go, in the part's next free space. unavailable: the first leader did not say so in time.
    Task<Result<std::uint64_t>> take(Attempt& attempt, PartState& part, std::uint64_t bytes);

    void on_room(Flight& flight, NodeIndex from, const message::Room& room);
    void on_roomed(Flight& flight, const message::Roomed& roomed);

  private:
    static Result<std::uint64_t> hand_out(const Attempt& attempt, PartState& part, std::uint64_t bytes);
};

}  // namespace cairn::engine
