// Trial: what a codec would make of a version that is not encoded with it. A piece of one chunk is encoded when this leader's data are written, and what is made is thrown away: the coordinator learns
// of it with PartsDone, of this version or of the next (model/codec_choice.hpp). A trial waits for no buffer, and nobody waits for a trial: before the data are written it would take the processor from
// their checksums.
#pragma once

#include "engine/leader/side.hpp"

namespace cairn::engine {

class Trial : LeaderRole {
  public:
    Trial(Common& common, BufferRing& ring);

    // A chunk with these bytes is about to be written. `held`: its image, if it is this node's.
    void offer(Attempt& attempt, const PendingChunk& chunk, const HeldImage* held);
    // All of the part's data are written.
    void begin(Attempt& attempt, PartState& part);
    // What codecs did on this node lately, for its report.
    std::vector<message::CodecRate> seen(const Attempt& attempt) const;

  private:
    Task<void> run(FlightPtr flight, Tried tried);
};

}  // namespace cairn::engine
