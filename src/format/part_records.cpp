#include "format/part_records.hpp"

#include <algorithm>

#include "base/bytes.hpp"
#include "base/checksum.hpp"
#include "format/check.hpp"
#include "format/frame.hpp"

namespace cairn {

using check::refuse;

namespace {

constexpr std::size_t bytes_at = 0, footer_offset_at = 8, footer_checksum_at = 16, index_bytes_at = 24, root_at = 32, origin_at = 36, part_at = 40, replacement_at = 44;
static_assert(replacement_at + 4 == part_record_bytes);
constexpr std::uint64_t number_bytes = 4;

std::uint64_t entries_at(const PartTables& tables) noexcept { return tables.records * part_record_bytes; }
std::uint64_t list_at(const PartTables& tables) noexcept { return entries_at(tables) + (std::uint64_t{tables.ranks} + 1) * number_bytes; }

std::uint64_t pages_in(const PartTables& tables) noexcept { return (tables.bytes() + part_page_bytes - 1) / part_page_bytes; }

void put_record(std::byte* at, const PartInfo& part) {
    const PartFileName name = parse_part_file_name(part.file).value_or(PartFileName());
    put_u64(at + bytes_at, part.bytes);
    put_u64(at + footer_offset_at, part.footer_offset);
    put_u64(at + footer_checksum_at, part.footer_checksum);
    put_u64(at + index_bytes_at, part.index_bytes);
    put_u32(at + root_at, part.root);
    put_u32(at + origin_at, part.origin);
    put_u32(at + part_at, name.part);
    put_u32(at + replacement_at, name.replacement);
}

}  // namespace

std::uint64_t PartTables::bytes() const noexcept { return empty() ? 0 : list_at(*this) + rank_parts * number_bytes; }

TableRange PartTables::entry_of(Rank rank) const noexcept { return {entries_at(*this) + rank * number_bytes, 2 * number_bytes}; }

TableRange PartTables::list(std::uint32_t begin, std::uint32_t end) const noexcept { return {list_at(*this) + begin * number_bytes, (end - begin) * number_bytes}; }

TableRange PartTables::pages_of(const TableRange& range) const noexcept {
    const std::uint64_t begin = range.offset / part_page_bytes * part_page_bytes;
    return {begin, std::min(round_up(range.offset + range.length, part_page_bytes), bytes()) - begin};
}

Status PartTables::check_size() const {
    if (bytes() > part_tables_bytes_max) return refuse("its part records are ", bytes(), " bytes; at most ", part_tables_bytes_max, " are allowed");
    if (page_checksums.size() != pages_in(*this)) return refuse("its part records are ", bytes(), " bytes, for which it has ", page_checksums.size(), " checksums");
    return {};
}

Status check_part_pages(const PartTables& tables, const TableRange& pages, ByteView bytes) {
    for (std::uint64_t at = 0; at < pages.length; at += part_page_bytes) {
        const std::uint64_t page = (pages.offset + at) / part_page_bytes;
        if (checksum(bytes.subspan(at, std::min(part_page_bytes, pages.length - at))) != tables.page_checksums[page])
            return refuse("page ", page, " of its part records is damaged");
    }
    return {};
}

EncodedPartTables encode_part_tables(const Manifest& manifest) {
    EncodedPartTables encoded;
    PartTables& tables = encoded.tables;
    tables.records = static_cast<std::uint32_t>(manifest.parts.size());
    tables.ranks = manifest.ranks;
    if (tables.empty()) return encoded;
    std::vector<std::uint32_t> begins(std::size_t{manifest.ranks} + 1);
    for (const PartInfo& part : manifest.parts)
        for (const Rank rank : part.ranks)
            if (rank < manifest.ranks) ++begins[rank + 1], ++tables.rank_parts;
    for (std::uint32_t rank = 0; rank < manifest.ranks; ++rank) begins[rank + 1] += begins[rank];
    Bytes& bytes = encoded.bytes;
    bytes.resize(tables.bytes());
    for (std::uint32_t i = 0; i <= manifest.ranks; ++i) put_u32(&bytes[entries_at(tables) + i * number_bytes], begins[i]);
    for (std::uint32_t i = 0; i < tables.records; ++i) {
        put_record(&bytes[tables.record(i).offset], manifest.parts[i]);
        for (const Rank rank : manifest.parts[i].ranks)
            if (rank < manifest.ranks) put_u32(&bytes[list_at(tables) + number_bytes * begins[rank]++], i);
    }
    for (std::uint64_t at = 0; at < bytes.size(); at += part_page_bytes)
        tables.page_checksums.push_back(checksum(ByteView(bytes).subspan(at, std::min<std::uint64_t>(part_page_bytes, bytes.size() - at))));
    return encoded;
}

Result<PartInfo> decode_part_record(ByteView record, const std::vector<PartNaming>& naming) {
    const std::byte* at = record.data();
    PartInfo part;
    part.origin = get_u32(at + origin_at);
    if (part.origin >= naming.size()) return refuse("a part is of base ", part.origin, ", of which it names ", naming.size() - 1);
    const PartNaming& common = naming[part.origin];
    const std::uint32_t number = get_u32(at + part_at);
    if (number >= common.files) return refuse("part ", number, " of ", common.files);
    part.file = part_file_name({number, common.files, common.attempt_id, common.layout, get_u32(at + replacement_at)});
    part.bytes = get_u64(at + bytes_at);
    part.footer_offset = get_u64(at + footer_offset_at);
    part.footer_checksum = get_u64(at + footer_checksum_at);
    part.index_bytes = get_u64(at + index_bytes_at);
    part.root = get_u32(at + root_at);
    return part;
}

Result<std::pair<std::uint32_t, std::uint32_t>> decode_part_entry(const PartTables& tables, Rank rank, ByteView entry) {
    const std::uint32_t begin = get_u32(entry.data()), end = get_u32(entry.data() + number_bytes);
    if (begin > end || end > tables.rank_parts || end - begin > tables.records) return refuse("parts ", begin, " to ", end, " of rank ", rank, ", of ", tables.rank_parts);
    return std::pair(begin, end);
}

Result<std::vector<std::uint32_t>> decode_part_list(const PartTables& tables, Rank rank, ByteView list) {
    std::vector<std::uint32_t> places(list.size() / number_bytes);
    for (std::size_t i = 0; i < places.size(); ++i) {
        places[i] = get_u32(&list[i * number_bytes]);
        if (places[i] >= tables.records || (i > 0 && places[i] <= places[i - 1])) return refuse("rank ", rank, " lies in part record ", places[i], " of ", tables.records, ", or they are out of order");
    }
    return places;
}

Result<std::vector<PartInfo>> decode_part_tables(const PartTables& tables, const std::vector<PartNaming>& naming, ByteView bytes) {
    TRY(tables.check_size());
    if (bytes.size() < tables.bytes()) return refuse("cut short: its part records are ", tables.bytes(), " bytes, and ", bytes.size(), " are there");
    if (bytes.size() > tables.bytes()) return refuse(bytes.size() - tables.bytes(), " bytes follow its part records");
    TRY(check_part_pages(tables, {0, bytes.size()}, bytes));
    std::vector<PartInfo> parts(tables.records);
    const auto part_of = [&](const TableRange& range) { return bytes.subspan(range.offset, range.length); };
    for (std::uint32_t i = 0; i < tables.records; ++i) {
        TRY_ASSIGN(parts[i], decode_part_record(part_of(tables.record(i)), naming));
    }
    std::uint32_t listed = 0;
    for (Rank rank = 0; rank < tables.ranks && !tables.empty(); ++rank) {
        TRY_ASSIGN(const auto entry, decode_part_entry(tables, rank, part_of(tables.entry_of(rank))));
        if (entry.first != listed) return refuse("the parts of rank ", rank, " are not listed behind those of the rank before it");
        listed = entry.second;
        TRY_ASSIGN(const auto places, decode_part_list(tables, rank, part_of(tables.list(entry.first, entry.second))));
        for (const std::uint32_t place : places) parts[place].ranks.push_back(rank);
    }
    if (listed != tables.rank_parts) return refuse("its list of parts is longer than what ranks have of it");
    return parts;
}

}  // namespace cairn
