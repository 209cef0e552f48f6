#include "model/space.hpp"

namespace cairn {

constexpr std::size_t pack_sources_most = 4096;  // so that what is told of one pack is a small message

std::uint64_t bytes_of(const Pack& pack) {
    std::uint64_t sum = 0;
    for (const NodeSource& each : pack) sum += each.source.length;
    return sum;
}

std::uint64_t space_of(std::uint64_t bytes, const SpacePolicy& policy) { return round_up(bytes, policy.pack_bytes == 0 ? policy.block_bytes : part_alignment); }

std::vector<Pack> packs_of(const std::vector<NodeSources>& nodes, const SpacePolicy& policy) {
    std::vector<Pack> packs;
    Pack open;
    std::uint64_t open_bytes = 0;
    for (const NodeSources& node : nodes)
        for (const Source& source : node.sources) {
            if (source.length == 0) continue;
            if (source.length >= policy.pack_bytes / 2) {
                packs.push_back({{node.node, source}});
                continue;
            }
            if (open_bytes + source.length > policy.pack_bytes || open.size() == pack_sources_most) {
                packs.push_back(std::move(open));
                open.clear();
                open_bytes = 0;
            }
            open.push_back({node.node, source});
            open_bytes += source.length;
        }
    if (!open.empty()) packs.push_back(std::move(open));
    return packs;
}

std::uint64_t space_of(const std::vector<NodeSources>& nodes, const SpacePolicy& policy) {
    std::uint64_t sum = 0;
    for (const Pack& pack : packs_of(nodes, policy)) sum += space_of(bytes_of(pack), policy);
    return sum;
}

std::uint64_t encoded_chunk_bytes(std::uint64_t raw_bytes, std::uint64_t stored_bytes) {
    constexpr std::uint64_t wanted = 64 * part_alignment, raw_at_first = 4 * wanted;
    if (stored_bytes == 0) return raw_at_first;
    return static_cast<std::uint64_t>(std::min(static_cast<double>(wanted) * static_cast<double>(raw_bytes) / static_cast<double>(stored_bytes), 1e15));
}

}  // namespace cairn
