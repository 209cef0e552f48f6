// Writer: chunks become runs in a leader's ranges of a part.
//
// fgcs24, Algorithm 5 (write loop) and Algorithm 4 (shared read of local data). W writers per leader share the write queue and the local
// data; received data goes first, so that its buffer is a credit again soon. Offsets are append-only in the leader's range and block
// aligned; where each went is kept apart, for the footer. A writer exits when no local data is left and the write queue is empty and
// the receiver is done - and the coordinator has said that no more work will change hands (moves.cpp).
//
// How much is begun at a time follows what the target takes: half a second's worth, in chunks of at most a writer's part of that. On a fast
// one that is a buffer a writer; on a slow one a few blocks, so that a leader never sits on work that another could do.
//
// Placement (ispdc23, Section III-B) decides the offset of a chunk:
//   append       the next free block of the range (the paper's own way, and the default)
//   interleaved  received: base + S (t_id + n_passes t_count), equation 2 as its prose means it; S is the buffer size
//   contiguous   received: each writer a region of recv_total / t_count, equation 1; it waits for data of that region
// In the latter two local data lies first, end to end, and `base` is where it ends; they are for one leader a part, and no work moves.
//
// Where the flush has a codec, a chunk that it may shorten is encoded into a buffer of the ring before it gets its place, so that its place (rooms.hpp) is as long as what
// is stored. What does not get shorter, or finds no buffer, is written as it is. What came encoded is written as it came. Without one, a chunk may be encoded on trial (trial.hpp).
//
// With equal pages a chunk of this node's own is first looked through for what this leader writes into the part anyway (equal_pages.hpp); what is left of it is written, stretch by stretch.
//
// Local data is anybody's, chunk by chunk; or, with the paper's split (ispdc23, Section III-A), each image belongs to one writer.
#pragma once

#include "engine/leader/part_file.hpp"
#include "engine/leader/rooms.hpp"
#include "engine/leader/trial.hpp"

namespace cairn::engine {

// What is known of a chunk that came, and of the images of this node in a pack, each where it lies in it. Of what nobody told, nothing.
FindArrays arrays_in(const Flight& flight, const PendingChunk& chunk);

class Writer : LeaderRole {
  public:
    Writer(Common& common, BufferRing& ring, PartFile& part_file, Rooms& rooms, Trial& trial);

    // What there is to do in the part, as the placement wants it.
    void lay_out(Attempt& attempt, PartState& part) const;
    // One of the part's writers, until there is nothing more to write in it, or the attempt is over.
    Task<void> write_loop(Attempt& attempt, PartState& part, std::uint32_t writer);

  private:
    struct Stored;
    Task<Stored> encoded(Attempt& attempt, PendingChunk& chunk, const HeldImage* held);  // held: where the chunk is this node's own
    Task<Status> write_paced(Attempt& attempt, const PartState& part, std::uint64_t offset, Slice data, bool received);
    Task<Status> read_local(Attempt& attempt, HeldImage& held, PendingChunk& chunk);
    void note_written(Attempt& attempt, PartState& part, std::uint32_t writer, PendingChunk chunk, StoredRun run, Nanos took);
    void look_for_equal_pages(const Attempt& attempt, PartState& part) const;
    Task<bool> is_same(Attempt& attempt, PartState& part, const PendingChunk& chunk, const std::vector<EqualPages::Match>& matches);
    Task<std::vector<PendingChunk>> without_equal(Attempt& attempt, PartState& part, PendingChunk chunk, const HeldImage& held);
    Task<Status> write_local(Attempt& attempt, PartState& part, std::uint32_t writer, PendingChunk chunk);
    Task<Status> write_chunk(Attempt& attempt, PartState& part, std::uint32_t writer, PendingChunk chunk, HeldImage* held, Nanos begun);
    void note_progress(Attempt& attempt, std::uint64_t bytes);

    PartFile& part_file_;
    Rooms& rooms_;
    Trial& trial_;
};

}  // namespace cairn::engine
