// Reading: what the readers of one restore or verification share, and the reads of one version's runs, decoded and verified. Of this room alone.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "copies/restore.hpp"

namespace cairn {

class SharedBases;

// A version as it is read from, or a base of it, which several runs of that version need at once.
struct ReadSource {
    World& world;
    Layout layout;
    RestoreSettings settings;
    const OpenVersion& version;
    EncodedRuns& encoded;
    std::uint32_t base = 0;  // 0: it is what is read; else 1 + place among the bases of that
    std::map<std::size_t, FilePtr> files = {};  // by footer; opened when something of them is read
    std::map<std::uint32_t, std::shared_ptr<ReadSource>> bases = {};  // by place; made when a run needs them
    std::shared_ptr<SharedBases> shared = {};  // runs of bases that other ranks of the node need as well; null: nothing is shared
    std::map<std::pair<std::size_t, std::size_t>, Status> stored = {};  // of a base whose encoded runs are not decoded: what is known of them, by footer and run
};

struct Reading {
    ReadSource& of;
    std::vector<PartRead> reads;
    std::function<Status(const StoredPiece&, std::uint64_t at, Slice)> deliver;  // verified bytes, from there on in the piece
    // A unit of a piece, from there on in it, that is not what it should be; ok: go on.
    std::function<Status(const PartRead&, const StoredPiece&, ImageRange unit, Status)> bad;
    const Receiving* straight = nullptr;  // whose memory what is stored as it is is read straight into; null: nobody's
    // Where encoded runs are not decoded: their stored bytes are right, and stand for so many bytes of a piece. Null: they are decoded.
    std::function<void(std::uint64_t raw)> stored_is_right = nullptr;
    Status failure = {};
    std::size_t buffers_lost = 0;  // to reads that did not come back
};

inline const StoredRun& run_of(const OpenVersion& version, const PartRead& read) { return version.footers[read.footer].runs[read.run]; }

// All reads, a few in flight, by turns of the parts (read_turns.hpp). Only parts of which something is read are opened.
Task<Status> read_runs(Reading& r);
Task<Status> open_files(ReadSource& of, const std::vector<PartRead>& reads);
// One of them. ok, or what `bad` made of a damaged block or of a failed read.
Task<Status> read_run(Reading& r, const PartRead& read, BufferPtr buffer);

// Where a unit of a piece is: block, as people count them in the part, and region.
std::uint64_t block_in_part(const OpenVersion& version, const PartRead& read, const StoredPiece& piece, ImageRange unit);
std::string region_of(const OpenVersion& version, const StoredPiece& piece, ImageRange unit);
std::string place_text(const OpenVersion& version, const PartRead& read, const StoredPiece& piece, ImageRange unit);  // with part and rank

// Every piece of every run that is this version's, of whatever rank.
std::vector<PartRead> plan_all_reads(const OpenVersion& version, std::uint64_t buffer_bytes);

}  // namespace cairn
