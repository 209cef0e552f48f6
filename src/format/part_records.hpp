// Part records: what a manifest says of its parts, as records of a fixed length behind its head, and for each rank which of them hold its image. Who wants one rank
// reads four places of a manifest of a million parts: the head, the rank's entry, its list, its records. File names are computed from numbers.
//
//   records                    48 bytes each: bytes, footer offset, footer checksum, index bytes (u64 each); root, origin, part, replacement (u32 each)
//   ranks + 1 numbers, u32     where in the list a rank's places begin, and behind the last rank's how many there are
//   list, u32                  places of records, increasing for each rank
//
// The head has a checksum for each page of 64 KiB of them.
#pragma once

#include "base/status.hpp"
#include "format/names.hpp"
#include "model/types.hpp"

namespace cairn {

inline constexpr std::uint64_t part_record_bytes = 48;
inline constexpr std::uint64_t part_page_bytes = 64ull << 10;

// A run of bytes of the tables, counted from where they begin.
struct TableRange {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    bool operator==(const TableRange&) const = default;
};

// Where the tables are, and what is in them. Those of a tombstone, and of a manifest of version 1, are empty.
struct PartTables {
    std::uint64_t offset = 0;  // in the file, bytes
    std::uint32_t records = 0;
    std::uint32_t ranks = 0;
    std::uint32_t rank_parts = 0;  // length of the list
    std::vector<std::uint64_t> page_checksums;

    bool empty() const noexcept { return records == 0; }
    std::uint64_t bytes() const noexcept;
    TableRange record(std::uint32_t place) const noexcept { return {place * part_record_bytes, part_record_bytes}; }
    TableRange entry_of(Rank rank) const noexcept;  // two numbers: where its places begin, and end
    TableRange list(std::uint32_t begin, std::uint32_t end) const noexcept;
    TableRange pages_of(const TableRange& range) const noexcept;  // whole pages, but for the last one's end
    Status check_size() const;                                   // that there is a checksum for each page
};
// Of whole pages.
Status check_part_pages(const PartTables& tables, const TableRange& pages, ByteView bytes);

// What the names of parts of one origin have in common.
struct PartNaming {
    Id128 attempt_id;
    std::uint32_t files = 0;
    FileLayout layout = FileLayout::parts;
    bool operator==(const PartNaming&) const = default;
};

// For a manifest that check_manifest took.
struct EncodedPartTables {
    Bytes bytes;
    PartTables tables;  // offset 0
};
EncodedPartTables encode_part_tables(const Manifest& manifest);

// A part without its ranks. `naming`: by origin.
Result<PartInfo> decode_part_record(ByteView record, const std::vector<PartNaming>& naming);
// Where a rank's places begin and end in the list; of the bytes of entry_of().
Result<std::pair<std::uint32_t, std::uint32_t>> decode_part_entry(const PartTables& tables, Rank rank, ByteView entry);
// Places of records; of the bytes of list().
Result<std::vector<std::uint32_t>> decode_part_list(const PartTables& tables, Rank rank, ByteView list);
// All parts, with their ranks.
Result<std::vector<PartInfo>> decode_part_tables(const PartTables& tables, const std::vector<PartNaming>& naming, ByteView bytes);

}  // namespace cairn
