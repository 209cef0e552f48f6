// Reading the persistent directory. Names that are not ours are left alone; files that are ours but damaged are reported, not hidden.
#include "catalog/catalog.hpp"

#include <algorithm>
#include <map>

#include "catalog/record.hpp"
#include "catalog/reserve.hpp"
#include "format/limits.hpp"
#include "format/manifest.hpp"
#include "format/names.hpp"

namespace cairn {

namespace {
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

namespace {

// Then nothing that was read means anything; other failures are of one file or directory.
bool does_not_answer(const Status& status) { return status.code() == Code::deadline || status.code() == Code::unavailable; }

void add_unlisted(std::string name, Version version, Status why, std::vector<CatalogEntry>& out) {
    CatalogEntry entry;
    entry.key = {std::move(name), version, {}};
    entry.damage = std::move(why);
    out.push_back(std::move(entry));
}

// Of its manifest, as much as is wanted.
Task<void> read_entry(World& world, const Layout& layout, Manifests manifests, Nanos deadline, CatalogEntry& entry) {
    Status read;
    if (manifests == Manifests::whole) {
        Result<Manifest> whole = co_await read_manifest(world, layout, entry.key, deadline);
        read = whole.status();
        if (whole.ok()) entry.whole = std::move(whole).value();
        if (entry.whole) entry.manifest = *entry.whole;
    } else {
        Result<ManifestFacts> facts = co_await read_manifest_facts(world, layout, entry.key, deadline);
        read = facts.status();
        if (facts.ok()) entry.manifest = std::move(facts).value();
    }
    if (!read.ok() && read.code() != Code::not_found) entry.damage = std::move(read);
}

// All incarnations that left something in one version's directory.
Task<Status> list_version(World& world, Layout layout, std::string name, Version version, Manifests manifests, Nanos deadline, std::vector<CatalogEntry>& out) {
    const std::string directory = layout.version(name, version);
    Result<std::vector<DirectoryEntry>> files = co_await world.storage.list(directory, deadline);
    if (files.code() == Code::not_found) co_return Status();
    if (!files.ok() && does_not_answer(files.status())) co_return std::move(files).status();
    if (!files.ok()) {
        add_unlisted(std::move(name), version, std::move(files).status(), out);
        co_return Status();
    }
    std::map<std::uint64_t, CatalogEntry> by_half;  // parts carry the incarnation's first half only
    for (const DirectoryEntry& file : *files) {
        const std::optional<Id128> incarnation = parse_manifest_file_name(file.name);
        if (!incarnation) continue;
        CatalogEntry& entry = by_half[incarnation->high];
        entry.key = {name, version, *incarnation};
        entry.files.push_back(file);
        co_await read_entry(world, layout, manifests, deadline, entry);
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

Task<Result<std::vector<CatalogEntry>>> list_versions(World& world, Layout layout, std::string name, Nanos deadline, Manifests manifests) {
    std::vector<CatalogEntry> versions;
    Result<std::vector<DirectoryEntry>> entries = co_await world.storage.list(layout.series(name), deadline);
    if (!entries.ok()) {
        Status status = co_await unless_root_missing(world.storage, layout.persistent, std::move(entries).status(), deadline);
        if (status.code() == Code::not_found) co_return versions;
        co_return status;
    }
    for (const DirectoryEntry& entry : *entries) {
        const std::optional<Version> version = parse_version_directory_name(entry.name);
        if (!version) continue;
        if (!entry.is_directory) {
            add_unlisted(name, *version, corrupt(layout.version(name, *version) + ": is not a directory"), versions);
            continue;
        }
        Status listed = co_await list_version(world, layout, name, *version, manifests, deadline, versions);
        if (!listed.ok()) co_return listed;
    }
    std::stable_sort(versions.begin(), versions.end(), [](const CatalogEntry& a, const CatalogEntry& b) {
        const std::uint64_t epoch_a = a.manifest ? a.manifest->epoch : 0, epoch_b = b.manifest ? b.manifest->epoch : 0;
        return a.key.version != b.key.version ? a.key.version < b.key.version : epoch_a < epoch_b;
    });
    co_return versions;
}

namespace {

// A record that is listed; one that can not be read says why.
template <class Record>
Task<Status> read_lineage_record(World& world, std::string path, FrameKind kind, Result<Record> (*decode)(ByteView), Nanos deadline,
                                 std::optional<Record>& out, std::optional<Status>& damage) {
    Result<Bytes> bytes = co_await read_record(world, path, kind, record_file_bytes_max, deadline);
    if (bytes.code() == Code::not_found) bytes = Status(Code::io_error, path + ": is listed, and not there");  // none ever goes
    if (!bytes.ok() && does_not_answer(bytes.status())) co_return std::move(bytes).status();
    Result<Record> record = bytes.ok() ? decode(*bytes) : Result<Record>(bytes.status());
    if (record.ok()) out = std::move(record).value();
    else damage = std::move(record).status().within(path);
    co_return Status();
}

struct Listed {
    bool open = false, from = false;
};

Task<Result<LineageEntry>> read_open(World& world, Layout layout, std::string name, std::uint64_t epoch, Listed listed, Nanos deadline) {
    LineageEntry entry;
    std::optional<OpenRecord> open;
    const std::string open_path = layout.lineage_open(name, epoch), from_path = layout.lineage_from(name, epoch);
    if (listed.open) {
        Status read = co_await read_lineage_record(world, open_path, FrameKind::open, decode_open_record, deadline, open, entry.open_damage);
        if (!read.ok()) co_return read;
    } else {
        entry.open_damage = corrupt(open_path + ": is missing");
    }
    if (listed.from) {
        Status read = co_await read_lineage_record(world, from_path, FrameKind::from, decode_from_record, deadline, entry.from, entry.from_damage);
        if (!read.ok()) co_return read;
    }
    if (open) entry.open = std::move(*open);
    else if (entry.from) entry.open.incarnation = entry.from->incarnation;
    entry.open.epoch = epoch;
    co_return entry;
}

// Whether something stands there, and is no directory: "not found" is what a file system says of that, too.
Task<Status> check_is_directory(World& world, Layout layout, std::string name, Nanos deadline) {
    Result<std::vector<DirectoryEntry>> entries = co_await world.storage.list(layout.series(name), deadline);
    if (!entries.ok()) co_return std::move(entries).status();
    for (const DirectoryEntry& entry : *entries)
        if (layout.series(name) + "/" + entry.name == layout.lineage(name) && !entry.is_directory)
            co_return corrupt(layout.lineage(name) + ": is not a directory");
    co_return Status();
}

}  // namespace

Task<Result<LineageRecords>> read_lineage(World& world, Layout layout, std::string name, Nanos deadline) {
    LineageRecords records;
    records.name = name;
    Result<std::vector<DirectoryEntry>> entries = co_await world.storage.list(layout.lineage(name), deadline);
    if (!entries.ok()) {
        Status status = co_await unless_root_missing(world.storage, layout.persistent, std::move(entries).status(), deadline);
        if (status.code() == Code::not_found) status = co_await check_is_directory(world, layout, name, deadline);
        if (does_not_answer(status)) co_return status;
        if (status.code() != Code::not_found) records.unlisted = std::move(status);
        co_return records;
    }
    std::map<std::uint64_t, Listed> epochs;
    for (const DirectoryEntry& entry : *entries) {
        if (const std::optional<std::uint64_t> epoch = parse_lineage_open_name(entry.name)) epochs[*epoch].open = true;
        if (const std::optional<std::uint64_t> epoch = parse_lineage_from_name(entry.name)) epochs[*epoch].from = true;
    }
    for (const auto& [epoch, listed] : epochs) {
        Result<LineageEntry> open = co_await read_open(world, layout, name, epoch, listed, deadline);
        if (!open.ok()) co_return std::move(open).status();
        records.opens.push_back(std::move(open).value());
    }
    co_return records;
}

namespace {

Task<Status> publish_record(World& world, Layout layout, std::string path, Bytes bytes, Nanos deadline) {
    Status published = co_await publish_small_file(world, layout, path, std::move(bytes), 0644, deadline);
    if (!published.ok()) co_return published;
    Status synced = co_await world.storage.fsync_name(std::move(path), deadline);
    co_return synced;
}

}  // namespace

Task<Result<std::uint64_t>> claim_epoch(World& world, Layout layout, std::string name, OpenRecord record, std::uint64_t known, Nanos deadline) {
    const std::string directory = layout.lineage(name);
    Status made = co_await make_directories(world, layout, directory, deadline);
    if (!made.ok()) co_return made;
    for (;;) {
        Result<std::vector<DirectoryEntry>> entries = co_await world.storage.list(directory, deadline);
        if (entries.code() == Code::not_found || entries.code() == Code::corrupt)  // made, or there, a moment ago
            co_return corrupt(directory + ": is not a directory, and an open needs one; `cairn repair " + name + " --forget` puts it aside and makes one from what manifests tell");
        if (!entries.ok()) co_return std::move(entries).status();
        std::uint64_t highest = 0;
        for (const DirectoryEntry& entry : *entries)
            if (const auto taken = parse_epoch_taken(entry.name)) highest = std::max(highest, *taken);
        std::uint64_t epoch = std::max(highest, known) + 1;
        if (highest == 0) epoch = std::max(epoch, std::min(world.clock.wall_time_s(), epoch_max / 2));  // a clock that is mad leaves room
        record.epoch = epoch;
        Bytes bytes = encode_open_record(record);
        const std::string path = layout.lineage_open(name, epoch);
        Status published = co_await publish_record(world, layout, path, std::move(bytes), deadline);
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
        if (!record.ok() || record->incarnation == incarnation || record->incarnation == nobodys_incarnation(epoch)) co_return Status();
    }
    co_return unavailable(path + (bytes.ok() ? " is another job's" : ", which says that this job began, is not there") + ": is the file system mounted that was at " +
                          layout.persistent + " then? Until it is back nothing is committed, and what is sealed stays in scratch");
}

Task<Status> record_parent(World& world, Layout layout, std::string name, std::uint64_t epoch, FromRecord record, Nanos deadline) {
    const std::string path = layout.lineage_from(name, epoch);
    Bytes bytes = encode_from_record(record);
    Status published = co_await publish_record(world, layout, path, std::move(bytes), deadline);
    if (published.code() != Code::already_exists) co_return published;
    Result<Bytes> standing = co_await read_record(world, path, FrameKind::from, record_file_bytes_max, deadline);
    if (!standing.ok()) co_return std::move(standing).status();
    Result<FromRecord> from = decode_from_record(*standing);
    if (!from.ok()) co_return std::move(from).status().within(path);
    if (from->incarnation != record.incarnation || from->parent != record.parent) co_return Status(Code::already_exists, path + ": names another parent");
    co_return Status();
}

}  // namespace cairn
