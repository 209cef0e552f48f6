// The simulated cluster's readers: what a restarting job finds under persistent, and whether the bytes are those that were captured.
#include "proof/cluster.hpp"

namespace cairn::testing {

std::vector<CatalogEntry> Cluster::Found::in_lineage() const {
    std::vector<CatalogEntry> found;
    for (const CatalogEntry& entry : entries)
        if (entry.unlisted() || lineage.contains(entry.key.incarnation, entry.key.version)) found.push_back(entry);
    return found;
}

Version Cluster::Found::newest() const {
    Version newest = 0;
    for (const CatalogEntry& entry : in_lineage())
        if (entry.committed()) newest = entry.key.version;
    return newest;
}

Task<Result<Cluster::Found>> Cluster::look(World world, std::vector<SealedVersion> sealed) const {
    const std::string name = roster.name;
    Found found;
    Result<LineageRecords> records = co_await read_lineage(world, layout, name, world.clock.in(io_span));
    if (!records.ok()) co_return std::move(records).status();
    Result<std::vector<CatalogEntry>> entries = co_await list_versions(world, layout, name, world.clock.in(io_span), Manifests::whole);
    if (!entries.ok()) co_return std::move(entries).status();
    found.entries = std::move(entries).value();
    found.lineage = current_lineage(*records, found.entries, sealed);
    const Status doubt = found.lineage.doubt_of(found.newest());
    if (!doubt.ok()) co_return doubt;
    co_return found;
}

Task<Status> Cluster::restore(World world, VersionKey key, VersionKey content) const {
    Result<Manifest> manifest = co_await read_manifest(world, layout, key, world.clock.in(io_span));
    if (!manifest.ok()) co_return std::move(manifest).status();
    if (manifest->abandoned) co_return not_found("given up");
    if (manifest->parts.size() != options.files) co_return Status(Code::internal, "not K parts");
    for (Rank rank = 0; rank < manifest->ranks; ++rank) {
        Result<OpenVersion> version = co_await open_version(world, layout, *manifest, rank, options.restore);
        if (!version.ok()) co_return std::move(version).status();
        std::uint64_t bytes = 0;
        const std::uint64_t seed = content_seed(content.incarnation, content.version, rank);
        const ImageSink sink = [&](std::uint64_t offset, Slice data) {
            bytes += data.length;
            Slice expected = sim::describe(seed, data.length, offset);
            return sim::content_equal(data, expected) ? Status() : Status(Code::internal, "restored bytes of rank " + std::to_string(rank) + " differ");
        };
        Status status = co_await restore_image(world, layout, *version, rank, {}, sink, options.restore);
        if (!status.ok()) co_return status;
        if (bytes != options.image_bytes(rank, content.version)) co_return Status(Code::internal, "bytes missing");
    }
    co_return Status();
}

Status Cluster::check_committed(VersionKey key, VersionKey content, std::optional<NodeIndex> on, Nanos limit) {
    sim::Process& process = hosts[on.value_or(reader())].node->start_process("reader");
    Status result = deadline_passed("reading back");
    const auto check = [](const Cluster* cluster, World world, VersionKey version, VersionKey its, Status* out) -> Task<void> {
        Status status = co_await cluster->restore(world, std::move(version), std::move(its));
        *out = std::move(status);
    };
    (void)sim.run(check(this, process.world(), std::move(key), std::move(content), &result), sim.now() + limit);
    process.kill();
    return result;
}

Result<Cluster::Found> Cluster::look_now(Nanos limit) {
    sim::Process& process = hosts[reader()].node->start_process("reader");
    Result<Found> found(deadline_passed("listing"));
    const auto find = [](const Cluster* cluster, World world, Result<Found>* out) -> Task<void> {
        Result<Found> looked = co_await cluster->look(world, {});
        *out = std::move(looked);
    };
    (void)sim.run(find(this, process.world(), &found), sim.now() + limit);
    process.kill();
    return found;
}

Result<std::optional<Manifest>> Cluster::newest_committed(Nanos limit) {
    const Result<Found> found = look_now(limit);
    if (!found.ok()) return found.status();
    std::optional<Manifest> newest;
    for (const CatalogEntry& entry : found->in_lineage())
        if (entry.committed()) newest = entry.whole;
    return newest;
}

}  // namespace cairn::testing
