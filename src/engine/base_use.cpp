#include "engine/base_use.hpp"

namespace cairn::engine {

BaseUse base_of(const Job& job, Version base, const Source& source, const HeldImage& now) {
    const FlightPtr flight = base != 0 && base == job.base ? job.base_flight.lock() : nullptr;
    if (!flight || flight->state.level != Level::committed) return {};
    const auto found = flight->images.find(source.rank);
    if (found == flight->images.end()) return {};
    HeldImage& older = found->second;
    if (older.once || older.image.header.block_bytes != now.image.header.block_bytes) return {};
    Result<Slice> bytes = held_bytes(older, source);
    std::optional<UnitChecksums> known = bytes.ok() ? known_checksums(older, source) : std::nullopt;
    if (!known) return {};
    const Units units(older.image.header.block_bytes, source.image_offset, std::move(known->cuts));
    return {images_of(flight), older, {std::move(bytes).value(), units, std::move(known->checksums)}};
}

}  // namespace cairn::engine
