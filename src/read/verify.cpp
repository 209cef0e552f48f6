// Verification: parts by the catalog's manifest, or slot by slot.
#include "read/verify.hpp"

#include <iterator>

#include "copies/regions.hpp"

namespace cairn {

namespace {

Task<void> verify_slots(World& world, const Seen& seen, std::vector<ScratchImage> images, RestoreSettings settings,
                          std::function<void(std::uint64_t bytes)> progress, Verdict& verdict) {
    VersionCopies copies = co_await open_slots(world, seen, std::move(images), every_rank, settings);
    for (Rank rank = 0; rank < seen.ranks; ++rank) {
        const auto slot = copies.slots.find(rank);
        if (slot == copies.slots.end()) {
            const auto doubt = copies.doubts.find(rank);
            if (doubt == copies.doubts.end()) verdict.absent.push_back(rank);
            else verdict.damage.push_back({"", std::nullopt, rank, "", Status(doubt->second).within("the image of rank " + std::to_string(rank))});
            continue;
        }
        if (!copies.is_verifiable(rank)) {
            verdict.unchecked.push_back(rank);
            continue;
        }
        // So that damage is told with its region; damage of the index itself is found below.
        Status named = co_await load_regions(world, slot->second, settings);
        std::vector<Damage> damage = co_await verify_local(world, slot->second, settings, progress);
        if (damage.empty() && named.code() == Code::corrupt) damage.push_back({slot->second.path, std::nullopt, rank, region_index_name, std::move(named)});
        // A slot that was given to another image meanwhile says nothing about this one.
        const bool there = co_await still_there(world, slot->second, world.clock.in(settings.io_wait));
        if (there) std::move(damage.begin(), damage.end(), std::back_inserter(verdict.damage));
        else verdict.absent.push_back(rank);
    }
}

}  // namespace

Task<Result<Verdict>> verify_seen(World& world, Layout layout, Seen seen, std::vector<ScratchImage> images, RestoreSettings settings,
                                  std::function<void(std::uint64_t bytes)> progress, VerifyDepth depth) {
    Verdict verdict;
    verdict.key = seen.key;
    verdict.bytes = seen.image_bytes;
    verdict.ranks = seen.ranks;
    verdict.from_scratch = in_scratch_only(seen);
    if (verdict.from_scratch) {
        co_await verify_slots(world, seen, std::move(images), settings, std::move(progress), verdict);
    } else if (seen.entry.manifest) {
        Result<Manifest> manifest = co_await read_manifest(world, layout, seen.key, world.clock.in(settings.io_wait));
        if (!manifest.ok()) {  // its head could be read, when the version was looked for
            verdict.damage.emplace_back().status = std::move(manifest).status();
            co_return verdict;
        }
        Result<std::vector<Damage>> damage = co_await verify_version(world, layout, *manifest, settings, std::move(progress), depth);
        if (!damage.ok()) co_return std::move(damage).status();
        verdict.damage = std::move(damage).value();
    } else {
        verdict.damage.emplace_back().status = *seen.entry.damage;
    }
    co_return verdict;
}

}  // namespace cairn
