#include "read/alone.hpp"

#include <algorithm>
#include <set>

namespace cairn {

namespace {

// Of one version: what of it is read. A run that is encoded, or of several pieces, is read whole, and once (copies/restore.cpp).
struct Touched {
    std::set<std::pair<std::size_t, std::size_t>> whole;
    std::uint64_t bytes = 0, decoded_bytes = 0;
    void add(const PiecePlace& place, const StoredRun& run, std::uint64_t raw_length) {
        if (run.codec == 0 && run.pieces.size() == 1) {
            bytes += raw_length;
        } else if (whole.emplace(place.footer, place.run).second) {
            bytes += run.stored_bytes;
            if (run.codec != 0) decoded_bytes += raw_bytes(run);
        }
    }
};

const OpenVersion* base_of(const OpenVersion& version, const BaseVersion& named) {
    for (const auto& [place, base] : version.bases)
        if (version.manifest.bases[place] == named) return &base->version;
    return nullptr;
}

// What a run's piece, of whatever rank, needs of a base.
void touch(Touched& touched, const OpenVersion& base, const StoredPiece& needs) {
    const std::vector<PiecePlace>& pieces = base.pieces(needs.rank);
    const std::uint64_t begin = needs.image_offset, end = begin + needs.length;
    auto at = std::partition_point(pieces.begin(), pieces.end(), [&](const PiecePlace& place) { return base.piece(place).image_offset + base.piece(place).length <= begin; });
    for (; at != pieces.end() && base.piece(*at).image_offset < end; ++at) {
        const StoredPiece& piece = base.piece(*at);
        touched.add(*at, base.run(*at), std::min(end, piece.image_offset + piece.length) - std::max(begin, piece.image_offset));
    }
}

}  // namespace

ReadCost cost_of(const OpenVersion& version, const std::vector<PartRead>& reads) {
    ReadCost cost;
    std::set<std::pair<std::size_t, std::size_t>> decoded;
    std::map<const OpenVersion*, Touched> of_bases;
    for (const PartRead& read : reads) {
        const Footer& footer = version.footers[read.footer];
        const StoredRun& run = footer.runs[read.run];
        if (run.codec != 0 && !decoded.emplace(read.footer, read.run).second) continue;  // it is read once for all of them
        cost.read_bytes += read.length;
        if (run.codec != 0) cost.decoded_bytes += raw_bytes(run);
        const OpenVersion* const base = run.base != 0 ? base_of(version, footer.bases[run.base - 1].of) : nullptr;
        if (base)
            for (const StoredPiece& needs : run.pieces) touch(of_bases[base], *base, needs);
    }
    for (const auto& [base, touched] : of_bases) {
        cost.base_bytes += touched.bytes;
        cost.decoded_bytes += touched.decoded_bytes;
    }
    return cost;
}

AloneRead alone_read(const OpenVersion& version, Rank rank) {
    AloneRead alone;
    alone.rank = rank;
    Touched own;
    std::map<const OpenVersion*, Touched> of_bases;
    for (const PiecePlace& place : version.pieces(rank)) {
        const StoredRun& run = version.run(place);
        const StoredPiece& piece = version.piece(place);
        alone.own_bytes += run.codec == 0 ? static_cast<double>(piece.length) : static_cast<double>(run.stored_bytes) * static_cast<double>(piece.length) / static_cast<double>(raw_bytes(run));
        const bool is_new = run.base != 0 && !own.whole.count({place.footer, place.run});
        own.add(place, run, piece.length);
        const OpenVersion* const base = is_new ? base_of(version, version.footers[place.footer].bases[run.base - 1].of) : nullptr;
        if (base)
            for (const StoredPiece& needs : run.pieces) touch(of_bases[base], *base, needs);
    }
    alone.read_bytes = own.bytes;
    for (const auto& [base, touched] : of_bases) alone.base_bytes += touched.bytes;
    return alone;
}

std::optional<AloneRead> costliest_alone(const OpenVersion& version) {
    std::optional<AloneRead> worst;
    for (const Rank rank : version.ranks()) {
        const AloneRead alone = alone_read(version, rank);
        if (alone.read_bytes > 0 && (!worst || alone.factor() > worst->factor())) worst = alone;
    }
    return worst;
}

}  // namespace cairn
