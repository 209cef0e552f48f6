// Removing versions, names before contents: see removal.hpp.
#include "engine/removal.hpp"

#include "base/config.hpp"
#include "format/manifest.hpp"
#include "format/names.hpp"

namespace cairn {

Task<Status> remove_files(World& world, std::string directory, std::vector<std::string> files, Nanos io_wait) {
    for (const std::string& file : files) {
        Status removed = co_await world.storage.remove(directory + "/" + file, world.clock.in(io_wait));
        if (!removed.ok() && removed.code() != Code::not_found) co_return removed;
    }
    // Another incarnation's files may be there still, or come at this moment.
    Status removed = co_await world.storage.remove_directory(directory, world.clock.in(io_wait));
    if (!removed.ok() && removed.code() != Code::already_exists && removed.code() != Code::not_found) co_return removed;
    co_return Status();
}

Task<Status> remove_version(World& world, Layout layout, CatalogEntry entry, Nanos io_wait) {
    const std::string directory = layout.version(entry.key);
    std::vector<std::string> rest;
    bool had_manifest = false;
    for (const DirectoryEntry& file : entry.files) {
        if (!parse_manifest_file_name(file.name)) {
            rest.push_back(file.name);
            continue;
        }
        Status removed = co_await world.storage.remove(directory + "/" + file.name, world.clock.in(io_wait));
        if (!removed.ok() && removed.code() != Code::not_found) co_return removed;
        had_manifest = true;
    }
    if (had_manifest) {
        Status synced = co_await world.storage.fsync_directory(directory, world.clock.in(io_wait));
        if (!synced.ok()) co_return synced;
    }
    Status removed = co_await remove_files(world, directory, std::move(rest), io_wait);
    co_return removed;
}

Task<Status> give_up_version(World& world, Layout layout, Manifest tombstone, Nanos io_wait) {
    tombstone.abandoned = true;
    tombstone.attempt_id = {tombstone.key.incarnation.high, world.random.next()};
    const std::string final_path = layout.manifest(tombstone.key);
    const std::string temporary = final_path + "." + tombstone.attempt_id.hex() + ".tmp";
    Bytes bytes = encode_manifest(tombstone);
    Status status = co_await write_file(world.storage, temporary, std::move(bytes), 0644, world.clock.in(io_wait));
    if (status.ok()) status = co_await world.storage.publish(temporary, final_path, world.clock.in(io_wait));
    const Status ignored = co_await world.storage.remove(temporary, world.clock.in(io_wait));  // there after a link, gone after a rename
    (void)ignored;
    if (!status.ok()) co_return status;
    Status synced = co_await world.storage.fsync_directory(layout.version(tombstone.key), world.clock.in(io_wait));
    co_return synced;
}

std::vector<std::size_t> beyond_retention(const std::vector<Version>& versions, std::uint64_t last, std::uint64_t every) {
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i + 1 < versions.size(); ++i)  // never the newest
        if (!retention_keeps(last, every, versions[i], versions.size() - 1 - i)) out.push_back(i);
    return out;
}

}  // namespace cairn
