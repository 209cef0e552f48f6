// Verification of a committed version: all that is damaged, and not only the first of it.
#include <algorithm>
#include <iterator>

#include "catalog/roots.hpp"
#include "copies/bases.hpp"
#include "copies/reading.hpp"
#include "copies/regions.hpp"
#include "format/manifest.hpp"

namespace cairn {

namespace {

Damage damage_of(std::string part, Status status, std::optional<Rank> rank = std::nullopt) {
    Damage damage;
    damage.part = std::move(part);
    damage.rank = rank;
    damage.status = std::move(status);
    return damage;
}

// Whether something was told of a rank; then an index of it that can not be read is no news.
bool is_damaged(const std::vector<Damage>& damages, Rank rank) {
    return std::any_of(damages.begin(), damages.end(), [&](const Damage& damage) { return damage.rank == rank; });
}

}  // namespace

Task<Result<std::vector<Damage>>> verify_version(World& world, Layout layout, Manifest manifest, RestoreSettings settings,
                                                 std::function<void(std::uint64_t bytes)> progress, VerifyDepth depth) {
    std::vector<Damage> damages, prefixes;  // the latter are of no image, and hide nothing of one
    if (manifest.abandoned) co_return damages;
    OpenVersion whole;  // what could be opened; damage in one part does not hide damage in another
    whole.manifest = manifest;
    for (std::uint32_t i = 0; i < manifest.parts.size(); ++i) {
        const std::string path = layout.part(manifest, i);
        Result<Footer> footer = co_await read_footer(world, path, &manifest.parts[i], settings);
        Status status = footer.status();
        if (status.code() == Code::not_found) status = co_await missing_part(world, layout, manifest, i, world.clock.in(settings.io_wait));
        if (status.ok()) status = check_part_of(manifest, i, *footer).within(path);
        if (!status.ok()) {
            damages.push_back(damage_of(manifest.parts[i].file, std::move(status)));
            continue;
        }
        if (Status prefix = co_await check_prefix(world, path, *footer, settings); !prefix.ok()) {
            prefixes.push_back(damage_of(manifest.parts[i].file, std::move(prefix)));
            prefixes.back().of_no_image = true;
        }
        whole.footers.push_back(std::move(footer).value());
        whole.parts.push_back(i);
    }
    whole.index();
    co_await open_bases(world, layout, whole, nullptr, settings);
    const bool are_all_open = damages.empty();
    if (are_all_open)
        for (Rank rank = 0; rank < manifest.ranks; ++rank)
            if (Status tiles = check_tiling(whole, rank); !tiles.ok()) damages.push_back(damage_of("", std::move(tiles), rank));
    // So that damage is told with the region that it is in.
    const std::map<Rank, Status> unknown = co_await load_what_can_be(world, layout, whole, settings);
    EncodedRuns encoded(world, settings.encoded_bytes);
    ReadSource source{world, layout, settings, whole, encoded};
    Reading r{source, plan_all_reads(whole, settings.buffer_bytes), {}, {}};
    r.deliver = [&](const StoredPiece&, std::uint64_t, Slice data) {
        if (progress) progress(data.length);
        return Status();
    };
    if (depth == VerifyDepth::stored)
        r.stored_is_right = [&](std::uint64_t raw) {
            if (progress) progress(raw);
        };
    r.bad = [&](const PartRead& read, const StoredPiece& piece, ImageRange unit, Status status) {
        Damage damage = damage_of(manifest.parts[whole.parts[read.footer]].file, std::move(status));
        damage.block = block_in_part(whole, read, piece, unit);
        damage.rank = piece.rank;
        damage.region = region_of(whole, piece, unit);
        damages.push_back(std::move(damage));
        return Status();
    };
    Status read = co_await read_runs(r);
    if (!read.ok() && damages.empty() && prefixes.empty()) co_return read;  // nothing can be said; else damage that was found is told before what ended the look
    if (!read.ok()) damages.push_back(damage_of("", std::move(read)));
    for (const auto& [rank, why] : unknown) {  // every checksum holds, and nobody can restore it
        if (why.code() != Code::corrupt || is_damaged(damages, rank)) continue;
        if (!are_all_open && !check_tiling(whole, rank).ok()) continue;  // what it lacks is in a part that was told, which may only be away
        damages.push_back(damage_of("", Status(why), rank));
        damages.back().region = region_index_name;
    }
    std::move(prefixes.begin(), prefixes.end(), std::back_inserter(damages));
    co_return damages;
}

}  // namespace cairn
