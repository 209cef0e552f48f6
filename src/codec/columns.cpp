#include "codec/columns.hpp"

#include <algorithm>
#include <cstring>

namespace cairn {

namespace {

constexpr std::size_t columns_head_bytes = 4;  // bytes of a record, and before the first whole one (u16 each)
constexpr std::size_t way_bytes = 3;           // of a column that is stored as it is: zeros

Status damaged() { return corrupt("predict-planes-zstd: its columns are no records"); }

// So many bytes, each so far behind those before. Words whose length a compiler knows are one move each.
template <std::size_t word>
void move_words(const std::byte* from, std::size_t from_apart, std::byte* to, std::size_t to_apart, std::size_t bytes, std::size_t count) {
    if (bytes == word)
        for (; count > 0; --count, from += from_apart, to += to_apart) std::memcpy(to, from, word);
    else
        for (; count > 0; --count, from += from_apart, to += to_apart)
            for (std::size_t at = 0; at < bytes; at += word) std::memcpy(to + at, from + at, word);
}
void move_bytes(const std::byte* from, std::size_t from_apart, std::byte* to, std::size_t to_apart, std::size_t bytes, std::size_t count) {
    if (bytes % 8 == 0) return move_words<8>(from, from_apart, to, to_apart, bytes, count);
    if (bytes % 4 == 0) return move_words<4>(from, from_apart, to, to_apart, bytes, count);
    if (bytes % 2 == 0) return move_words<2>(from, from_apart, to, to_apart, bytes, count);
    move_words<1>(from, from_apart, to, to_apart, bytes, count);
}

void put_u16(std::byte* at, std::size_t value) {
    at[0] = static_cast<std::byte>(value);
    at[1] = static_cast<std::byte>(value >> 8);
}
std::size_t get_u16(const std::byte* at) { return std::to_integer<std::size_t>(at[0]) | std::to_integer<std::size_t>(at[1]) << 8; }

// One column, how many bytes of a record it has among the bytes that it takes; 0: there is no room.
std::size_t put_column(const Column& which, ByteView column, const PutColumn& put, std::span<std::byte> into) {
    constexpr std::size_t raw_at = 1 + way_bytes;
    if (into.size() < raw_at) return 0;
    into[0] = std::byte{which.bytes};
    if (const std::size_t made = put(which.choice, column, into.subspan(1)); made != 0) return 1 + made;
    if (into.size() - raw_at < column.size()) return 0;
    std::fill_n(&into[1], way_bytes, std::byte{});
    std::copy(column.begin(), column.end(), into.begin() + raw_at);
    return raw_at + column.size();
}

Status get_column(ByteView& stored, const GetColumn& get, std::span<std::byte> column) {
    if (stored[0] != std::byte{}) return get(stored, column);
    if (stored[1] != std::byte{} || stored[2] != std::byte{} || stored.size() - way_bytes < column.size()) return damaged();
    std::copy_n(stored.begin() + way_bytes, column.size(), column.begin());
    stored = stored.subspan(way_bytes + column.size());
    return {};
}

}  // namespace

void gather_column(const std::byte* raw, std::size_t record, std::size_t records, std::size_t offset, std::size_t bytes, std::byte* column) {
    move_bytes(raw + offset, record, column, bytes, bytes, records);
}
void scatter_column(const std::byte* column, std::size_t record, std::size_t records, std::size_t offset, std::size_t bytes, std::byte* raw) {
    move_bytes(column, bytes, raw + offset, record, bytes, records);
}

std::size_t put_columns(const Columns& columns, ByteView raw, std::span<std::byte> column, const PutColumn& put, std::span<std::byte> into) {
    if (into.size() < columns_head_bytes) return 0;
    put_u16(&into[0], columns.record);
    put_u16(&into[2], columns.before);
    const std::size_t records = columns.records(raw.size());
    std::size_t out = columns_head_bytes, offset = 0;
    for (const Column& each : columns.columns) {
        gather_column(raw.data() + columns.before, columns.record, records, offset, each.bytes, column.data());
        const std::size_t made = put_column(each, ByteView(column.first(records * each.bytes)), put, into.subspan(out));
        if (made == 0) return 0;
        out += made;
        offset += each.bytes;
    }
    const ByteView before = raw.first(columns.before), after = raw.subspan(columns.before + records * columns.record);
    if (into.size() - out < before.size() + after.size()) return 0;
    std::copy(before.begin(), before.end(), into.begin() + static_cast<std::ptrdiff_t>(out));
    std::copy(after.begin(), after.end(), into.begin() + static_cast<std::ptrdiff_t>(out + before.size()));
    return out + before.size() + after.size();
}

Status get_columns(std::size_t count, ByteView stored, std::span<std::byte> column, const GetColumn& get, std::span<std::byte> into) {
    if (stored.size() < columns_head_bytes) return damaged();
    const std::size_t record = get_u16(&stored[0]), before = get_u16(&stored[2]);
    if (record < 2 || before >= record || before > into.size() || into.size() - before < record) return damaged();
    const std::size_t records = (into.size() - before) / record;
    std::size_t offset = 0;
    stored = stored.subspan(columns_head_bytes);
    for (; count > 0; --count) {
        if (stored.size() < 1 + way_bytes) return damaged();
        const auto bytes = std::to_integer<std::size_t>(stored[0]);
        if (bytes == 0 || bytes > record - offset) return damaged();
        stored = stored.subspan(1);
        TRY(get_column(stored, get, column.first(records * bytes)));
        scatter_column(column.data(), record, records, offset, bytes, into.data() + before);
        offset += bytes;
    }
    const std::size_t after = into.size() - before - records * record;
    if (offset != record || stored.size() != before + after) return damaged();
    std::copy_n(stored.begin(), before, into.begin());
    std::copy_n(stored.begin() + static_cast<std::ptrdiff_t>(before), after, into.end() - static_cast<std::ptrdiff_t>(after));
    return {};
}

}  // namespace cairn
