// Model: how fast the simulated machine is. Faults: what goes wrong, how often. Both may be changed while a simulation runs.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "world/clock.hpp"

namespace cairn::sim {

// A file made as NAME + target_mark + n lies on storage target n, as NAME; a part of a version made without lies on that of its number, modulo
// how many there are.
constexpr std::string_view target_mark = "@target:";

// A kind of data, as codecs see it.
struct CodecKey {
    double share = 1;  // of all data
    double rate = 5e9, stored_min = 0.2, stored_max = 1.1;  // as in Model
};

// Rates are bytes per second, each served first come, first served; 0 is infinitely fast.
struct Model {
    std::string scratch = "/scratch";        // every node's own; lost at a crash
    std::string persistent = "/persistent";  // shared by all nodes

    double scratch_rate = 8e9;             // of a node
    double persistent_rate = 200e9;        // of the whole file system
    double persistent_client_rate = 10e9;  // of a node
    std::map<std::uint32_t, double> persistent_client_rates;  // of single nodes, by number
    std::vector<double> target_rates;      // of storage targets. None: no limit. See target_mark
    std::set<std::size_t> targets_gone;    // of these the mark means nothing any more: a file made with it keeps it in its name
    double nic_rate = 12.5e9;              // of a node, in and out each
    double checksum_rate = 20e9;           // of a process
    double codec_rate = 5e9;               // of a process, raw bytes
    double decode_rate = 5e9;              // the same, back
    bool codec_shrinks = false;            // that it may is what may_shrink() says of everything; of nothing otherwise
    double stored_min = 0.2, stored_max = 1.1;  // what a codec makes of a byte, drawn from the content
    std::vector<CodecKey> codec_keys = {};      // instead of these, where data are of several kinds, of which the content draws one for each run

    Nanos scratch_latency = 5 * microsecond;
    Nanos persistent_latency = 200 * microsecond;
    Nanos fsync_latency = 2 * millisecond;  // on top, of the shared file system
    Nanos network_latency = 5 * microsecond;

    Nanos clock_apart_max = 0;  // every process's clock is ahead of Simulation::now() by up to this
    std::uint64_t wall_time_s = 0;        // seconds since 1970 when the simulation begins; 0: there is no such time
    std::uint64_t wall_apart_max_s = 0;   // every node's wall clock is before or after the true one by up to this

    std::uint64_t scratch_bytes_max = UINT64_MAX;     // of a node; beyond it out_of_space
    std::uint64_t persistent_bytes_max = UINT64_MAX;  // of the whole file system
    std::uint64_t buffer_bytes_max = UINT64_MAX;      // what a process may allocate() together
    bool persistent_forgets = true;  // a crash decides what of the unsynced stays; false, where none can come: no second state is kept
    std::uint64_t map_bytes_max = 64ull << 20;        // larger maps have no data()
    // What a process draws, and its address, follow from its node, its name and how many of that name ran there before, and not from how many
    // processes there ever were: whoever compares states of different runs wants the same of them named the same.
    bool named_processes = false;
};

// Probabilities are per operation or message.
struct Faults {
    double short_transfer = 0;   // a read or write does less than asked
    double read_error = 0;       // EIO
    double write_error = 0;      // EIO; some of the data may have been written
    double metadata_error = 0;   // EIO of open, create, publish, remove, list, ...: before or after it took effect
    double out_of_space = 0;     // ENOSPC of a write, a resize, a new file or directory
    double fsync_error = 0;      // unsynced data of the file are of unknown fate from then on
    double slow_io = 0;          // takes up to slow_io_max longer
    Nanos slow_io_max = second;
    double hang_io = 0;          // does not return: half of them come back within hang_io_max, half never do
    Nanos hang_io_max = 60 * second;

    double slow_scratch = 0;     // as slow_io, of scratch alone: its files, and what is mapped of them when its checksums are made
    double hang_scratch = 0;     // as hang_io, of the same
    double stale_read = 0;       // from some page on what stood there before anything was written: zeros; shared only
    double other_read = 0;       // the bytes of another page of the same file, and those behind it; shared only
    double wall_set = 0;         // of a look at the wall clock: its node's was set to another time before, as far off as Model says

    double encode_error = 0;     // no memory for it

    double message_loss = 0;
    double message_repeat = 0;
    double message_delay = 0;    // up to message_delay_max later, which also reorders
    Nanos message_delay_max = second;
    double payload_loss = 0;
    double payload_delay = 0;
    double payload_damage = 0;   // a bit of it is another one on arrival
    double send_error = 0;       // a send reports unavailable; the message may have left
    double peer_loss_told = 0;   // how often a payload to a dead or cut-off peer fails at once instead of at its deadline

    double resize_lost = 0;      // says ok and does nothing; shared only
    double grow_lost = 0;        // of two nodes that make a file longer one after the other, one's write becomes a hole; shared only
    double twin_open = 0;        // an open for writing of a file that is there gets another one, as large, that nobody else sees; shared only

    double room_untrue = 0;      // a look at a file system's room finds none, though there is; shared only

    double publish_renames = 0;  // publish() takes the first name away, as RENAME_NOREPLACE does

    // Everything below this path of the shared file system, as if that were another one in trouble. Empty: nothing.
    std::string below;
    // EIO; ENOSPC; no name is there, and what is open goes on; nothing that begins returns; it says that nothing is free, and takes all
    enum class Below : std::uint8_t { fails, full, away, hangs, seems_full } below_is = Below::fails;

    // Which way it goes, of what goes wrong. Who tries every way says 0 or 1, or which.
    double error_done = 0.5;     // of an operation on names or a message that fails: it took effect nevertheless
    double hang_never = 0.5;     // of what hangs: it never returns
    Nanos hang_io_min = 0;       // else not before
    Nanos message_delay_min = 0;
    enum class Left : std::uint8_t { nothing, part, all, under_way, drawn } left = Left::drawn;  // happens of what a process had under way when it died
    enum class Unsynced : std::uint8_t { lost, kept, some, drawn } unsynced = Unsynced::drawn;   // stays of what its node had not synced when it crashed
};

}  // namespace cairn::sim
