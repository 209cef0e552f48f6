// Rooms: where in a part a run goes when nobody can know beforehand how long the runs before it are, because they are encoded, or whether they stay, because work
// may move to another part. The part's first leader hands out its space, run by run, so that the file has no gap however much shorter they become, and whatever left.
//
//   first leader                          another leader of the part
//                             <---------  Room, with a number, until it is answered: so many bytes
//   the next bytes of the part; the same ones
//   for a number that it knows  --------->  Roomed
//
// A leader asks when it begins a chunk, so that the answer comes while the bytes do: beside a busy card's queue it takes as long as a chunk. Only where a codec may
// shorten it, it asks when the chunk is encoded, because nobody knows its length before. Nor does anybody where equal pages are stored once (equal_pages.hpp).
//
// In a version of one part, without a codec and without equal pages, offsets are planned: every leader fills its own range and asks nobody, and work that moves goes where it would have
// gone. What lies side by side in that file is then of one node, which file systems that lock ranges like better. In a safetensors file every image has its place
// (model/tensor_places.hpp).
#pragma once

#include "engine/leader/side.hpp"

namespace cairn::engine {

// Does the first leader hand out the space of this version's parts, or is it planned? All leaders answer alike.
bool are_handed_out(const Attempt& attempt, Placement placement);

class Rooms : LeaderRole {
  public:
    Rooms(Common& common, BufferRing& ring);

    // A chunk of so many bytes is begun: its space is asked for, where it must be and no codec may shorten it.
    void ask_early(Attempt& attempt, PartState& part, PendingChunk& chunk, std::uint64_t bytes);
    // Where so many bytes of a chunk go, in the part's next free space. unavailable: the first leader did not say so in time. It is not
    // counted as lost: where the coordinator hears it, another plan with both of them would end the same way, so the next goes without this leader.
    Task<Result<std::uint64_t>> take(Attempt& attempt, PartState& part, PendingChunk& chunk, std::uint64_t bytes);

    void on_room(Flight& flight, NodeIndex from, const message::Room& room);
    void on_roomed(Flight& flight, const message::Roomed& roomed);

  private:
    void ask(Attempt& attempt, PartState& part, PendingChunk::AskedRoom& room, std::uint64_t bytes);
    static Result<std::uint64_t> hand_out(const Attempt& attempt, PartState& part, std::uint64_t bytes);
};

}  // namespace cairn::engine
