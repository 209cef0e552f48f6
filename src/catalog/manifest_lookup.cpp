#include "catalog/manifest_lookup.hpp"

#include <algorithm>

#include "format/frame.hpp"

namespace cairn {

namespace {

struct Opened {
    FilePtr file;
    std::uint64_t bytes = 0;
};

Task<Result<Bytes>> read_at(World& world, const Opened& opened, std::uint64_t offset, std::uint64_t length, Nanos deadline) {
    auto buffer = std::make_shared<BytesBuffer>(Bytes(length));
    Slice into = Slice::whole(buffer);
    Status got = co_await read_all(world.storage, opened.file, offset, into, deadline);
    if (!got.ok()) co_return got;
    into.buffer.reset();
    co_return buffer->take();
}

Task<Result<Opened>> open(World& world, std::string path, Nanos deadline) {
    OpenOptions options;
    Result<FilePtr> file = co_await world.storage.open(path, options, deadline);
    if (!file.ok()) co_return std::move(file).status();
    Result<std::uint64_t> bytes = co_await world.storage.file_bytes(*file, deadline);
    if (!bytes.ok()) co_return std::move(bytes).status();
    co_return Opened{std::move(file).value(), *bytes};
}

// The first read, and more where the head is longer.
Task<Result<Bytes>> read_start(World& world, const Opened& opened, Nanos deadline) {
    Result<Bytes> start = co_await read_at(world, opened, 0, std::min(opened.bytes, manifest_first_read_bytes), deadline);
    if (!start.ok()) co_return start;
    Result<std::uint64_t> head = frame_bytes(FrameKind::manifest, *start, opened.bytes, FrameEnd::more_may_follow);
    if (!head.ok()) co_return std::move(head).status();
    if (*head > start->size()) start = co_await read_at(world, opened, 0, *head, deadline);
    co_return start;
}

// Of the tables, with the pages that hold it compared with their checksums.
Task<Result<Bytes>> read_table(World& world, const Opened& opened, const PartTables& tables, TableRange range, Nanos deadline) {
    const TableRange pages = tables.pages_of(range);
    Result<Bytes> bytes = co_await read_at(world, opened, tables.offset + pages.offset, pages.length, deadline);
    if (!bytes.ok()) co_return bytes;
    CO_TRY(check_part_pages(tables, pages, *bytes));
    const ByteView wanted = ByteView(*bytes).subspan(range.offset - pages.offset, range.length);
    co_return Bytes(wanted.begin(), wanted.end());
}

std::uint64_t end_of(const TableRange& range) { return range.offset + range.length; }

// Records of one page, and of pages that follow each other, are one read: pages are read whole.
Task<Result<std::vector<PartInfo>>> read_records(World& world, const Opened& opened, const ManifestHead& head, std::vector<std::uint32_t> places, Nanos deadline) {
    std::vector<PartInfo> parts;
    for (std::size_t i = 0; i < places.size();) {
        const TableRange first = head.tables.record(places[i]);
        std::size_t end = i + 1;
        while (end < places.size() && head.tables.pages_of(head.tables.record(places[end])).offset <= end_of(head.tables.pages_of(head.tables.record(places[end - 1])))) ++end;
        const TableRange all{first.offset, end_of(head.tables.record(places[end - 1])) - first.offset};
        Result<Bytes> records = co_await read_table(world, opened, head.tables, all, deadline);
        if (!records.ok()) co_return std::move(records).status();
        for (; i < end; ++i) {
            Result<PartInfo> part = decode_part_record(ByteView(*records).subspan(head.tables.record(places[i]).offset - first.offset, part_record_bytes), head.naming);
            if (!part.ok()) co_return std::move(part).status();
            parts.push_back(std::move(part).value());
        }
    }
    co_return parts;
}

Task<Result<Manifest>> look_up(World& world, const Opened& opened, const ManifestHead& head, Rank rank, Nanos deadline) {
    std::vector<PartInfo> none;
    if (rank >= head.tables.ranks) co_return manifest_of_rank(head, rank, std::move(none));
    Result<Bytes> entry = co_await read_table(world, opened, head.tables, head.tables.entry_of(rank), deadline);
    if (!entry.ok()) co_return std::move(entry).status();
    const auto place = decode_part_entry(head.tables, rank, *entry);
    if (!place.ok()) co_return Status(place.status());
    Result<Bytes> list = co_await read_table(world, opened, head.tables, head.tables.list(place->first, place->second), deadline);
    if (!list.ok()) co_return std::move(list).status();
    Result<std::vector<std::uint32_t>> places = decode_part_list(head.tables, rank, *list);
    if (!places.ok()) co_return std::move(places).status();
    Result<std::vector<PartInfo>> parts = co_await read_records(world, opened, head, std::move(places).value(), deadline);
    if (!parts.ok()) co_return std::move(parts).status();
    co_return manifest_of_rank(head, rank, std::move(parts).value());
}

// Behind the head, whose start was read.
Task<Result<Manifest>> read_rest(World& world, const Opened& opened, Bytes start, Nanos deadline) {
    const std::uint64_t first = start.size();
    start.resize(opened.bytes);
    auto buffer = std::make_shared<BytesBuffer>(std::move(start));
    Slice into = Slice::whole(buffer).part(first, opened.bytes - first);
    Status got = co_await read_all(world.storage, opened.file, first, into, deadline);
    if (!got.ok()) co_return got;
    into.buffer.reset();
    co_return decode_manifest(buffer->take());
}

Status check_length(const Opened& opened, const ManifestHead& head) {
    const std::uint64_t told = head.tables.offset + head.tables.bytes();
    return told == opened.bytes ? Status() : corrupt(std::to_string(opened.bytes) + " bytes, and its head says " + std::to_string(told));
}

Task<Result<ManifestFacts>> read_facts(World& world, std::string path, Nanos deadline) {
    Result<Opened> opened = co_await open(world, std::move(path), deadline);
    if (!opened.ok()) co_return std::move(opened).status();
    Result<Bytes> start = co_await read_start(world, *opened, deadline);
    if (!start.ok()) co_return std::move(start).status();
    if (start->size() == opened->bytes) {
        Result<Manifest> whole = decode_manifest(*start);
        if (!whole.ok()) co_return std::move(whole).status();
        co_return ManifestFacts(std::move(*whole));
    }
    Result<ManifestHead> head = decode_manifest_head(*start);
    if (!head.ok()) co_return std::move(head).status();
    CO_TRY(check_length(*opened, *head));
    co_return ManifestFacts(std::move(head->manifest));
}

// Of one rank, or of all.
Task<Result<Manifest>> read_of(World& world, std::string path, std::optional<Rank> rank, Nanos deadline) {
    Result<Opened> opened = co_await open(world, std::move(path), deadline);
    if (!opened.ok()) co_return std::move(opened).status();
    Result<Bytes> start = co_await read_start(world, *opened, deadline);
    if (!start.ok()) co_return std::move(start).status();
    if (start->size() == opened->bytes) co_return decode_manifest(*start);
    Result<ManifestHead> head = decode_manifest_head(*start);
    if (!head.ok()) co_return std::move(head).status();
    CO_TRY(check_length(*opened, *head));
    if (rank) {
        Result<Manifest> manifest = co_await look_up(world, *opened, *head, *rank, deadline);
        co_return manifest;
    }
    Result<Manifest> manifest = co_await read_rest(world, *opened, std::move(start).value(), deadline);
    co_return manifest;
}

Task<Result<Manifest>> read_its(World& world, Layout layout, VersionKey key, std::optional<Rank> rank, Nanos deadline) {
    const std::string path = layout.manifest(key);
    Result<Manifest> manifest = co_await read_of(world, path, rank, deadline);
    if (!manifest.ok()) co_return std::move(manifest).status().within(path);
    if (manifest->key != key) co_return corrupt(path + ": is the manifest of " + version_text(manifest->key));
    co_return manifest;
}

}  // namespace

Task<Result<ManifestHead>> read_manifest_head(World& world, std::string path, Nanos deadline) {
    Result<Opened> opened = co_await open(world, path, deadline);
    if (!opened.ok()) co_return std::move(opened).status();
    Result<Bytes> start = co_await read_start(world, *opened, deadline);
    if (!start.ok()) co_return std::move(start).status().within(path);
    Result<ManifestHead> head = decode_manifest_head(*start);
    if (!head.ok()) co_return std::move(head).status().within(path);
    co_return head;
}

Task<Result<ManifestFacts>> read_manifest_facts(World& world, Layout layout, VersionKey key, Nanos deadline) {
    const std::string path = layout.manifest(key);
    Result<ManifestFacts> facts = co_await read_facts(world, path, deadline);
    if (!facts.ok()) co_return std::move(facts).status().within(path);
    if (facts->key != key) co_return corrupt(path + ": is the manifest of " + version_text(facts->key));
    co_return facts;
}

Task<Result<Manifest>> read_manifest(World& world, Layout layout, VersionKey key, Nanos deadline) { return read_its(world, std::move(layout), std::move(key), std::nullopt, deadline); }

Task<Result<Manifest>> read_manifest_of(World& world, Layout layout, VersionKey key, Rank rank, Nanos deadline) {
    return read_its(world, std::move(layout), std::move(key), rank, deadline);
}

}  // namespace cairn
