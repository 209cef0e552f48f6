// What the parts of a leader have in common: its buffers, and what it remembers of a version.
#pragma once

#include <algorithm>

#include "engine/leader/attempt.hpp"
#include "engine/ring.hpp"
#include "engine/role.hpp"

namespace cairn::engine {

class LeaderRole : protected Role {
  protected:
    LeaderRole(Common& c, BufferRing& r) : Role(c), ring(r) {}
    static LeaderSide& side(Flight& flight) {
        if (!flight.leader) flight.leader = std::make_shared<LeaderSide>();
        return *flight.leader;
    }

    // One operation on a part's file. Where another target can take its place nobody waits as long as for storage that is all there is.
    Nanos part_wait(const Attempt& attempt, const PartState& part) const { return attempt.can_replace(part) ? std::min(settings.io_wait, settings.target_wait) : settings.io_wait; }
    // One on its name. Targets of one file system have their directories in common, so that it may wait for another target than its own; roots do not.
    Nanos path_wait(const Attempt& attempt, const PartState& part) const { return attempt.flight->job->root_of(part.plan.target) != 0 ? part_wait(attempt, part) : settings.io_wait; }
    // Without direct I/O all that was written may have to go to storage first.
    Nanos sync_wait(const Attempt& attempt, const PartState& part) const { return settings.direct ? part_wait(attempt, part) : settings.io_wait; }

    // Bytes that could be read once only, and that nobody has any more: no attempt can succeed. Said again by the next one, should it be lost.
    void tell_used_up(const Attempt& attempt, const Status& why) { send_to_coordinator(*attempt.flight, message::Cancel{why.text(), attempt.lead.attempt_id}); }

    // What a codec did here, for the coordinator's choice.
    static void note_encoded(Job& job, Codec codec, std::uint64_t raw_bytes, const Encoded& made) {
        job.codecs_seen[codec].add(raw_bytes, made.bytes == 0 ? raw_bytes : made.bytes, static_cast<double>(made.took) / second);
        note_keys(job, codec, raw_bytes, made);
    }
    // The same of its keys alone.
    static void note_keys(Job& job, Codec codec, std::uint64_t raw_bytes, const Encoded& made) {
        const std::optional<Effort> effort = effort_of(codec);
        if (effort) job.keys_seen.add({0, *effort, raw_bytes, made.bytes == 0 ? raw_bytes : made.bytes, static_cast<std::uint64_t>(made.took)}, made.keys);
    }

    BufferRing& ring;
};

}  // namespace cairn::engine
