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
    const std::string image = "the image of rank " + std::to_string(rank) + " of " + version_text(key);
    if (const auto doubt = doubts.find(rank); doubt != doubts.end()) return Status(doubt->second).within(image);
    if (listed.count(rank) != 0) return unavailable(image + " left scratch just now; try again (`cairn ls " + key.name + "`)");
    const std::vector<Rank> here(listed.begin(), listed.end());
    return not_found(image + " is not in this host's scratch, which has " +
                     (here.size() == 1 ? "rank " : "ranks ") + format_ranges(here) +
                     ", and the version is not committed: extract it on the node of that rank, or wait until it is committed (`cairn status`)");
}

void VersionCopies::set_regions(Rank rank, std::vector<Region> regions) {
    const auto slot = slots.find(rank);
    if (slot != slots.end()) slot->second.header.image.regions = std::move(regions);
    else parts->set_regions(rank, std::move(regions));
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

Task<VersionCopies> open_slots(World& world, Seen seen, std::vector<ScratchImage> images, Rank rank, RestoreSettings settings) {
    constexpr std::size_t hang_max = 4;  // each takes a thread and a whole wait
    std::size_t hang = 0;
    VersionCopies copies;
    copies.key = seen.key;
    copies.ranks = seen.ranks;
    for (const ScratchImage& each : images) {
        if (each.key != seen.key) continue;
        copies.listed.insert(each.rank);
        if (rank != every_rank && each.rank != rank) continue;
        if (!each.doubt.ok()) {
            copies.doubts.emplace(each.rank, each.doubt);
            continue;
        }
        if (hang == hang_max) {
            copies.doubts.emplace(each.rank, deadline_passed(each.path + ": not looked at, since other slots did not come back: look after this node's scratch"));
            continue;
        }
        Result<std::optional<LocalImage>> image = co_await open_slot(world, each.path, seen.key, each.rank, world.clock.in(settings.io_wait));
        if (image.code() == Code::deadline) ++hang;
        if (image.code() == Code::not_found) continue;  // tidied up meanwhile, as if it were another's now
        if (!image.ok()) copies.doubts.emplace(each.rank, std::move(image).status());
        else if (*image) copies.slots.emplace(each.rank, std::move(**image));
    }
    for (const auto& [opened, image] : copies.slots) copies.doubts.erase(opened);
    co_return copies;
}

Task<Result<VersionCopies>> open_copies(World& world, Layout layout, Seen seen, std::vector<ScratchImage> images, Rank rank, RestoreSettings settings) {
    if (seen.state == SeenState::committed) {
        VersionCopies copies;
        copies.key = seen.key;
        copies.ranks = seen.ranks;
        const Nanos deadline = world.clock.in(settings.io_wait);
        Task<Result<Manifest>> reading = rank == every_rank ? read_manifest(world, layout, seen.key, deadline) : read_manifest_of(world, layout, seen.key, rank, deadline);
        Result<Manifest> manifest = co_await reading;
        if (!manifest.ok()) co_return std::move(manifest).status();
        if (manifest->abandoned) co_return not_found(version_text(seen.key) + " was removed meanwhile");
        Result<OpenVersion> parts = co_await open_version(world, layout, *manifest, rank, settings);
        if (!parts.ok()) co_return std::move(parts).status();
        copies.parts = std::move(parts).value();
        co_return copies;
    }
    VersionCopies copies = co_await open_slots(world, std::move(seen), std::move(images), rank, settings);
    co_return copies;
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
