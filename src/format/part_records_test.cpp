// Part records: damage in each page, and tables whose checksums hold and that say what can not be.
#include "format/part_records.hpp"

#include <gtest/gtest.h>

#include "base/checksum.hpp"
#include "format/frame.hpp"
#include "format/random_samples.hpp"

namespace cairn {
namespace {

// Of so many parts that there are several pages: each rank lies in one, and rank 0 in all.
Manifest large_manifest(std::uint32_t ranks) {
    Manifest m = samples::manifest();
    m.ranks = ranks;
    const PartInfo part = m.parts[0];
    m.parts.clear();
    for (std::uint32_t i = 0; i < ranks; ++i) {
        m.parts.push_back(part);
        m.parts.back().file = part_file_name(i, ranks, m.attempt_id);
        m.parts.back().ranks = i == 0 ? std::vector<Rank>{0} : std::vector<Rank>{0, i};
    }
    return m;
}

struct Tables {
    EncodedPartTables encoded;
    std::vector<PartNaming> naming;
    explicit Tables(const Manifest& m) : encoded(encode_part_tables(m)), naming{{m.attempt_id, static_cast<std::uint32_t>(m.parts.size()), FileLayout::parts}} {}
    Result<std::vector<PartInfo>> decode() const { return decode_part_tables(encoded.tables, naming, encoded.bytes); }
    // As a writer of nonsense would.
    void set(std::uint64_t at, std::uint32_t value) {
        put_u32(&encoded.bytes[at], value);
        const std::uint64_t page = at / part_page_bytes;
        const ByteView bytes = ByteView(encoded.bytes).subspan(page * part_page_bytes);
        encoded.tables.page_checksums[page] = checksum(bytes.first(std::min<std::size_t>(bytes.size(), part_page_bytes)));
    }
};

TEST(PartRecords, ComeBack) {
    const Manifest manifest = large_manifest(5000);
    const Tables tables(manifest);
    EXPECT_EQ(tables.encoded.tables.page_checksums.size(), (5000 * 48 + 5001 * 4 + 9999 * 4 + part_page_bytes - 1) / part_page_bytes);
    const auto back = tables.decode();
    ASSERT_TRUE(back.ok()) << back.status().to_string();
    EXPECT_EQ(*back, manifest.parts);
}

TEST(PartRecords, DamageInAnyPage) {
    Tables tables(large_manifest(5000));
    for (std::uint64_t at = 17; at < tables.encoded.bytes.size(); at += part_page_bytes) {
        tables.encoded.bytes[at] ^= std::byte(1);
        const auto back = tables.decode();
        EXPECT_EQ(back.code(), Code::corrupt);
        EXPECT_NE(back.status().text().find("page " + std::to_string(at / part_page_bytes) + " "), std::string::npos) << back.status().text();
        tables.encoded.bytes[at] ^= std::byte(1);
    }
}

struct Nonsense {
    const char* called;
    std::uint64_t at;  // of tables of 3 records, ranks, places: 0 of rank 0, and so on
    std::uint32_t value;
    const char* told;
};
constexpr std::uint64_t entries = 3 * part_record_bytes, list = entries + 4 * 4;
const Nonsense nonsenses[] = {
    {"origin", 36, 1, "is of base 1, of which it names 0"},
    {"part", 40, 3, "part 3 of 3"},
    {"first entry", entries, 1, "the parts of rank 0 are not listed behind those of the rank before it"},
    {"entry before", entries + 4, 0, ""},
    {"entry backwards", entries + 8, 0, "parts 1 to 0 of rank 1, of 3"},
    {"entry beyond the list", entries + 12, 4, "parts 2 to 4 of rank 2, of 3"},
    {"list that is longer", entries + 12, 2, "its list of parts is longer than what ranks have of it"},
    {"place beyond the records", list, 3, "rank 0 lies in part record 3 of 3"},
};

TEST(PartRecords, Nonsense) {
    Manifest manifest = large_manifest(3);
    for (std::uint32_t i = 0; i < 3; ++i) manifest.parts[i].ranks = {i};
    for (const Nonsense& each : nonsenses) {
        Tables tables(manifest);
        tables.set(each.at, each.value);
        const auto back = tables.decode();
        EXPECT_EQ(back.code(), *each.told == 0 ? Code::ok : Code::corrupt) << each.called;
        EXPECT_NE(back.status().text().find(each.told), std::string::npos) << each.called << ": " << back.status().text();
    }
    manifest.parts[1].ranks = {0, 1};
    Tables tables(manifest);
    tables.set(list + 4, 0);
    EXPECT_NE(tables.decode().status().text().find("out of order"), std::string::npos) << "one part twice for a rank";
}

// Whatever stands there, with checksums that hold, is refused or is a value that comes back.
TEST(PartRecords, AnyNumberAnywhere) {
    Manifest manifest = large_manifest(6);
    const Tables right(manifest);
    samples::Random random(11);
    for (int i = 0; i < 20'000; ++i) {
        Tables tables = right;
        for (std::uint64_t n = 1 + random.below(4); n > 0; --n)
            tables.set(random.below(tables.encoded.bytes.size() / 4) * 4, random.coin() ? random.below32(12) : static_cast<std::uint32_t>(random.number()));
        auto parts = tables.decode();
        if (!parts.ok()) {
            ASSERT_EQ(parts.code(), Code::corrupt);
            continue;
        }
        manifest.parts = std::move(parts).value();
        ASSERT_EQ(Tables(manifest).encoded.bytes, tables.encoded.bytes);
    }
}

TEST(PartRecords, SizesThatAreToldWrongly) {
    Tables tables(large_manifest(3));
    tables.encoded.tables.rank_parts = UINT32_MAX;
    tables.encoded.tables.ranks = UINT32_MAX;
    EXPECT_EQ(tables.decode().code(), Code::corrupt);
    tables.encoded.tables.records = UINT32_MAX;
    EXPECT_NE(tables.decode().status().text().find("at most 2147483648 are allowed"), std::string::npos);
}

}  // namespace
}  // namespace cairn
