// Restore, in this order: footers of the parts that hold the rank (open_version.cpp), and of its bases' (bases.cpp); the rank's pieces must tile its image; reads of up to a buffer, of each part
// in the order of offsets and of several parts by turns, a few in flight (read_turns.cpp, reading.cpp); every unit verified; then the sink. Here is which reads these are.
//
// A run of one piece is read unit by unit, as far as it is wanted. One of several pieces is small, and is read whole: what is wanted of it is verified alone,
// so that damage elsewhere in the run costs nobody anything. So is an encoded one, of whatever size: what all of them take has a bound (encoded_runs.hpp).
#include "copies/restore.hpp"

#include <algorithm>
#include <map>

#include "copies/reading.hpp"

namespace cairn {

namespace {

// The reads of one version, as they are planned.
class ReadList {
  public:
    ReadList(const OpenVersion& version, std::uint64_t buffer_bytes) : version_(version), buffer_bytes_(buffer_bytes) {}

    void add(const PiecePlace& place, const Wanted& wanted) {
        const StoredRun& run = version_.run(place);
        const StoredPiece& piece = version_.piece(place);
        if (!wanted.touches(piece.image_offset, piece.length)) return;
        const std::uint64_t block_bytes = version_.footers[place.footer].block_bytes;
        const std::uint64_t bytes_max = std::max(block_bytes, buffer_bytes_ / block_bytes * block_bytes);
        if (run.codec != 0 || (run.pieces.size() > 1 && run.stored_bytes <= bytes_max)) return add_whole(place, run);
        for (const ImageRange& units : wanted.units_in({block_bytes, piece.image_offset, piece.cuts}, piece.length, bytes_max))
            reads_.push_back({place.footer, place.run, {place.piece}, piece.at + units.offset - piece.image_offset, units.length, false});
    }

    // Front to back in one part after the other.
    std::vector<PartRead> take() {
        const auto place = [&](const PartRead& read) { return std::pair(read.footer, run_of(version_, read).part_offset + read.offset); };
        std::sort(reads_.begin(), reads_.end(), [&](const PartRead& a, const PartRead& b) { return place(a) < place(b); });
        return std::move(reads_);
    }

  private:
    void add_whole(const PiecePlace& place, const StoredRun& run) {
        const auto [found, fresh] = whole_.emplace(std::pair(place.footer, place.run), reads_.size());
        if (fresh) reads_.push_back({place.footer, place.run, {}, 0, run.stored_bytes, false});
        reads_[found->second].pieces.push_back(place.piece);
    }

    const OpenVersion& version_;
    std::uint64_t buffer_bytes_;
    std::vector<PartRead> reads_;
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> whole_;  // runs that are read whole: in reads_
};

}  // namespace

ImageRange image_run_of(const OpenVersion& version, const PartRead& read, std::uint32_t index) {
    const StoredRun& run = run_of(version, read);
    const StoredPiece& piece = run.pieces[index];
    const std::uint64_t raw_length = run.codec == 0 ? read.length : raw_bytes(run);
    const std::uint64_t begin = std::max(piece.at, read.offset), end = std::min(piece.at + piece.length, read.offset + raw_length);
    return {piece.image_offset + (begin - piece.at), end - begin};
}

Result<std::vector<PartRead>> plan_part_reads(const OpenVersion& version, const std::vector<WantedImage>& wanted, std::uint64_t buffer_bytes, bool is_tiled) {
    const std::string what = version_text(version.manifest.key);
    ReadList list(version, buffer_bytes);
    for (const WantedImage& each : wanted) {
        if (!version.image(each.rank))
            return not_found(what + " has no image of rank " + std::to_string(each.rank) + "; it was taken by " + std::to_string(version.manifest.ranks) + " ranks");
        if (!is_tiled) TRY(check_tiling(version, each.rank).within(what));
        const Wanted of_rank(each.ranges);
        std::uint64_t begin = each.ranges.empty() ? 0 : UINT64_MAX, end = each.ranges.empty() ? UINT64_MAX : 0;
        for (const ImageRange& range : each.ranges) begin = std::min(begin, range.offset), end = std::max(end, range.offset + range.length);
        const std::vector<PiecePlace>& pieces = version.pieces(each.rank);
        auto at = std::partition_point(pieces.begin(), pieces.end(), [&](const PiecePlace& place) { return version.piece(place).image_offset + version.piece(place).length <= begin; });
        for (; at != pieces.end() && version.piece(*at).image_offset < end; ++at) list.add(*at, of_rank);
    }
    return list.take();
}

Task<Status> read_parts(World& world, Layout layout, const OpenVersion& version, std::vector<PartRead> reads, Receiving to,
                        RestoreSettings settings, EncodedRuns* encoded, OnBad bad) {
    EncodedRuns own(world, settings.encoded_bytes);
    ReadSource source{world, std::move(layout), settings, version, encoded ? *encoded : own};
    Reading r{source, std::move(reads), {}, {}};
    r.deliver = [&](const StoredPiece& piece, std::uint64_t at, Slice data) { return to.take(piece.rank, piece.image_offset + at, std::move(data)); };
    if (to.memory) r.straight = &to;
    r.bad = [&](const PartRead& read, const StoredPiece& piece, ImageRange unit, Status status) {
        Status named = std::move(status).within(version_text(version.manifest.key) + ": " + place_text(version, read, piece, unit));
        return bad ? bad(piece.rank, std::move(named)) : named;
    };
    Status status = co_await read_runs(r);
    co_return status;
}

Task<Status> restore_image(World& world, Layout layout, const OpenVersion& version, Rank rank, std::vector<ImageRange> ranges,
                           ImageSink sink, RestoreSettings settings) {
    std::vector<WantedImage> wanted;
    wanted.push_back({rank, std::move(ranges)});
    Result<std::vector<PartRead>> reads = plan_part_reads(version, wanted, settings.buffer_bytes);
    if (!reads.ok()) co_return std::move(reads).status();
    const RankSink of_rank = [&sink](Rank, std::uint64_t offset, Slice data) { return sink(offset, std::move(data)); };
    Status status = co_await read_parts(world, layout, version, std::move(reads).value(), of_rank, settings);
    co_return status;
}

std::vector<PartRead> plan_all_reads(const OpenVersion& version, std::uint64_t buffer_bytes) {
    ReadList list(version, buffer_bytes);
    const Wanted everything({});
    for (std::size_t footer = 0; footer < version.footers.size(); ++footer)
        for (std::size_t run = 0; run < version.footers[footer].runs.size(); ++run)
            for (std::size_t piece = 0; piece < version.footers[footer].runs[run].pieces.size(); ++piece)
                if (version.holds(footer, version.footers[footer].runs[run].pieces[piece].rank)) list.add({footer, run, static_cast<std::uint32_t>(piece)}, everything);
    return list.take();
}

}  // namespace cairn
