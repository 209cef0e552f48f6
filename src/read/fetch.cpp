// Scratch first; damage there is told, and the parts are asked. `deadline` bounds the opening, each read has its own.
#include "read/fetch.hpp"

#include <algorithm>
#include <set>

#include "catalog/manifest_lookup.hpp"
#include "catalog/roots.hpp"
#include "read/regions.hpp"

namespace cairn {

namespace {

std::string number_of(const ImagePlaces& places) { return "version " + std::to_string(places.key.version); }

// A slot that hangs takes one wait, and leaves the rest of the time to the parts.
Task<Status> add_slot(World& world, VersionCopies& copies, const ImagePlaces& places, RestoreSettings settings, Nanos deadline) {
    const Nanos soon = std::min(deadline, world.clock.in(settings.io_wait));
    Result<std::optional<LocalImage>> slot = co_await open_slot(world, places.slot_path, places.key, places.rank, soon);
    // Somebody has tidied scratch up; not that the version is not there.
    if (slot.code() == Code::not_found) co_return corrupt(places.slot_path + ": is not there any more");
    if (!slot.ok()) co_return std::move(slot).status();
    if (!*slot) co_return corrupt(places.slot_path + ": the image of " + number_of(places) + " is not there any more");
    copies.slots.emplace(places.rank, std::move(**slot));
    co_return Status();
}

// Whether what was met may be a root's trouble, below which the version's parts lie: one that is not there, hangs, or can not be read. Then nothing is damaged, and who
// went back to an older version would give this one up. The roots are looked at within one wait.
bool may_be_roots_trouble(Code met) { return met == Code::unavailable || met == Code::deadline || met == Code::io_error; }

Task<bool> is_a_root_away(World& world, const Manifest& manifest, Nanos deadline) {
    std::set<std::uint32_t> used;
    for (const PartInfo& part : manifest.parts) used.insert(part.root);
    used.erase(0);
    for (const std::uint32_t root : used) {
        const Status there = co_await check_root(world, manifest.roots[root - 1], deadline);
        if (!there.ok()) co_return true;
    }
    co_return false;
}

// Of what is open: also those of its bases.
Task<bool> is_roots_trouble(World& world, const OpenVersion& version, Code met, Nanos io_wait) {
    if (!may_be_roots_trouble(met)) co_return false;
    const Nanos deadline = world.clock.in(io_wait);
    bool away = co_await is_a_root_away(world, version.manifest, deadline);
    for (const auto& [place, base] : version.bases)
        if (!away) away = co_await is_a_root_away(world, base->version.manifest, deadline);
    co_return away;
}

Task<Status> add_parts(World& world, Layout layout, VersionCopies& copies, const ImagePlaces& places, RestoreSettings settings, Nanos deadline, bool& away) {
    Result<Manifest> manifest = co_await read_manifest_of(world, layout, places.key, places.rank, deadline);
    if (manifest.code() == Code::not_found)  // an older version may be there still
        co_return corrupt(number_of(places) + " was removed while it was looked for");
    if (!manifest.ok()) co_return std::move(manifest).status();
    if (manifest->abandoned) co_return corrupt(number_of(places) + " was abandoned");
    copies.ranks = manifest->ranks;
    Result<OpenVersion> parts = co_await open_version(world, layout, *manifest, places.rank, settings);
    if (!parts.ok() && may_be_roots_trouble(parts.code())) {
        const Nanos look = world.clock.in(settings.io_wait);
        away = co_await is_a_root_away(world, *manifest, look);
    }
    if (!parts.ok()) co_return std::move(parts).status();
    if (!parts->image(places.rank)) co_return corrupt("no part of " + number_of(places) + " has the image of rank " + std::to_string(places.rank));
    copies.parts = std::move(parts).value();
    co_return Status();
}

VersionCopies nothing_open(const ImagePlaces& places) {
    VersionCopies copies;
    copies.key = places.key;
    return copies;
}

// From what is open.
Task<Status> hand_out_image(World& world, Layout layout, VersionCopies& copies, Rank rank, const Aim& aim, RestoreSettings settings, SharedRuns* shared, bool& refused) {
    EncodedRuns encoded(world, settings.encoded_bytes, shared);
    const std::vector<Rank> only(1, rank);
    Status known = co_await load_regions(world, layout, copies, only, settings, &encoded);
    if (!known.ok()) co_return known;
    Result<HandOut> out = aim(*copies.find(rank));
    refused = !out.ok();
    if (refused) co_return std::move(out).status();
    const std::vector<WantedImage> wanted = out->wanted();
    if (wanted.empty()) co_return Status();
    Result<ReadPlan> plan = plan_reads(copies, wanted, settings.buffer_bytes);
    if (!plan.ok()) co_return std::move(plan).status();
    Status status = co_await read_planned(world, layout, copies, std::move(plan).value(), *out, settings, &encoded);
    co_return status;
}

// Of a version that is not in this node's scratch, or is damaged there.
Task<void> fetch_from_parts(World& world, Layout layout, VersionCopies& copies, const ImagePlaces& places, const Aim& aim, RestoreSettings settings, Nanos deadline, SharedRuns* shared,
                            Fetched& fetched) {
    fetched.status = co_await add_parts(world, layout, copies, places, settings, deadline, fetched.refused);
    if (!fetched.status.ok()) co_return;
    fetched.status = co_await hand_out_image(world, layout, copies, places.rank, aim, settings, shared, fetched.refused);
    if (!fetched.status.ok() && !fetched.refused)
        fetched.refused = co_await is_roots_trouble(world, *copies.parts, fetched.status.code(), settings.io_wait);
}

// Others wait for what this rank shares until it leaves, whatever comes of it.
Task<void> fetch_sharing(World& world, Layout layout, VersionCopies& copies, const ImagePlaces& places, const Aim& aim, RestoreSettings settings, Nanos deadline, Fetched& fetched) {
    const Nanos by = world.clock.in(settings.io_wait);  // then without the others
    SharedPlace place = *places.shared;
    Result<std::unique_ptr<SharedRuns>> shared = co_await SharedRuns::open(world, std::move(place), settings.io_wait, by);
    fetched.not_shared = shared.status();
    SharedRuns* const node = shared.ok() ? shared->get() : nullptr;
    co_await fetch_from_parts(world, std::move(layout), copies, places, aim, settings, deadline, node, fetched);
    if (!node) co_return;
    node->leave();
    fetched.shared = node->counts;
}

}  // namespace

bool another_may_do(const Status& status) {
    switch (status.code()) {
        case Code::corrupt:
        case Code::io_error:
        case Code::unavailable:
        case Code::unsupported:
        case Code::deadline:
        case Code::permission:
            return true;
        default:
            return false;
    }
}

Task<Fetched> fetch_image(World& world, Layout layout, ImagePlaces places, Aim aim, RestoreSettings settings, Nanos deadline) {
    Fetched fetched;
    fetched.status = corrupt("nothing of " + number_of(places) + " in this node's scratch");
    VersionCopies copies = nothing_open(places);
    if (!places.slot_path.empty()) {
        Status local = co_await add_slot(world, copies, places, settings, deadline);
        if (local.ok()) local = co_await hand_out_image(world, layout, copies, places.rank, aim, settings, nullptr, fetched.refused);
        fetched.status = local;
        if (local.ok() || fetched.refused || !places.committed || !another_may_do(local)) co_return fetched;
        fetched.passed_over = std::move(local);
        copies.slots.clear();
    }
    if (!places.committed) co_return fetched;
    if (places.shared) co_await fetch_sharing(world, std::move(layout), copies, places, aim, settings, deadline, fetched);
    else co_await fetch_from_parts(world, std::move(layout), copies, places, aim, settings, deadline, nullptr, fetched);
    co_return fetched;
}

Task<Result<ImageInfo>> describe_image(World& world, Layout layout, ImagePlaces places, RestoreSettings settings, Nanos deadline) {
    VersionCopies copies = nothing_open(places);
    bool ignored = false;
    Status status = not_found("not in this node's scratch");
    const std::vector<Rank> rank(1, places.rank);
    if (!places.slot_path.empty()) {
        status = co_await add_slot(world, copies, places, settings, deadline);
        if (status.ok()) status = co_await load_regions(world, layout, copies, rank, settings);
        if (!status.ok()) copies.slots.clear();
    }
    if (!status.ok() && places.committed) {
        status = co_await add_parts(world, layout, copies, places, settings, deadline, ignored);
        if (status.ok()) status = co_await load_regions(world, layout, copies, rank, settings);
    }
    if (!status.ok()) co_return status;
    co_return ImageInfo(*copies.find(places.rank));
}

}  // namespace cairn
