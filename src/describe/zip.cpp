#include "describe/zip.hpp"

#include <algorithm>
#include <optional>

#include "describe/cursor.hpp"
#include "describe/file.hpp"
#include "describe/formats.hpp"
#include "describe/pytorch.hpp"

namespace cairn {

namespace {

constexpr std::uint64_t zip_local = 0x04034B50, zip_central = 0x02014B50, zip_end = 0x06054B50, zip_end64 = 0x06064B50, zip_locator64 = 0x07064B50;  // "PK" and two more
constexpr std::uint64_t zip_end_bytes = 22, zip_locator64_bytes = 20, zip_comment_max = 0xFFFF;
constexpr std::size_t entries_max = 2 * extents_max;  // further ones are skeleton
constexpr std::uint64_t zip_in_extra = 0xFFFFFFFF;  // a size or an offset that stands in the extra field

struct ZipDirectory {
    std::uint64_t entries = 0, bytes = 0, offset = 0;
};

// The end record says how long the comment behind it is, and nothing comes after that.
std::optional<std::uint64_t> zip_end_of(ByteView file) {
    if (file.size() < zip_end_bytes) return std::nullopt;
    const std::uint64_t last = file.size() - zip_end_bytes, first = last - std::min(last, zip_comment_max);
    for (std::uint64_t at = last + 1; at-- > first;) {
        Cursor end(file, at);
        if (end.little(4) != zip_end) continue;
        end.skip(16);
        if (end.little(2) == last - at) return at;
    }
    return std::nullopt;
}

// Of ZIP64 where its locator stands before the end record and leads to one.
std::optional<ZipDirectory> zip_directory64(ByteView file, std::uint64_t end) {
    if (end < zip_locator64_bytes) return std::nullopt;
    Cursor locator(file, end - zip_locator64_bytes);
    if (locator.little(4) != zip_locator64) return std::nullopt;
    locator.skip(4);
    Cursor end64(file, locator.little(8));
    if (end64.little(4) != zip_end64) return std::nullopt;
    end64.skip(28);
    ZipDirectory directory;
    directory.entries = end64.little(8);
    directory.bytes = end64.little(8);
    directory.offset = end64.little(8);
    if (!end64.ok()) return std::nullopt;
    return directory;
}

Result<ZipDirectory> zip_directory(ByteView file) {
    const std::optional<std::uint64_t> at = zip_end_of(file);
    if (!at) return corrupt("no end of a central directory: is the file cut short?");
    if (const std::optional<ZipDirectory> directory = zip_directory64(file, *at)) return *directory;
    Cursor end(file, *at + 10);
    ZipDirectory directory;
    directory.entries = end.little(2);
    directory.bytes = end.little(4);
    directory.offset = end.little(4);
    return directory;
}

struct ZipCentral {
    ZipEntry entry;  // without an offset
    std::uint64_t local = 0;
    bool is_stored = false;
};

// Those of ZIP64's numbers are there, in this order, whose own field says so.
bool read_extra64(Cursor extra, std::uint64_t& raw, std::uint64_t& stored, std::uint64_t& local) {
    if (raw != zip_in_extra && stored != zip_in_extra && local != zip_in_extra) return true;
    while (extra.left() >= 4) {
        const std::uint64_t id = extra.little(2);
        Cursor field(extra.take(extra.little(2)));
        if (id != 1) continue;
        for (std::uint64_t* number : {&raw, &stored, &local})
            if (*number == zip_in_extra) *number = field.little(8);
        return field.ok();
    }
    return false;
}

ZipCentral read_central(Cursor& directory) {
    ZipCentral central;
    directory.skip(4);
    const std::uint64_t flags = directory.little(2), method = directory.little(2);
    directory.skip(8);
    std::uint64_t stored = directory.little(4), raw = directory.little(4);
    const std::uint64_t name_bytes = directory.little(2), extra_bytes = directory.little(2), comment_bytes = directory.little(2);
    directory.skip(8);
    central.local = directory.little(4);
    central.entry.name = directory.text(name_bytes);
    const ByteView extra = directory.take(extra_bytes);
    directory.skip(comment_bytes);
    const bool is_known = read_extra64(Cursor(extra), raw, stored, central.local);
    central.entry.length = raw;
    central.is_stored = is_known && method == 0 && (flags & 1) == 0 && raw == stored && raw > 0;
    return central;
}

// Where the data begin; nothing where there is no local header, or the data do not fit.
std::optional<std::uint64_t> zip_data_of(ByteView file, const ZipCentral& central) {
    Cursor local(file, central.local);
    if (local.little(4) != zip_local) return std::nullopt;
    local.skip(4);
    const std::uint64_t method = local.little(2);
    local.skip(16);
    const std::uint64_t name_bytes = local.little(2), extra_bytes = local.little(2);
    local.skip(name_bytes + extra_bytes);
    if (!local.ok() || method != 0 || central.entry.length > local.left()) return std::nullopt;
    return local.at();
}

// Of two that have bytes in common the first: what is looked through is no more than the file then, whatever the directory says.
void drop_overlapping(std::vector<ZipEntry>& entries) {
    std::stable_sort(entries.begin(), entries.end(), [](const ZipEntry& a, const ZipEntry& b) { return a.offset < b.offset; });
    std::uint64_t end = 0;
    std::erase_if(entries, [&](const ZipEntry& entry) {
        if (entry.offset < end) return true;
        end = entry.offset + entry.length;
        return false;
    });
}

void add_npy(ByteView file, const ZipEntry& entry, std::vector<Extent>& extents) {
    const ByteView bytes = file.subspan(entry.offset, entry.length);
    if (!is_npy(bytes)) return;
    Result<std::vector<Extent>> arrays = describe_npy(bytes);
    if (!arrays.ok()) return;
    for (Extent& array : sound(std::move(arrays).value(), bytes.size())) {
        array.offset += entry.offset;
        array.name = entry.name.substr(0, entry.name.size() - 4);
        extents.push_back(std::move(array));
    }
}

}  // namespace

Result<std::vector<ZipEntry>> stored_entries(ByteView file) {
    TRY_ASSIGN(const ZipDirectory directory, zip_directory(file));
    if (directory.offset > file.size() || directory.bytes > file.size() - directory.offset) return corrupt("its central directory lies outside of the file");
    Cursor cursor(file.subspan(directory.offset, directory.bytes));
    std::vector<ZipEntry> entries;
    for (std::uint64_t i = 0; i < directory.entries; ++i) {
        if (cursor.little(4) != zip_central) return corrupt("its central directory has no entry " + std::to_string(i) + " of " + std::to_string(directory.entries));
        ZipCentral central = read_central(cursor);
        if (!cursor.ok()) return corrupt("its central directory is cut short");
        if (!central.is_stored) continue;
        const std::optional<std::uint64_t> offset = zip_data_of(file, central);
        if (!offset) continue;
        central.entry.offset = *offset;
        entries.push_back(central.entry);
        if (entries.size() == entries_max) break;  // each takes memory, whatever it is
    }
    drop_overlapping(entries);
    return entries;
}

bool is_zip(ByteView file) { return Cursor(file).little(4) == zip_local; }

Result<std::vector<Extent>> describe_zip(ByteView file) {
    TRY_ASSIGN(const std::vector<ZipEntry> entries, stored_entries(file));
    std::vector<Extent> extents;
    for (const ZipEntry& entry : entries) {
        if (extents.size() >= extents_max) break;
        if (entry.name.ends_with(".npy")) add_npy(file, entry, extents);
    }
    for (Extent& extent : describe_pytorch(file, entries)) extents.push_back(std::move(extent));
    return extents;
}

}  // namespace cairn
