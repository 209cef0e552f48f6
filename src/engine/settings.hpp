// The settings of a flush, as the engine uses them: the daemon fills them from [flush] and [deadlines] (docs/settings.md).
#pragma once

#include <cstdint>
#include <vector>

#include "codec/codec.hpp"
#include "world/clock.hpp"

namespace cairn {

enum class Placement : std::uint8_t { append, interleaved, contiguous };  // ispdc23, Section III-B
// How a leader's writers share its local data: chunk by chunk, whoever is free (fgcs24, Algorithm 4), or whole images, dealt out to writers
// beforehand (ispdc23, Section III-A).
enum class LocalSplit : std::uint8_t { chunks, files };

enum class EncodeAt : std::uint8_t { leader, follower };

// How much is remembered, or said at once: bounds of memory and of messages that nobody needs to set. The simulated world makes them small, so that
// they are met.
struct FlushLimits {
    std::size_t versions = 64;                  // of a job, that ended and whose images have left scratch
    std::size_t answers = 4096;                 // to requests for data, of a version
    std::size_t message_units = 512u << 10;      // of what a leader tells of its share, in one message of a few MiB
    std::size_t message_pieces = 64u << 10;
    std::uint64_t equal_stretch_bytes = 64 << 10;  // as in leader/equal_pages.hpp: a shorter write is worth no more than its own round trip
    std::uint64_t equal_units = 3u << 18;        // known at once, of a leader: some 25 MiB
    std::size_t guests = 1024;                  // I/O node: jobs; the one longest silent is forgotten, and learned again when it speaks
    std::size_t strangers = 1024;               // I/O node: jobs that were looked for
};

inline constexpr std::uint64_t equal_pieces_max = 1u << 20;  // that share places in one part (leader/equal_pages.hpp): at most 200 of the 2048 MiB of its footer

inline constexpr Nanos durable_soon = 250 * millisecond;  // nobody waits for what is over by then: FlushSettings::codecs_soon of daemons

struct FlushSettings {
    std::uint32_t writers = 8;
    std::uint64_t buffer_bytes = 64ull << 20;
    std::uint32_t buffers = 8;                   // the ring of one leader; shared by its parts
    Placement placement = Placement::append;
    LocalSplit local_split = LocalSplit::chunks;
    std::uint32_t slots = 1;                     // files that a node writes at a time, with a file for each rank or node (leader/slots.hpp); 0: all
    std::uint32_t leaders = 0;                   // nodes that write; 0: as many as were best lately
    bool direct = false;
    Codec codec = Codec::none;                   // of the runs that it shortens
    std::vector<Codec> codecs;                   // not empty: of these or none, version by version, what makes them durable soonest (model/codec_choice.hpp)
    Nanos codecs_soon = 0;                       // then: a version that is durable so soon without one has none, and none is tried
    EncodeAt encode_at = EncodeAt::leader;       // what comes from other nodes
    std::uint32_t encode_buffers = 0;            // of a follower, besides the ring; none: it sends raw bytes
    std::uint32_t full_every = 1;                // of so many versions one is whole, and the others may be stored as what changed since; with a codec that takes a base
    std::uint32_t merge_ranks = 1;               // images of one node that share encoded runs, in versions with a codec and without a base; 0: merge_ranks_chosen, or 1, as trials say
    std::uint64_t merge_bytes = 32 << 10;        // of each by turns; in whole blocks
    bool equal_pages = false;                    // what images of one node have in common goes into a part once (leader/equal_pages.hpp), in versions without a base; they are not merged
    std::uint32_t attempts_max = 3;              // in a row, before the version's waiters are told; then again after retry_wait
    Nanos io_wait = 60 * second;                 // one read, write, fsync
    Nanos target_wait = 10 * second;             // of a part for which another storage target can be taken
    Nanos heartbeat = 500 * millisecond;
    Nanos peer_wait = 10 * second;               // silence after which a peer counts as lost
    Nanos version_wait = 600 * second;           // from the first seal to the last; then abandoned, naming the ranks
    Nanos retry_wait = 5 * second;               // after an attempt failed
    FlushLimits limits;
};

}  // namespace cairn
