#include "client/regions.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "client/testing.hpp"

namespace cairn {
namespace {

using testing::HasSubstr;

MemoryMap map_now() { return MemoryMap::read().value(); }

TEST(Regions, ABlockKeepsWhereItLiesInTheArrayOfAllRanks) {
    RegionTable regions;
    float x[6] = {};
    const std::uint64_t shape[] = {2, 3}, array[] = {8, 3}, at[] = {4, 0}, beyond[] = {7, 0}, huge[] = {1ull << 40, 1ull << 40};
    ASSERT_TRUE(regions.add_block("x", x, CAIRN_F32, 2, shape, array, at).ok());
    EXPECT_THAT(regions.add_block("y", x, CAIRN_F32, 2, shape, array, beyond).text(), HasSubstr("in dimension 0 its 2 elements from 7 on go beyond the array's 8"));
    EXPECT_THAT(regions.add_block("y", x, CAIRN_F32, 2, shape, huge, at).text(), HasSubstr("larger than any can be"));
    EXPECT_THAT(regions.add_block("y", x, CAIRN_F32, 2, shape, array, nullptr).text(), HasSubstr("needs the shape of its array"));
    EXPECT_EQ(regions.find("y"), nullptr);
    std::uint64_t image_bytes = 0;
    const auto laid = regions.lay_out(map_now(), false, image_bytes);
    ASSERT_TRUE(laid.ok()) << laid.status().to_string();
    EXPECT_EQ(laid->front().global_shape, (std::vector<std::uint64_t>{8, 3}));
    EXPECT_EQ(laid->front().global_offset, (std::vector<std::uint64_t>{4, 0}));
    Region kept = laid->front();
    EXPECT_TRUE(check_fits(*regions.find("x"), kept).ok());
    kept.global_offset = {2, 0};
    EXPECT_THAT(check_fits(*regions.find("x"), kept).text(), HasSubstr("another block: the version holds the one at f32[2,0] of f32[8,3]"));
    kept.global_offset = kept.global_shape = {};
    EXPECT_TRUE(check_fits(*regions.find("x"), kept).ok()) << "taken before that could be said";
}

TEST(Regions, AreLaidOutInOrderOnCacheLines) {
    RegionTable regions;
    double a[10];
    std::uint8_t b[3];
    const std::uint64_t shape_a[] = {2, 5}, shape_b[] = {3};
    ASSERT_TRUE(regions.add_memory("a", a, CAIRN_F64, 2, shape_a).ok());
    ASSERT_TRUE(regions.add_memory("b", b, CAIRN_U8, 1, shape_b).ok());
    std::uint64_t bytes = 0;
    const auto laid = regions.lay_out(map_now(), false, bytes).value();
    ASSERT_EQ(laid.size(), 2u);
    EXPECT_EQ(laid[0].offset, 0u);
    EXPECT_EQ(laid[0].length, 80u);
    EXPECT_EQ(laid[0].shape, (std::vector<std::uint64_t>{2, 5}));
    EXPECT_EQ(laid[1].offset, 128u);
    EXPECT_EQ(bytes, 131u);
}

TEST(Regions, RefuseWhatCanNotBe) {
    RegionTable regions;
    int x = 0;
    const std::uint64_t one[] = {1}, zero[] = {4, 0}, huge[] = {1ull << 40, 1ull << 40};
    ASSERT_TRUE(regions.add_memory("x", &x, CAIRN_I32, 1, one).ok());
    const auto refused = [&](const char* name, void* data, int type, std::uint32_t ndim, const std::uint64_t* shape,
                             Code code, const char* word) {
        const Status status = regions.add_memory(name, data, type, ndim, shape);
        EXPECT_EQ(status.code(), code) << status.to_string();
        EXPECT_THAT(status.text(), HasSubstr(word));
    };
    refused("x", &x, CAIRN_I32, 1, one, Code::already_exists, "\"x\"");
    refused("y", nullptr, CAIRN_I32, 1, one, Code::invalid_argument, "NULL");
    refused("y", &x, 99, 1, one, Code::invalid_argument, "99");
    refused("y", &x, CAIRN_I32, 2, zero, Code::invalid_argument, "size zero");
    refused("y", &x, CAIRN_I32, 2, huge, Code::invalid_argument, "larger");
    refused("y", &x, CAIRN_I32, 0, one, Code::invalid_argument, "dimensions");
    refused("y", &x, CAIRN_I32, 1, nullptr, Code::invalid_argument, "extents");
    refused("../y", &x, CAIRN_I32, 1, one, Code::invalid_argument, "..");
    refused(nullptr, &x, CAIRN_I32, 1, one, Code::invalid_argument, "name");
    EXPECT_EQ(regions.remove("y").code(), Code::not_found);
    EXPECT_TRUE(regions.remove("x").ok());
    EXPECT_TRUE(regions.all().empty());
}

TEST(Regions, FitOnlyWhatTheyWere) {
    RegionTable regions;
    double x[6];
    const std::uint64_t shape[] = {2, 3};
    ASSERT_TRUE(regions.add_memory("x", x, CAIRN_F64, 2, shape).ok());
    Region kept{"x", RegionKind::memory, DataType::f64, {2, 3}, 0, 48};
    EXPECT_TRUE(check_fits(*regions.find("x"), kept).ok());
    kept.shape = {3, 2};
    EXPECT_THAT(check_fits(*regions.find("x"), kept).text(), HasSubstr("another shape"));
    kept.shape = {4, 2};
    kept.length = 64;
    EXPECT_THAT(check_fits(*regions.find("x"), kept).text(), HasSubstr("too small"));
    kept.type = DataType::i64;
    EXPECT_THAT(check_fits(*regions.find("x"), kept).text(), HasSubstr("another type"));
    kept.kind = RegionKind::file;
    EXPECT_FALSE(check_fits(*regions.find("x"), kept).ok());
}

TEST(Regions, KeepWhatIsSaidOfThem) {
    const TemporaryPlace place;
    std::ofstream(place.file("routed")) << std::string(100, 'x');
    RegionTable regions;
    std::uint8_t blob[9] = {};
    const std::uint64_t nine[] = {9}, rows[] = {CAIRN_TO_END, 3}, one[] = {1}, thousands[] = {1000, 1000};
    ASSERT_TRUE(regions.add_file("file", place.file("routed").c_str()).ok());
    ASSERT_TRUE(regions.add_memory("blob", blob, CAIRN_BYTES, 1, nine).ok());
    ASSERT_TRUE(regions.describe("file", 40, CAIRN_F32 | CAIRN_BIG_ENDIAN, 2, rows, "Grid/Density").ok());
    ASSERT_TRUE(regions.describe("file", 39, CAIRN_U8 | CAIRN_BIG_ENDIAN, 1, one, nullptr).ok());
    ASSERT_TRUE(regions.describe("blob", 1, CAIRN_F64, 2, thousands, "").ok()) << "more than there is costs nothing";
    std::uint64_t bytes = 0;
    std::vector<Region> laid = regions.lay_out(map_now(), false, bytes).value();
    EXPECT_EQ(laid[0].described, (std::vector<DescribedArray>{{"Grid/Density", DataType::f32, true, {open_axis, 3}, 40}, {"", DataType::u8, false, {1}, 39}}));
    EXPECT_EQ(laid[1].described, (std::vector<DescribedArray>{{"", DataType::f64, false, {1000, 1000}, 1}}));
    ASSERT_TRUE(regions.remove("file").ok());
    ASSERT_TRUE(regions.add_file("file", place.file("routed").c_str()).ok());
    EXPECT_TRUE(regions.lay_out(map_now(), false, bytes).value()[1].described.empty());
    EXPECT_TRUE(check_fits(*regions.find("file"), laid[0]).ok()) << "of what is restored nothing depends on it";
}

TEST(Regions, RefuseToBeDescribedInWaysThatCanNotBe) {
    RegionTable regions;
    int x = 0;
    const std::uint64_t one[] = {1}, rows[] = {5, 2}, zero[] = {4, 0}, huge[] = {1ull << 40, 1ull << 40}, large[] = {1ull << 58}, open[] = {CAIRN_TO_END, CAIRN_TO_END};
    ASSERT_TRUE(regions.add_memory("x", &x, CAIRN_I32, 1, one).ok());
    ASSERT_TRUE(regions.add_file("file", "file").ok());
    ASSERT_TRUE(regions.describe("file", 40, CAIRN_F64, 2, rows, "u").ok());
    const auto refused = [&](const char* region, std::uint64_t offset, int type, std::uint32_t ndim, const std::uint64_t* shape, const char* name, const char* words) {
        const Status status = regions.describe(region, offset, type, ndim, shape, name);
        EXPECT_EQ(status.code(), Code::invalid_argument) << words;
        EXPECT_THAT(status.text(), HasSubstr(words));
    };
    EXPECT_EQ(regions.describe("y", 0, CAIRN_F64, 1, one, nullptr).code(), Code::not_found);
    refused(nullptr, 0, CAIRN_F64, 1, one, nullptr, "needs a name");
    refused("x", 0, CAIRN_F64, 1, one, nullptr, "memory of type i32");
    for (const int type : std::initializer_list<int>{-1, CAIRN_BYTES, 15, CAIRN_BIG_ENDIAN, CAIRN_F64 | 512}) refused("file", 0, type, 1, one, nullptr, "none of numbers; they are 1 (CAIRN_I8) to 14");
    refused("file", 0, CAIRN_F64, 0, one, nullptr, "1 to 32 and their extents");
    refused("file", 0, CAIRN_F64, 1, nullptr, nullptr, "1 to 32 and their extents");
    refused("file", 0, CAIRN_F64, 2, zero, nullptr, "size zero");
    refused("file", 0, CAIRN_F64, 2, huge, nullptr, "larger than any");
    refused("file", 120, CAIRN_F64, 1, large, nullptr, "larger than any");
    refused("file", 0, CAIRN_F64, 2, open, nullptr, "at most can be CAIRN_TO_END");
    refused("file", UINT64_MAX, CAIRN_F64, 1, one, nullptr, "no region has a byte");
    refused("file", 0, CAIRN_F64, 1, one, "\xff", "UTF-8");
    refused("file", 0, CAIRN_F64, 1, one, std::string(256, 'n').c_str(), "at most 255 bytes");
    for (const std::uint64_t offset : {33, 40, 119}) refused("file", offset, CAIRN_F64, 1, one, nullptr, "from byte 40 on lies f64[5,2] by an earlier description");
    refused("file", 0, CAIRN_F64, 1, open, nullptr, "would overlap");
    EXPECT_EQ(regions.find("file")->described.size(), 1u);
    for (std::uint64_t i = 0; i < 999; ++i) ASSERT_TRUE(regions.describe("file", 120 + i, CAIRN_U8, 1, one, nullptr).ok());
    refused("file", 5000, CAIRN_F64, 1, one, nullptr, "1000 arrays of it are described");
    ASSERT_TRUE(regions.remove("file").ok() && regions.add_file("file", "file").ok());
    EXPECT_TRUE(regions.describe("file", 0, CAIRN_F64, 1, open, nullptr).ok()) << "forgotten with the region";
}

struct Notes {
    std::uint64_t bytes = 0;
    int answer = 0;  // of its size callback
};
int size_of_notes(void* context, std::uint64_t* bytes) {
    *bytes = static_cast<Notes*>(context)->bytes;
    return static_cast<Notes*>(context)->answer;
}
int write_notes(void*, void*, std::uint64_t) { return 0; }
int read_notes(void*, const void*, std::uint64_t) { return 0; }

TEST(Regions, WhatOthersHoldIsAskedForItsSizeEachTime) {
    const TemporaryPlace place;
    const std::string path = place.file("routed");
    std::ofstream(path) << std::string(100, 'x');
    RegionTable regions;
    Notes notes{7};
    const std::uint64_t one[] = {1};
    std::uint8_t byte = 0;
    ASSERT_TRUE(regions.add_memory("byte", &byte, CAIRN_U8, 1, one).ok());
    ASSERT_TRUE(regions.add_callbacks("notes", size_of_notes, write_notes, read_notes, &notes).ok());
    ASSERT_TRUE(regions.add_file("file", path.c_str()).ok());
    std::uint64_t bytes = 0;
    auto laid = regions.lay_out(map_now(), false, bytes).value();
    EXPECT_EQ(laid[1].offset, 64u);
    EXPECT_EQ(laid[1].shape, std::vector<std::uint64_t>{7});
    EXPECT_EQ(laid[2].offset, 4096u);  // whole blocks of a file are shared, not copied
    EXPECT_EQ(bytes, 4196u);
    notes.bytes = 5000;
    std::filesystem::resize_file(path, 1);
    laid = regions.lay_out(map_now(), false, bytes).value();
    EXPECT_EQ(laid[1].length, 5000u);
    EXPECT_EQ(laid[2].offset, 8192u);
    EXPECT_EQ(bytes, 8193u);
}

TEST(Regions, AreRefusedByNameWhereTheyCanNotBeLaidOut) {
    const TemporaryPlace place;
    const auto refusal = [](const RegionTable& regions) {
        std::uint64_t bytes = 0;
        return regions.lay_out(map_now(), false, bytes).status();
    };
    RegionTable missing, folder, failing, huge;
    ASSERT_TRUE(missing.add_file("gone", place.file("gone").c_str()).ok());
    EXPECT_EQ(refusal(missing).code(), Code::not_found);
    EXPECT_THAT(refusal(missing).text(), HasSubstr("region \"gone\""));
    std::filesystem::create_directory(place.file("folder"));
    ASSERT_TRUE(folder.add_file("folder", place.file("folder").c_str()).ok());
    EXPECT_THAT(refusal(folder).text(), HasSubstr("not a regular file"));
    Notes notes{1, 3};
    ASSERT_TRUE(failing.add_callbacks("notes", size_of_notes, write_notes, read_notes, &notes).ok());
    EXPECT_THAT(refusal(failing).text(), HasSubstr("region \"notes\": its size callback"));
    Notes endless{~0ull};
    ASSERT_TRUE(huge.add_callbacks("endless", size_of_notes, write_notes, read_notes, &endless).ok());
    EXPECT_THAT(refusal(huge).text(), HasSubstr("can not be"));
}

TEST(Regions, NeedAllOfWhatTheyAreMadeOf) {
    RegionTable regions;
    Notes notes;
    EXPECT_EQ(regions.add_callbacks("notes", size_of_notes, nullptr, read_notes, &notes).code(), Code::invalid_argument);
    EXPECT_EQ(regions.add_file("file", "").code(), Code::invalid_argument);
    EXPECT_EQ(regions.add_file("file", nullptr).code(), Code::invalid_argument);
    ASSERT_TRUE(regions.add_file("file", "here/../there").ok());
    EXPECT_EQ(regions.find("file")->path, (std::filesystem::current_path() / "there").string());
    EXPECT_EQ(regions.add_callbacks("file", size_of_notes, write_notes, read_notes, &notes).code(), Code::already_exists);
    EXPECT_EQ(regions.remove(nullptr).code(), Code::invalid_argument);
}

// Bytes are bytes, but memory has a type and a shape.
TEST(Regions, ARoutedFileMayComeBackThroughACallback) {
    RegionTable regions;
    Notes notes;
    ASSERT_TRUE(regions.add_callbacks("notes", size_of_notes, write_notes, read_notes, &notes).ok());
    Region kept{"notes", RegionKind::file, DataType::bytes, {9}, 0, 9};
    EXPECT_TRUE(check_fits(*regions.find("notes"), kept).ok());
    kept.kind = RegionKind::memory;
    EXPECT_THAT(check_fits(*regions.find("notes"), kept).text(), HasSubstr("memory in the version and protected as a callback region"));
}

}  // namespace
}  // namespace cairn
