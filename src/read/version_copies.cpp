// The choice of where each rank's image is read: its slot in scratch where that is open, else the parts.
#include "read/version_copies.hpp"

#include "base/text_table.hpp"

namespace cairn {

const ImageInfo* VersionCopies::find(Rank rank) const {
    if (const auto slot = slots.find(rank); slot != slots.end()) return &slot->second.header.image;
    return parts ? parts->image(rank) : nullptr;
}

Result<const ImageInfo*> VersionCopies::image(Rank rank) const {
    if (const ImageInfo* found = find(rank)) return found;
    if (parts || rank >= ranks) return no_rank(key, rank, ranks);
    if (const auto doubt = doubts.find(rank); doubt != doubts.end())
        return Status(doubt->second).within("the image of rank " + std::to_string(rank) + " of " + version_text(key));
    std::vector<Rank> here;
    for (const auto& [each, slot] : slots) here.push_back(each);
    return not_found("the image of rank " + std::to_string(rank) + " of " + version_text(key) + " is not in this host's scratch, which has " +
                     (here.size() == 1 ? "rank " : "ranks ") + format_ranges(here) +
                     ", and the version is not committed: extract it on the node of that rank, or wait until it is committed (`cairn status`)");
}

std::uint64_t VersionCopies::block_bytes() const { return parts ? parts->manifest.block_bytes : slots.begin()->second.header.block_bytes; }

bool VersionCopies::is_verifiable(Rank rank) const {
    const auto slot = slots.find(rank);
    return slot == slots.end() || slot->second.data.length == 0 || !slot->second.checksums.empty();
}

Status no_rank(const VersionKey& key, std::uint64_t rank, std::uint32_t ranks) {
    return not_found(version_text(key) + " has no rank " + std::to_string(rank) + "; it was taken by " + plural(ranks, "rank") + ", 0 to " +
                     std::to_string(ranks - 1));
}

Task<Result<std::optional<LocalImage>>> open_slot(World& world, std::string path, VersionKey key, Rank rank, Nanos deadline) {
    Result<std::optional<LocalImage>> image = co_await read_image(world, std::move(path), deadline);
    if (image.ok() && *image && ((*image)->header.key != key || (*image)->header.rank != rank)) image->reset();
    co_return image;
}

Task<Result<VersionCopies>> open_slots(World& world, Seen seen, std::vector<ScratchImage> images, RestoreSettings settings) {
    VersionCopies copies;
    copies.key = seen.key;
    copies.ranks = seen.ranks;
    for (const ScratchImage& each : images) {
        if (each.key != seen.key) continue;
        if (!each.doubt.ok()) {
            copies.doubts.emplace(each.rank, each.doubt);
            continue;
        }
        Result<std::optional<LocalImage>> image = co_await open_slot(world, each.path, seen.key, each.rank, world.clock.in(settings.io_wait));
        if (!image.ok()) co_return std::move(image).status();
        if (*image) copies.slots.emplace(each.rank, std::move(**image));
    }
    for (const auto& [rank, image] : copies.slots) copies.doubts.erase(rank);
    co_return copies;
}

Task<Result<VersionCopies>> open_copies(World& world, Layout layout, Seen seen, std::vector<ScratchImage> images, Rank rank, RestoreSettings settings) {
    if (seen.state == SeenState::committed) {
        VersionCopies copies;
        copies.key = seen.key;
        copies.ranks = seen.ranks;
        Result<OpenVersion> parts = co_await open_version(world, layout, *seen.entry.manifest, rank, settings);
        if (!parts.ok()) co_return std::move(parts).status();
        copies.parts = std::move(parts).value();
        co_return copies;
    }
    const VersionKey key = seen.key;
    Result<VersionCopies> copies = co_await open_slots(world, std::move(seen), std::move(images), settings);
    if (!copies.ok() || !copies->slots.empty()) co_return copies;
    if (!copies->doubts.empty()) co_return Status(copies->doubts.begin()->second).within(version_text(key));
    co_return unavailable("the images of " + version_text(key) + " left scratch just now; try again (`cairn ls " + key.name + "`)");
}

Task<bool> still_there(World& world, const LocalImage& image, Nanos deadline) {
    const Result<std::optional<LocalImage>> now = co_await open_slot(world, image.path, image.header.key, image.header.rank, deadline);
    co_return now.ok() && now->has_value();
}

Task<Status> check_settled(World& world, const VersionCopies& copies, Rank rank, Nanos deadline) {
    const auto slot = copies.slots.find(rank);
    if (slot == copies.slots.end()) co_return Status();
    const bool there = co_await still_there(world, slot->second, deadline);
    if (there) co_return Status();
    co_return unavailable("the image of rank " + std::to_string(rank) + " of " + version_text(copies.key) +
                          " left scratch while it was read; is the version committed now? (`cairn ls " + copies.key.name + "`)");
}

}  // namespace cairn
