// Trial: what a codec would make of a version that is not encoded with it, and what merging makes of data. A piece of one chunk, or turns of several images, are encoded when this leader has reported
// its parts, and what is made is thrown away: the coordinator learns of it with the next version's PartsDone (model/codec_choice.hpp, model/merging.hpp). Of a version that takes long the trial begins
// when its data are written, and is told with its own: it is short beside that. A trial waits for no buffer, and nobody waits for a trial: earlier it would take the processor from checksums, footers
// and fsyncs.
//
// Where a version is merged another codec is tried on turns, too: what it makes of one image alone says little of what it would make of several.
#pragma once

#include "engine/leader/side.hpp"
#include "model/merging.hpp"

namespace cairn::engine {

// What is known of turns that lie end to end, of what is known of the stretches that they are from, all of which begin at the same place in their images.
FindArrays arrays_by_turns(Pack stretches, std::vector<FindArrays> arrays, Pack turns);

class Trial : LeaderRole {
  public:
    Trial(Common& common, BufferRing& ring);

    // A chunk with these bytes is about to be written. `held`: its image, if it is this node's.
    void offer(Attempt& attempt, const PendingChunk& chunk, const HeldImage* held);
    // Of what was offered, and of this node's images; once an attempt.
    void begin(Attempt& attempt, PartState& part);
    // What codecs did on this node lately, for its report; and what merging did, which is told once.
    std::vector<message::CodecRate> seen(const Attempt& attempt);
    std::uint32_t encoders(const Attempt& attempt) const;  // threads that encode at once

    // The same stretch of each of several images, and the turns that they would give to a run.
    struct Sample {
        Pack stretches, turns;
        std::vector<FindArrays> arrays;  // of each stretch
    };
    // Of images that would be merged, as many as there is room for: other ones and another stretch in each version.
    std::optional<Sample> sample_of(const Attempt& attempt) const;

  private:
    struct Todo {
        std::optional<Tried> piece;
        std::optional<Sample> sample;
        std::optional<Codec> by_turns;  // to be tried on the sample
        std::optional<Codec> compared;  // the same, and on each stretch of it
        bool tells_keys = false;        // alone: the version is encoded with that codec, but for some keys
        bool is_half() const { return (piece || by_turns) && compared; }
    };
    // Raw bytes, and what of a buffer may be used for what becomes of them.
    struct Encoding {
        Codec codec = Codec::none;
        Slice raw;
        FindArrays arrays;
        Slice room;
    };
    Todo todo_of(Attempt& attempt) const;
    Task<void> run(FlightPtr flight, Todo todo);
    Task<void> try_again(Job& job, Encoding encoding, const Todo& todo);
    Task<void> gather(Flight& flight, const Sample& sample, Rank rank, Slice into, bool* is_whole);
    Task<void> compare(Flight& flight, const Sample& sample, Encoding merged);
    Task<Result<Encoded>> encode(const Encoding& encoding);
};

}  // namespace cairn::engine
