#include "read/alone.hpp"

#include <set>

namespace cairn {

AloneRead alone_read(const OpenVersion& version, Rank rank) {
    AloneRead alone;
    alone.rank = rank;
    std::set<std::pair<std::size_t, std::size_t>> encoded;
    std::set<std::uint32_t> bases;
    for (const PiecePlace& place : version.pieces(rank)) {
        const StoredRun& run = version.run(place);
        const StoredPiece& piece = version.piece(place);
        if (run.codec == 0) {
            alone.own_bytes += static_cast<double>(piece.length);
            alone.read_bytes += piece.length;
            continue;
        }
        alone.own_bytes += static_cast<double>(run.stored_bytes) * static_cast<double>(piece.length) / static_cast<double>(raw_bytes(run));
        if (encoded.emplace(place.footer, place.run).second) alone.read_bytes += run.stored_bytes;
        if (run.base == 0) continue;
        for (const auto& [number, base] : version.bases)
            if (base->version.manifest.key.version == version.footers[place.footer].bases[run.base - 1].of.version) bases.insert(number);
    }
    for (const std::uint32_t number : bases) alone.base_bytes += alone_read(version.bases.at(number)->version, rank).read_bytes;  // a base has none
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
