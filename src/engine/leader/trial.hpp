// Trial: what a codec would make of a version that is not encoded with it. A piece of one chunk is encoded when this leader has reported its parts, and what is made is thrown away: the coordinator
// learns of it with the next version's PartsDone (model/codec_choice.hpp). Of a version that takes long the trial begins when its data are written, and is told with its own: it is short beside that.
// A trial waits for no buffer, and nobody waits for a trial: earlier it would take the processor from checksums, footers and fsyncs.
#pragma once

#include "engine/leader/side.hpp"

namespace cairn::engine {

class Trial : LeaderRole {
  public:
    Trial(Common& common, BufferRing& ring);

    // A chunk with these bytes is about to be written. `held`: its image, if it is this node's.
    void offer(Attempt& attempt, const PendingChunk& chunk, const HeldImage* held);
    // Of what was offered; once an attempt.
    void begin(Attempt& attempt, PartState& part);
    // What codecs did on this node lately, for its report.
    std::vector<message::CodecRate> seen(const Attempt& attempt) const;

  private:
    Task<void> run(FlightPtr flight, Tried tried);
};

}  // namespace cairn::engine
