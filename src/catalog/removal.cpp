// Removing versions, the tombstone before the parts: see removal.hpp.
#include "catalog/removal.hpp"

#include <algorithm>

#include "base/config.hpp"
#include "catalog/needed.hpp"
#include "catalog/reserve.hpp"
#include "catalog/roots.hpp"
#include "catalog/tensor_index.hpp"
#include "format/manifest.hpp"
#include "format/names.hpp"

namespace cairn {

Manifest tombstone_of(const VersionKey& key, std::uint64_t epoch, Parent parent, std::uint32_t ranks, std::vector<std::string> roots) {
    Manifest tombstone;
    tombstone.key = key;
    tombstone.epoch = std::max<std::uint64_t>(epoch, 1);  // a damaged manifest tells none; for a tombstone nothing depends on it
    tombstone.parent = parent;
    tombstone.abandoned = true;
    tombstone.ranks = ranks;
    tombstone.nodes = 1;
    tombstone.roots = std::move(roots);
    return tombstone;
}

namespace {

// A file, whatever it is called. A directory that somebody put in its place goes too, if it is empty; else it gets a name that nobody looks for, with all that is
// in it. What is gone already is no error.
Task<Status> take_away(World& world, std::string path, Nanos io_wait) {
    Status removed = co_await world.storage.remove(path, world.clock.in(io_wait));
    if (removed.code() == Code::invalid_argument) {  // unlink(2): EISDIR
        removed = co_await world.storage.remove_directory(path, world.clock.in(io_wait));
        if (removed.code() == Code::already_exists) {
            std::string aside = aside_name(path, world.random.id());
            removed = co_await world.storage.replace(path, std::move(aside), world.clock.in(io_wait));
        }
    }
    co_return removed.code() == Code::not_found ? Status() : std::move(removed);
}

// Written and durable under its temporary name, whose path is returned.
Task<Result<std::string>> write_tombstone(World& world, Layout layout, Manifest tombstone, Nanos io_wait) {
    for (;;) {
        tombstone.attempt_id = {tombstone.key.incarnation.high, world.random.next()};
        const std::string temporary = layout.temporary(tombstone.key, tombstone.attempt_id);
        Bytes bytes = encode_manifest(tombstone);
        Status wrote = co_await write_file(world.storage, temporary, std::move(bytes), 0644, world.clock.in(io_wait));
        if (wrote.ok()) co_return temporary;
        const Status ignored = co_await world.storage.remove(temporary, world.clock.in(io_wait));
        (void)ignored;
        const bool again = co_await reserve_gives(world, layout, wrote, world.clock.in(io_wait));
        if (!again) co_return std::move(wrote).within("writing a tombstone");
    }
}

// Another remover may have taken our temporary name with the rest of the version: then its tombstone stands, or has been lifted.
Task<Status> check_removed(World& world, Layout layout, VersionKey key, Status failure, Nanos io_wait) {
    Result<ManifestFacts> standing = co_await read_manifest_facts(world, layout, std::move(key), world.clock.in(io_wait));
    const bool removed = standing.ok() ? standing->abandoned : standing.code() == Code::not_found;
    co_return removed ? Status() : std::move(failure);
}

// Over what a file holds, whose blocks serve again. What is no file of this name alone (a link, a FIFO, a file that has another name, as in a copy made of
// hard links) may be somebody else's, too: not a byte of it is written over, and another takes its place.
Task<Status> overwrite(World& world, std::string path, Bytes bytes, Nanos io_wait) {
    const Nanos deadline = world.clock.in(io_wait);
    OpenOptions options;
    options.mode = OpenMode::write;
    options.sole_name = true;
    Result<FilePtr> file = co_await world.storage.open(path, options, deadline);
    if (file.code() == Code::corrupt) {
        const Status removed = co_await take_away(world, path, io_wait);
        if (!removed.ok()) co_return removed;
        options.mode = OpenMode::create;
        file = co_await world.storage.open(path, options, deadline);
    }
    if (!file.ok()) co_return std::move(file).status();
    const std::uint64_t length = bytes.size();
    Slice data = Slice::of(std::move(bytes));
    Status done = co_await write_all(world.storage, *file, 0, data, deadline);
    if (done.ok()) done = co_await world.storage.resize(*file, length, deadline);
    if (done.ok()) done = co_await world.storage.fsync(*file, deadline);
    co_return done;
}

// Manifests of an incarnation in a version's directory that are not published: nobody can publish them any more. not_found: the directory is gone.
Task<Status> remove_unpublished(World& world, std::string directory, Id128 incarnation, Nanos io_wait) {
    Result<std::vector<DirectoryEntry>> entries = co_await world.storage.list(directory, world.clock.in(io_wait));
    if (!entries.ok()) co_return std::move(entries).status();
    for (const DirectoryEntry& entry : *entries) {
        const std::optional<Id128> attempt_id = parse_attempt_of(entry.name);
        if (!attempt_id || attempt_id->high != incarnation.high || is_part_file(entry.name)) continue;
        Status removed = co_await take_away(world, directory + "/" + entry.name, io_wait);
        if (!removed.ok()) co_return removed;
    }
    co_return Status();
}

// The tombstone in the place of the manifest that was moved to `aside`: in its blocks, or in those of parts that it named (those of its bases are not its own, and below other
// roots they give it no room).
Task<Status> turn_into_tombstone(World& world, Layout layout, VersionKey key, std::string aside, Bytes bytes, std::vector<PartInfo> parts, Nanos io_wait) {
    const std::string directory = layout.version(key);
    Status wrote = co_await overwrite(world, aside, bytes, io_wait);
    if (wrote.code() == Code::out_of_space) CO_TRY(co_await check_not_needed(world, layout, key, io_wait));
    for (std::size_t i = 0; wrote.code() == Code::out_of_space && i < parts.size(); ++i) {
        if (parts[i].root != 0 || parts[i].origin != 0) continue;
        Status removed = co_await take_away(world, directory + "/" + parts[i].file, io_wait);
        if (!removed.ok()) co_return removed;
        Status synced = co_await world.storage.fsync_directory(directory, world.clock.in(io_wait));
        if (!synced.ok()) co_return synced;
        wrote = co_await overwrite(world, aside, bytes, io_wait);
    }
    if (!wrote.ok()) co_return wrote;
    // What is published now stands for good: it has to be the tombstone, wherever the file system's open led.
    const Result<Bytes> there = co_await read_file(world.storage, aside, bytes.size(), world.clock.in(io_wait));
    if (there.ok() && *there == bytes) co_return Status();
    co_return there.ok() || there.code() == Code::corrupt ? Status(Code::io_error, aside + ": does not hold what was written to it: look after the file system") : there.status();
}

// Without replacing.
Task<Status> publish_tombstone(World& world, Layout layout, VersionKey key, std::string temporary, Nanos io_wait) {
    Status published = co_await world.storage.publish(temporary, layout.manifest(key), world.clock.in(io_wait));
    const Status ignored = co_await world.storage.remove(temporary, world.clock.in(io_wait));  // there after a link, gone after a rename
    (void)ignored;
    if (!published.ok()) co_return published;
    Status synced = co_await world.storage.fsync_name(layout.manifest(key), world.clock.in(io_wait));
    co_return synced;
}

// Step 1 of a removal where there is no room for a tombstone: see removal.hpp.
Task<Status> fence_where_full(World& world, Layout layout, Manifest tombstone, Nanos io_wait) {
    const VersionKey key = tombstone.key;
    const std::string directory = layout.version(key), manifest = layout.manifest(key);
    Result<Manifest> standing = co_await read_manifest(world, layout, key, world.clock.in(io_wait));
    std::vector<PartInfo> parts;  // of one that can not be read none is known
    if (standing.ok()) parts = standing->parts;
    Status ready = co_await remove_unpublished(world, directory, key.incarnation, io_wait);
    if (!ready.ok()) co_return ready.code() == Code::not_found ? Status() : std::move(ready);
    tombstone.attempt_id = {key.incarnation.high, world.random.next()};
    const std::string aside = layout.temporary(key, tombstone.attempt_id);
    // Without a byte it says as well that something is about to take the manifest's place (needed.hpp).
    const Status said = co_await write_file(world.storage, aside, Bytes(), 0644, world.clock.in(io_wait));
    Status needed = co_await check_not_needed(world, layout, key, io_wait);
    if (!needed.ok()) {
        const Status ignored = co_await world.storage.remove(aside, world.clock.in(io_wait));
        (void)ignored;
        co_return needed;
    }
    Status moved = co_await world.storage.replace(manifest, aside, world.clock.in(io_wait));
    if (moved.code() == Code::not_found) {
        Status removed = co_await check_removed(world, layout, key, std::move(moved), io_wait);
        co_return removed;
    }
    if (!moved.ok()) co_return moved;
    Status synced = co_await world.storage.fsync_name(aside, world.clock.in(io_wait));
    if (!synced.ok()) {  // as it was, then
        const Status back = co_await world.storage.publish(aside, manifest, world.clock.in(io_wait));
        (void)back;
        co_return synced;
    }
    if (!said.ok()) needed = co_await check_not_needed(world, layout, key, io_wait);  // not even a name was to be had before
    if (!needed.ok()) {
        const Status back = co_await world.storage.publish(aside, manifest, world.clock.in(io_wait));
        (void)back;
        co_return needed;
    }
    Bytes bytes = encode_manifest(tombstone);
    Status fenced = co_await turn_into_tombstone(world, layout, key, aside, std::move(bytes), std::move(parts), io_wait);
    if (fenced.ok()) fenced = co_await publish_tombstone(world, layout, key, aside, io_wait);
    if (fenced.code() == Code::not_found || fenced.code() == Code::already_exists) fenced = co_await check_removed(world, layout, key, std::move(fenced), io_wait);
    co_return fenced;
}

}  // namespace

Task<Status> remove_files(World& world, std::string directory, std::vector<std::string> files, Nanos io_wait, std::string kept) {
    for (const std::string& file : files) {
        Status removed = co_await take_away(world, directory + "/" + file, io_wait);
        if (!removed.ok()) co_return removed;
    }
    if (directory == kept) co_return Status();
    // Another incarnation's files may be there still, or come at this moment.
    Status removed = co_await world.storage.remove_directory(directory, world.clock.in(io_wait));
    if (!removed.ok() && removed.code() != Code::already_exists && removed.code() != Code::not_found) co_return removed;
    co_return Status();
}

namespace {

// What a root holds of an incarnation's version, durably.
Task<Status> clear_below(World& world, std::string root, VersionKey key, Nanos io_wait) {
    Result<std::vector<DirectoryEntry>> entries = co_await list_below(world, root, key, world.clock.in(io_wait));
    if (!entries.ok()) co_return std::move(entries).status();
    const std::string directory = Layout::version_below(root, key);
    std::vector<std::string> files;
    for (const DirectoryEntry& entry : *entries)
        if (const auto attempt_id = parse_attempt_of(entry.name); attempt_id && attempt_id->high == key.incarnation.high) files.push_back(entry.name);
    if (entries->empty()) co_return Status();
    Status removed = co_await remove_files(world, directory, std::move(files), io_wait, directory);
    if (!removed.ok()) co_return removed;
    Status synced = co_await world.storage.fsync_directory(directory, world.clock.in(io_wait));
    if (!synced.ok() && synced.code() != Code::not_found) co_return synced;
    removed = co_await remove_files(world, directory, {}, io_wait);
    co_return removed;
}

// Below all roots but persistent. Those that the tombstone names must be there: the others are only looked at.
Task<Status> clear_elsewhere(World& world, Layout layout, ManifestFacts tombstone, Nanos io_wait) {
    Status failed;
    for (const std::string& root : tombstone.roots) {
        Status cleared = co_await clear_below(world, root, tombstone.key, io_wait);
        if (failed.ok()) failed = std::move(cleared);
    }
    for (const std::string& root : layout.roots) {
        if (std::find(tombstone.roots.begin(), tombstone.roots.end(), root) != tombstone.roots.end()) continue;
        const Status ignored = co_await clear_below(world, root, tombstone.key, io_wait);
        (void)ignored;
    }
    if (failed.code() == Code::unavailable)
        co_return std::move(failed).within("it is removed, but for what may lie where nothing can be done now; `cairn gc` takes the rest when that is back");
    co_return failed;
}

}  // namespace

Task<Status> clear_version(World& world, Layout layout, ManifestFacts tombstone, Fence fence, Nanos io_wait) {
    const VersionKey key = tombstone.key;
    const std::string directory = layout.version(key);
    // Listed now: attempts may have come since the caller looked.
    Result<std::vector<DirectoryEntry>> entries = co_await world.storage.list(directory, world.clock.in(io_wait));
    if (entries.code() == Code::not_found) co_return Status();
    if (!entries.ok()) co_return std::move(entries).status();
    CO_TRY(co_await check_not_needed(world, layout, key, io_wait));
    for (const DirectoryEntry& entry : *entries) {
        const std::optional<Id128> attempt_id = parse_attempt_of(entry.name);
        if (!attempt_id || attempt_id->high != key.incarnation.high) continue;
        Status removed = co_await take_away(world, directory + "/" + entry.name, io_wait);
        if (!removed.ok()) co_return removed;
    }
    CO_TRY(co_await remove_tensor_index(world, layout, key, io_wait));
    Status elsewhere = co_await clear_elsewhere(world, layout, std::move(tombstone), io_wait);
    if (fence == Fence::keep || !elsewhere.ok()) co_return elsewhere;
    Status synced = co_await world.storage.fsync_directory(directory, world.clock.in(io_wait));
    if (!synced.ok()) co_return synced.code() == Code::not_found ? Status() : std::move(synced);
    std::vector<std::string> fences = {manifest_file_name(key.incarnation)};
    Status removed = co_await remove_files(world, directory, std::move(fences), io_wait);
    co_return removed;
}

namespace {

Task<Status> remove_where_full(World& world, Layout layout, Manifest tombstone, Fence fence, Nanos io_wait) {
    const VersionKey key = tombstone.key;
    Status done = co_await fence_where_full(world, layout, tombstone, io_wait);
    if (!done.ok()) co_return std::move(done).within("no room for a tombstone");
    done = co_await clear_version(world, layout, tombstone, fence, io_wait);
    if (!done.ok() || fence == Fence::lift) co_return done;
    // Two that removed it at once may have taken each other's tombstone; now there is room for one.
    done = co_await give_up_version(world, layout, std::move(tombstone), io_wait);
    const bool stands = done.code() == Code::already_exists || done.code() == Code::not_found;
    co_return stands ? Status() : std::move(done);
}

}  // namespace

Task<Status> remove_version(World& world, Layout layout, Manifest tombstone, Fence fence, Nanos io_wait) {
    const VersionKey key = tombstone.key;
    Result<std::string> temporary = co_await write_tombstone(world, layout, tombstone, io_wait);
    if (temporary.code() == Code::not_found) co_return Status();  // the whole directory is gone
    if (temporary.code() == Code::out_of_space) {
        Status removed = co_await remove_where_full(world, layout, std::move(tombstone), fence, io_wait);
        co_return removed;
    }
    if (!temporary.ok()) co_return std::move(temporary).status();
    // Now that who publishes can see it.
    Status replaced = co_await check_not_needed(world, layout, key, io_wait);
    if (replaced.ok()) replaced = co_await world.storage.replace(*temporary, layout.manifest(key), world.clock.in(io_wait));
    if (replaced.code() == Code::invalid_argument) {  // rename(2): EISDIR. Nothing was committed by a directory, so it may go first
        replaced = co_await take_away(world, layout.manifest(key), io_wait);
        if (replaced.ok()) replaced = co_await world.storage.replace(*temporary, layout.manifest(key), world.clock.in(io_wait));
    }
    if (replaced.code() == Code::not_found) replaced = co_await check_removed(world, layout, key, std::move(replaced), io_wait);
    if (!replaced.ok()) {
        const Status ignored = co_await world.storage.remove(*temporary, world.clock.in(io_wait));
        (void)ignored;
        co_return replaced;
    }
    Status synced = co_await world.storage.fsync_name(layout.manifest(key), world.clock.in(io_wait));
    if (!synced.ok()) co_return synced.code() == Code::not_found ? Status() : std::move(synced);
    Status cleared = co_await clear_version(world, layout, std::move(tombstone), fence, io_wait);
    co_return cleared;
}

Task<Status> give_up_version(World& world, Layout layout, Manifest tombstone, Nanos io_wait) {
    const VersionKey key = tombstone.key;
    Result<std::string> temporary = co_await write_tombstone(world, layout, tombstone, io_wait);
    if (temporary.code() == Code::out_of_space) {  // a publisher whose unpublished manifest goes begins anew, if it lives
        Status removed = co_await remove_unpublished(world, layout.version(key), key.incarnation, io_wait);
        if (!removed.ok()) co_return removed;
        temporary = co_await write_tombstone(world, layout, std::move(tombstone), io_wait);
    }
    if (!temporary.ok()) co_return std::move(temporary).status();
    Status published = co_await publish_tombstone(world, layout, key, *temporary, io_wait);
    if (published.code() != Code::not_found) co_return published;
    // Who published first took our temporary name with what else nobody may publish any more.
    Result<ManifestFacts> standing = co_await read_manifest_facts(world, layout, key, world.clock.in(io_wait));
    co_return standing.ok() ? Status(Code::already_exists, layout.manifest(key) + ": another was published first") : std::move(published);
}

Task<Result<bool>> job_on_record(World& world, Layout layout, Id128 incarnation, Nanos deadline) {
    Result<std::vector<DirectoryEntry>> entries = co_await world.storage.list(layout.job(incarnation), deadline);
    if (!entries.ok() && entries.code() != Code::not_found) co_return std::move(entries).status();
    const std::string roster = layout.job_roster(incarnation);
    const std::string name = roster.substr(roster.rfind('/') + 1);
    co_return entries.ok() && std::any_of(entries->begin(), entries->end(), [&](const DirectoryEntry& entry) { return entry.name == name; });
}

std::vector<std::size_t> beyond_retention(const std::vector<Version>& versions, std::uint64_t last, std::uint64_t every) {
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i + 1 < versions.size(); ++i)  // never the newest
        if (!retention_keeps(last, every, versions[i], versions.size() - 1 - i)) out.push_back(i);
    return out;
}

}  // namespace cairn
