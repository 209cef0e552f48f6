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
    const auto laid = regions.lay_out(map_now(), image_bytes);
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
    const auto laid = regions.lay_out(map_now(), bytes).value();
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
    auto laid = regions.lay_out(map_now(), bytes).value();
    EXPECT_EQ(laid[1].offset, 64u);
    EXPECT_EQ(laid[1].shape, std::vector<std::uint64_t>{7});
    EXPECT_EQ(laid[2].offset, 4096u);  // whole blocks of a file are shared, not copied
    EXPECT_EQ(bytes, 4196u);
    notes.bytes = 5000;
    std::filesystem::resize_file(path, 1);
    laid = regions.lay_out(map_now(), bytes).value();
    EXPECT_EQ(laid[1].length, 5000u);
    EXPECT_EQ(laid[2].offset, 8192u);
    EXPECT_EQ(bytes, 8193u);
}

TEST(Regions, AreRefusedByNameWhereTheyCanNotBeLaidOut) {
    const TemporaryPlace place;
    const auto refusal = [](const RegionTable& regions) {
        std::uint64_t bytes = 0;
        return regions.lay_out(map_now(), bytes).status();
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
