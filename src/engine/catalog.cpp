// Reading the persistent directory. Names that are not ours are left alone; files that are ours but damaged are reported, not hidden.
#include "engine/catalog.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "engine/record.hpp"
#include "format/limits.hpp"
#include "format/manifest.hpp"
#include "format/names.hpp"

namespace cairn {

namespace {
constexpr std::uint64_t manifest_bytes_max = 1ull << 31;
constexpr std::uint64_t record_file_bytes_max = 1ull << 20;
}  // namespace

Task<Result<std::vector<std::string>>> list_series(World& world, Layout layout, Nanos deadline) {
    std::vector<std::string> names;
    Result<std::vector<DirectoryEntry>> entries = co_await world.storage.list(layout.persistent, deadline);
    if (!entries.ok()) co_return std::move(entries).status();
    for (const DirectoryEntry& entry : *entries)
        if (entry.is_directory && valid_name(entry.name)) names.push_back(entry.name);
    co_return names;
}

Task<Result<Manifest>> read_manifest(World& world, Layout layout, VersionKey key, Nanos deadline) {
    const std::string path = layout.manifest(key);
    Result<Bytes> bytes = co_await read_record(world, path, FrameKind::manifest, manifest_bytes_max, deadline);
    if (!bytes.ok()) co_return std::move(bytes).status();
    Result<Manifest> manifest = decode_manifest(*bytes);
    if (!manifest.ok()) co_return std::move(manifest).status().within(path);
    if (manifest->key != key) co_return corrupt(path + ": is the manifest of " + manifest->key.name + " version " + std::to_string(manifest->key.version));
    co_return manifest;
}

namespace {

// All incarnations that left something in one version's directory.
Task<Status> list_version(World& world, Layout layout, std::string name, Version version, Nanos deadline, std::vector<CatalogEntry>& out) {
    const std::string directory = layout.version(name, version);
    Result<std::vector<DirectoryEntry>> files = co_await world.storage.list(directory, deadline);
    if (!files.ok()) co_return files.code() == Code::not_found ? Status() : std::move(files).status();
    std::map<std::uint64_t, CatalogEntry> by_half;  // parts carry the incarnation's first half only
    for (const DirectoryEntry& file : *files) {
        const std::optional<Id128> incarnation = parse_manifest_file_name(file.name);
        if (!incarnation) continue;
        CatalogEntry& entry = by_half[incarnation->high];
        entry.key = {name, version, *incarnation};
        entry.files.push_back(file);
        Result<Manifest> manifest = co_await read_manifest(world, layout, entry.key, deadline);
        if (manifest.ok()) entry.manifest = std::move(manifest).value();
        else if (manifest.code() != Code::not_found) entry.damage = std::move(manifest).status();
    }
    for (const DirectoryEntry& file : *files) {
        const std::optional<Id128> attempt_id = parse_attempt_of(file.name);
        if (!attempt_id) continue;
        CatalogEntry& entry = by_half[attempt_id->high];
        entry.key.name = name;
        entry.key.version = version;
        entry.files.push_back(file);
    }
    for (auto& [half, entry] : by_half) {
        if (!entry.key.incarnation) entry.key.incarnation = {half, 0};  // parts only: the second half is not known from them
        out.push_back(std::move(entry));
    }
    co_return Status();
}

}  // namespace

Task<Result<std::vector<CatalogEntry>>> list_versions(World& world, Layout layout, std::string name, Nanos deadline) {
    std::vector<CatalogEntry> versions;
    Result<std::vector<DirectoryEntry>> entries = co_await world.storage.list(layout.series(name), deadline);
    if (!entries.ok()) {
        Status status = co_await unless_root_missing(world.storage, layout.persistent, std::move(entries).status(), deadline);
        if (status.code() == Code::not_found) co_return versions;
        co_return status;
    }
    for (const DirectoryEntry& entry : *entries) {
        const std::optional<Version> version = parse_version_directory_name(entry.name);
        if (!version || !entry.is_directory) continue;
        Status listed = co_await list_version(world, layout, name, *version, deadline, versions);
        if (!listed.ok()) co_return listed;
    }
    std::stable_sort(versions.begin(), versions.end(), [](const CatalogEntry& a, const CatalogEntry& b) {
        const std::uint64_t epoch_a = a.manifest ? a.manifest->epoch : 0, epoch_b = b.manifest ? b.manifest->epoch : 0;
        return a.key.version != b.key.version ? a.key.version < b.key.version : epoch_a < epoch_b;
    });
    co_return versions;
}

Task<Result<std::vector<LineageEntry>>> read_lineage(World& world, Layout layout, std::string name, Nanos deadline) {
    std::vector<LineageEntry> lineage;
    Result<std::vector<DirectoryEntry>> entries = co_await world.storage.list(layout.lineage(name), deadline);
    if (!entries.ok()) {
        Status status = co_await unless_root_missing(world.storage, layout.persistent, std::move(entries).status(), deadline);
        if (status.code() == Code::not_found) co_return lineage;
        co_return status;
    }
    std::set<std::string> names;
    for (const DirectoryEntry& entry : *entries) names.insert(entry.name);
    for (const std::string& file : names) {
        const std::optional<std::uint64_t> epoch = parse_lineage_open_name(file);
        if (!epoch) continue;
        const std::string path = layout.lineage(name) + "/" + file;
        Result<Bytes> bytes = co_await read_record(world, path, FrameKind::open, record_file_bytes_max, deadline);
        if (!bytes.ok()) co_return std::move(bytes).status();
        Result<OpenRecord> open = decode_open_record(*bytes);
        if (!open.ok()) co_return std::move(open).status().within(path);
        LineageEntry entry{std::move(open).value(), std::nullopt};
        entry.open.epoch = *epoch;
        if (names.count(lineage_from_name(*epoch))) {
            const std::string from_path = layout.lineage_from(name, *epoch);
            bytes = co_await read_record(world, from_path, FrameKind::from, record_file_bytes_max, deadline);
            if (!bytes.ok()) co_return std::move(bytes).status();
            Result<FromRecord> from = decode_from_record(*bytes);
            if (!from.ok()) co_return std::move(from).status().within(from_path);
            entry.from = std::move(from).value();
        }
        lineage.push_back(std::move(entry));
    }
    co_return lineage;
}

namespace {

// Complete under a temporary name, durable, then visible: readers never see half a record.
Task<Status> publish_record(World& world, std::string directory, std::string path, Bytes bytes, Nanos deadline) {
    const std::string temporary = directory + "/" + temporary_file_name(world.random.id());
    Status wrote = co_await write_file(world.storage, temporary, std::move(bytes), 0644, deadline);
    if (!wrote.ok()) co_return wrote;
    Status published = co_await world.storage.publish(temporary, path, deadline);
    const Status removed = co_await world.storage.remove(temporary, deadline);
    (void)removed;
    if (!published.ok()) co_return published;
    Status synced = co_await world.storage.fsync_directory(directory, deadline);
    co_return synced;
}

}  // namespace

Task<Result<std::uint64_t>> claim_epoch(World& world, Layout layout, std::string name, OpenRecord record, std::uint64_t known, Nanos deadline) {
    const std::string directory = layout.lineage(name);
    Status made = co_await make_directories(world.storage, layout.persistent, directory, deadline);
    if (!made.ok()) co_return made;
    for (;;) {
        Result<std::vector<DirectoryEntry>> entries = co_await world.storage.list(directory, deadline);
        if (!entries.ok()) co_return std::move(entries).status();
        std::uint64_t highest = 0;
        for (const DirectoryEntry& entry : *entries)
            if (const auto taken = parse_lineage_open_name(entry.name)) highest = std::max(highest, *taken);
        std::uint64_t epoch = std::max(highest, known) + 1;
        if (highest == 0) epoch = std::max(epoch, std::min(world.clock.wall_time_s(), epoch_max / 2));  // a clock that is mad leaves room
        record.epoch = epoch;
        Bytes bytes = encode_open_record(record);
        const std::string path = layout.lineage_open(name, epoch);
        Status published = co_await publish_record(world, directory, path, std::move(bytes), deadline);
        if (published.ok()) co_return epoch;
        if (published.code() != Code::already_exists) co_return published;
        if (world.clock.now() >= deadline) co_return deadline_passed(directory + ": other jobs kept taking the next epoch");
    }
}

Task<Status> check_on_record(World& world, Layout layout, std::string name, std::uint64_t epoch, Id128 incarnation, Nanos deadline) {
    const std::string path = layout.lineage_open(name, epoch);
    Result<Bytes> bytes = co_await read_record(world, path, FrameKind::open, record_file_bytes_max, deadline);
    if (bytes.code() == Code::corrupt || bytes.code() == Code::unsupported) co_return Status();
    if (!bytes.ok() && bytes.code() != Code::not_found) co_return std::move(bytes).status();
    if (bytes.ok()) {
        const Result<OpenRecord> record = decode_open_record(*bytes);
        if (!record.ok() || record->incarnation == incarnation) co_return Status();
    }
    co_return unavailable(path + (bytes.ok() ? " is another job's" : ", which says that this job began, is not there") + ": is the file system mounted that was at " +
                          layout.persistent + " then? Until it is back nothing is committed, and what is sealed stays in scratch");
}

Task<Status> record_parent(World& world, Layout layout, std::string name, std::uint64_t epoch, FromRecord record, Nanos deadline) {
    const std::string path = layout.lineage_from(name, epoch);
    Bytes bytes = encode_from_record(record);
    Status published = co_await publish_record(world, layout.lineage(name), path, std::move(bytes), deadline);
    if (published.code() != Code::already_exists) co_return published;
    Result<Bytes> standing = co_await read_record(world, path, FrameKind::from, record_file_bytes_max, deadline);
    if (!standing.ok()) co_return std::move(standing).status();
    Result<FromRecord> from = decode_from_record(*standing);
    if (!from.ok()) co_return std::move(from).status().within(path);
    if (!(*from == record)) co_return Status(Code::already_exists, path + ": names another parent");
    co_return Status();
}

std::vector<LineageLink> current_lineage(const std::vector<LineageEntry>& opens, const std::vector<CatalogEntry>& entries,
                                         const std::vector<SealedVersion>& sealed) {
    struct Known {
        std::uint64_t epoch = 0;
        Parent parent;
        bool counts = false;  // committed, sealed, or restored from; or perhaps committed
    };
    std::map<Id128, Known> known;
    for (const LineageEntry& entry : opens) {
        Known& k = known[entry.open.incarnation];
        k.epoch = entry.open.epoch;
        if (entry.from) {
            k.parent = entry.from->parent;
            k.counts = true;
        }
    }
    const auto add = [&](Id128 incarnation, std::uint64_t epoch, const Parent& parent) {
        Known& k = known[incarnation];
        k.epoch = std::max(k.epoch, epoch);
        if (parent.incarnation) k.parent = parent;
        k.counts = true;
    };
    for (const CatalogEntry& entry : entries) {
        if (entry.committed()) add(entry.key.incarnation, entry.manifest->epoch, entry.manifest->parent);
        // What it says can not be read. Taken for nothing, an older lineage, or none, would be gone on from without a word.
        const auto of = entry.damage ? known.find(entry.key.incarnation) : known.end();
        if (of != known.end()) of->second.counts = true;
    }
    for (const SealedVersion& version : sealed) add(version.incarnation, version.epoch, version.parent);
    std::vector<LineageLink> lineage;
    const Known* head = nullptr;
    Id128 at;
    for (const auto& [incarnation, k] : known)
        if (k.counts && (!head || k.epoch > head->epoch)) {
            head = &k;
            at = incarnation;
        }
    if (!head) return lineage;
    std::set<Id128> visited;
    for (Version version_max = UINT64_MAX; at && visited.insert(at).second;) {
        const auto found = known.find(at);
        lineage.push_back({at, found == known.end() ? 0 : found->second.epoch, version_max});
        if (found == known.end()) break;
        version_max = std::min(version_max, found->second.parent.version);
        at = found->second.parent.incarnation;
    }
    return lineage;
}

bool in_lineage(const std::vector<LineageLink>& lineage, Id128 incarnation, Version version) {
    return std::any_of(lineage.begin(), lineage.end(),
                       [&](const LineageLink& link) { return link.incarnation == incarnation && version <= link.version_max; });
}

}  // namespace cairn
