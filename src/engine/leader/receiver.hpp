// Receiver: data moves from followers to the leader, one credit at a time.
//
// fgcs24, Algorithm 3 (receiver): while data is missing, take a free buffer, let a follower fill it, put it on the write queue. The credit names the bytes
// wanted, so the leader decides the order (round robin over followers; by regions when placement is contiguous), and a chunk can change leaders without a
// word to the follower (moves.cpp).
//
// A pack of small images is gathered in one buffer: each comes with a request of its own, several at a time. Those of this node are copied, by a thread: to touch
// mapped memory here may be to wait for a disk on the loop.
//
// Checksums are made when an image is first read (copies/held.hpp), before a byte leaves the node; they travel with the chunk and are verified here. A chunk that comes
// encoded has one more, of the bytes that travel, which is the one that is verified here: those of the raw bytes are for whoever decodes it.
#pragma once

#include "engine/leader/rooms.hpp"

namespace cairn::engine {

class Receiver : LeaderRole {
  public:
    Receiver(Common& common, BufferRing& ring, Rooms& rooms);

    // Until all of the part's remote data are on its write queue and no more will come, or the attempt is over.
    Task<void> receive(Attempt& attempt, PartState& part);
    void on_chunk(Flight& flight, message::Chunk chunk);
    // Every heartbeat: a follower that owes something is asked once more, and given up when it was silent for too long.
    void watch_followers(Attempt& attempt);

  private:
    Task<void> fetch(Attempt& attempt, PartState& part, NodeIndex from, PendingChunk chunk);
    Task<void> fetch_pack(Attempt& attempt, PartState& part, Pack pack, PendingChunk chunk);
    struct PackFetch;
    Task<void> fetch_next(PackFetch& fetch);
    Task<Status> fetch_tries(Attempt& attempt, NodeIndex from, PendingChunk& chunk);
    Task<Status> take_another(Attempt& attempt, PendingChunk& chunk);
    void tell_missing(Attempt& attempt, NodeIndex from, const Source& source, Status why);
    void queue(Attempt& attempt, PartState& part, PendingChunk& chunk);
    Task<Status> keep_checksums(Attempt& attempt, PendingChunk& chunk, UnitChecksums told);
    Task<Status> keep_received(Attempt& attempt, PendingChunk& chunk, message::Chunk answer, std::uint64_t bytes);
    Task<Status> keep_encoded(Attempt& attempt, PendingChunk& chunk, message::Chunk answer, std::uint64_t bytes);
    Task<Status> fetch_own(Attempt& attempt, PendingChunk& chunk);
    Task<Status> fetch_once(Attempt& attempt, NodeIndex from, PendingChunk& chunk);

    Rooms& rooms_;
    std::uint64_t next_tag_;
};

}  // namespace cairn::engine
