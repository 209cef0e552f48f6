// Archives made byte by byte, and those of NumPy.
#include "describe/zip.hpp"

#include "describe/golden_testing.hpp"

namespace cairn {
namespace {

std::string little(std::uint64_t number, int width) {
    std::string text;
    for (int i = 0; i < width; ++i) text += static_cast<char>(number >> (8 * i));
    return text;
}

struct Packed {
    std::string name, content;
    std::uint64_t method = 0, flags = 0;
    std::string local_extra = "";
    std::uint64_t raw_more = 0;  // than are stored
};

// With ZIP64 all sizes and offsets stand in extra fields and in the record that ends the directory, as they do in archives of more than 4 GiB.
struct Archive {
    std::string local, central;
    std::uint64_t entries = 0;
    bool is_zip64 = false;
    std::uint64_t extra_numbers = 3;  // how many of ZIP64's three an entry has

    void add(const Packed& packed) {
        const std::uint64_t at = local.size();
        local += "PK\3\4" + little(20, 2) + little(packed.flags, 2) + little(packed.method, 2) + std::string(16, '\0') + little(packed.name.size(), 2) + little(packed.local_extra.size(), 2);
        local += packed.name + packed.local_extra + packed.content;
        add_central(packed, at);
    }
    void add_central(const Packed& packed, std::uint64_t at) {
        const std::uint64_t stored = packed.content.size(), raw = stored + packed.raw_more;
        const std::string numbers = (little(raw, 8) + little(stored, 8) + little(at, 8)).substr(0, 8 * extra_numbers);
        const std::string extra = is_zip64 ? little(0x5455, 2) + little(1, 2) + "x" + little(1, 2) + little(numbers.size(), 2) + numbers : "";
        const auto field = [&](std::uint64_t number) { return little(is_zip64 ? UINT32_MAX : number, 4); };
        central += "PK\1\2" + little(20, 2) + little(20, 2) + little(packed.flags, 2) + little(packed.method, 2) + std::string(8, '\0') + field(stored) + field(raw);
        central += little(packed.name.size(), 2) + little(extra.size(), 2) + little(3, 2) + std::string(8, '\0') + field(at) + packed.name + extra + "why";
        ++entries;
    }
    Bytes file(const std::string& comment = "") const {
        std::string text = local + central;
        if (is_zip64) {
            text += "PK\6\6" + little(44, 8) + std::string(12, '\0') + little(entries, 8) + little(entries, 8) + little(central.size(), 8) + little(local.size(), 8);
            text += "PK\6\7" + little(0, 4) + little(local.size() + central.size(), 8) + little(1, 4);
        }
        const auto field = [&](std::uint64_t number, int width) { return little(is_zip64 ? UINT32_MAX : number, width); };
        text += "PK\5\6" + little(0, 4) + field(entries, 2) + field(entries, 2) + field(central.size(), 4) + field(local.size(), 4) + little(comment.size(), 2) + comment;
        return to_bytes(text);
    }
};

std::string found(const Bytes& file) {
    const Result<std::vector<ZipEntry>> entries = stored_entries(file);
    if (!entries.ok()) return std::string(code_name(entries.code()));
    std::string text;
    for (const ZipEntry& entry : *entries) text += std::string(entry.name) + "=" + std::string(as_text(ByteView(file).subspan(entry.offset, entry.length))) + " ";
    return text;
}

TEST(Zip, WhatIsStoredIsFoundBehindItsLocalHeader) {
    for (const bool is_zip64 : {false, true}) {
        Archive archive;
        archive.is_zip64 = is_zip64;
        archive.add({"a", "first"});
        archive.add({"folder/", ""});
        archive.add({"compressed", "x", 8});
        archive.add({"encrypted", "y", 0, 1});
        archive.add({"b", "second", 0, 8 | 2048, "PADDED"});
        archive.add({"in two sizes", "third", 0, 0, "", 1});
        EXPECT_EQ(found(archive.file()), "a=first b=second ");
        EXPECT_EQ(found(archive.file("a comment with PK\5\6 in it")), "a=first b=second ");
        EXPECT_EQ(describe_file(archive.file())->format, "zip");
        EXPECT_TRUE(describe_file(archive.file())->extents.empty());
    }
}

TEST(Zip, BytesOfTwoEntriesAreTheFirsts) {
    Archive archive;
    archive.add({"a", "first"});
    for (const char* name : {"b", "c"}) archive.add_central({name, "first"}, 0);
    archive.add_central({"d", "firstPK"}, 0);
    EXPECT_EQ(found(archive.file()), "a=first ");
}

TEST(Zip, OneThatLiesIsDamagedOrHasWhatIsThere) {
    Archive archive;
    archive.add({"a", "first"});
    const Bytes whole = archive.file();
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) EXPECT_EQ(found({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes)}), "corrupt");
    Archive more = archive;
    ++more.entries;
    EXPECT_EQ(found(more.file()), "corrupt");
    Archive others = archive;
    others.central.erase(0, 2);
    EXPECT_EQ(found(others.file()), "corrupt");
    Archive elsewhere = archive;
    elsewhere.add_central({"none", "x"}, 3);
    elsewhere.add_central({"beyond", "x"}, 1 << 20);
    elsewhere.add_central({"too long", std::string(500, 'x')}, 0);
    EXPECT_EQ(found(elsewhere.file()), "a=first ");
    Archive far;
    far.is_zip64 = true;
    far.add({"a", "first"});
    far.add_central({"far", "x"}, UINT64_MAX - 10);
    far.add_central({"long", "x", 0, 0, "", 0}, UINT64_MAX);
    EXPECT_EQ(found(far.file()), "a=first ");
    Archive without_offset;  // that would be 0
    without_offset.is_zip64 = true;
    without_offset.extra_numbers = 2;
    without_offset.add({"a", "first"});
    EXPECT_EQ(found(without_offset.file()), "");
}

// Each takes memory, whatever it is: as many as are looked at are some MB, and all that a directory of the file's length could name are not.
TEST(Zip, AsManyEntriesAsAreAllowed) {
    Archive archive;
    archive.is_zip64 = true;
    for (std::size_t i = 0; i < 2 * extents_max + 3; ++i) archive.add({"a", "x"});
    const Bytes file = archive.file();
    const Result<std::vector<ZipEntry>> entries = stored_entries(file);
    ASSERT_TRUE(entries.ok()) << entries.status().to_string();
    EXPECT_EQ(entries->size(), 2 * extents_max);
}

TEST(Zip, ArraysOfNumPy) {
    testing::expect_counted(testing::golden_described("arrays.npz"), "zip",
                            {{"density", DataType::f64, {2, 3, 4}, 100}, {"velocity/x", DataType::f32, {5}, 200, true}, {"ids", DataType::i64, {2, 3}, 300}, {"step", DataType::i32, {}, 400}});
    testing::expect_counted(testing::golden_described("compressed.npz"), "zip", {});
}

}  // namespace
}  // namespace cairn
