#include "model/tensor_places.hpp"

#include "base/units.hpp"

namespace cairn {

TensorPlaces tensor_places(const std::vector<NodeSources>& nodes, const std::map<Rank, ImageInfo>& images) {
    TensorPlaces places;
    places.prefix_bytes = tensors_frame_bytes;
    for (const NodeSources& node : nodes)
        for (const Source& source : node.sources) places.prefix_bytes += images.at(source.rank).naming_bytes;
    places.prefix_bytes = round_up(places.prefix_bytes, part_alignment);
    places.end = places.prefix_bytes;
    for (const NodeSources& node : nodes)
        for (const Source& source : node.sources) {
            if (source.length == 0) continue;
            const std::uint64_t begin = round_up(places.end, part_alignment);
            places.begins.emplace(source.rank, begin);
            places.end = begin + source.length;
        }
    return places;
}

}  // namespace cairn
