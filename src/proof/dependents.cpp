#include "proof/dependents.hpp"

#include "catalog/needed.hpp"
#include "format/manifest.hpp"

namespace cairn::testing {

namespace {

// Epoch 1 is older than any job's, so that no restart comes to it: what is asked is what becomes of its base.
Manifest dependent_on(const Manifest& base, const VersionKey& key, std::uint64_t attempt) {
    Manifest manifest = base;
    manifest.key = key;
    manifest.epoch = 1;
    manifest.parent = {};
    manifest.attempt_id = {key.incarnation.high, attempt};
    manifest.bases.push_back({base.key.version, base.key.incarnation});
    for (PartInfo& part : manifest.parts) part.origin = static_cast<std::uint32_t>(manifest.bases.size());
    return manifest;
}

}  // namespace

Task<Status> publish_dependent(World world, Layout layout, VersionKey base, VersionKey key, Nanos io_wait) {
    Result<Manifest> standing = co_await read_manifest(world, layout, base, world.clock.in(io_wait));
    if (!standing.ok()) co_return std::move(standing).status();
    if (standing->abandoned) co_return not_found(version_text(base) + " was given up");
    const Manifest manifest = dependent_on(*standing, key, world.random.next());
    const std::string temporary = layout.temporary(key, manifest.attempt_id), path = layout.manifest(key);
    CO_TRY(co_await make_directories(world.storage, layout.persistent, layout.version(key), world.clock.in(io_wait)));
    Bytes bytes = encode_manifest(manifest);
    CO_TRY(co_await write_file(world.storage, temporary, std::move(bytes), 0644, world.clock.in(io_wait)));
    Status stands = co_await check_bases_stand(world, layout, manifest, io_wait);
    if (stands.ok()) stands = co_await world.storage.publish(temporary, path, world.clock.in(io_wait));
    const Status ignored = co_await world.storage.remove(temporary, world.clock.in(io_wait));
    (void)ignored;
    if (!stands.ok()) co_return stands;
    Status synced = co_await world.storage.fsync_directory(layout.version(key), world.clock.in(io_wait));
    co_return synced;
}

}  // namespace cairn::testing
