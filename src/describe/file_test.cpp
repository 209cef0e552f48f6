// Files that describe themselves: npy and safetensors, what is sound of a description, and files that lie.
#include "describe/file.hpp"

#include <gtest/gtest.h>

#include <random>

namespace cairn {
namespace {

Bytes npy(const std::string& header, std::size_t data_bytes, char version = 1) {
    std::string text = std::string("\x93NUMPY") + version + '\0';
    text += static_cast<char>(header.size() & 0xff);
    text += static_cast<char>(header.size() >> 8);
    if (version > 1) text += std::string(2, '\0');
    return to_bytes(text + header + std::string(data_bytes, 'x'));
}
Bytes safetensors(const std::string& header, std::size_t data_bytes) {
    std::string text(8, '\0');
    for (int i = 0; i < 8; ++i) text[i] = static_cast<char>(header.size() >> 8 * i);
    return to_bytes(text + header + std::string(data_bytes, 'x'));
}
std::vector<Extent> extents_of(const Bytes& file) {
    Result<Description> described = describe_file(file);
    EXPECT_TRUE(described.ok()) << described.status().to_string();
    return described.ok() ? described->extents : std::vector<Extent>();
}

TEST(DescribeFile, AnNpyIsOneArray) {
    const std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (4, 5, 6), }   \n";
    for (const char version : {1, 2, 3}) {
        const Bytes file = npy(header, 960, version);
        EXPECT_EQ(extents_of(file), (std::vector<Extent>{{"", DataType::f64, false, {4, 5, 6}, file.size() - 960, 960}}));
    }
    EXPECT_EQ(describe_file(npy(header, 960))->format, "npy");
}

TEST(DescribeFile, OfAnNpyInFortransOrderTheLastAxisIsFirst) {
    const Bytes file = npy("{'descr': '>i4', 'fortran_order': True, 'shape': (4, 5), }\n", 80);
    EXPECT_EQ(extents_of(file), (std::vector<Extent>{{"", DataType::i32, true, {5, 4}, file.size() - 80, 80, ExtentAxes::reordered}}));
    EXPECT_EQ(extents_of(npy("{'descr': '>i4', 'fortran_order': True, 'shape': (20,), }\n", 80)).at(0).axes, ExtentAxes::as_named);
}

TEST(DescribeFile, AnNpyOfOneNumberOfTimesAndOfRecords) {
    const Bytes one = npy("{'descr': '|u1', 'fortran_order': False, 'shape': (), }\n", 1);
    EXPECT_EQ(extents_of(one), (std::vector<Extent>{{"", DataType::u8, false, {}, one.size() - 1, 1}}));
    const Bytes times = npy("{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (3,), }\n", 24);
    EXPECT_EQ(extents_of(times), (std::vector<Extent>{{"", DataType::i64, false, {3}, times.size() - 24, 24}}));
    const Bytes records = npy("{'descr': [('a', '<f8'), ('b', '<i2')], 'fortran_order': False, 'shape': (3,), }\n", 30);
    EXPECT_EQ(extents_of(records), (std::vector<Extent>{{"", DataType::bytes, false, {30}, records.size() - 30, 30}}));
    EXPECT_TRUE(extents_of(npy("{'descr': '|O', 'fortran_order': False, 'shape': (3,), }\n", 30)).empty());
}

// As much of a short file as there is; what lies over another, and what leaves no number, is left out.
TEST(DescribeFile, WhatTheApplicationSaidGoesBeforeAllElse) {
    const Bytes file = npy("{'descr': '<f8', 'fortran_order': False, 'shape': (4, 5, 6), }   \n", 960);
    const auto rules = std::make_shared<const FileRules>(FileRules{{"*", 0, DataType::u8, false, {-1}, ""}});
    const auto described = [&](const std::vector<DescribedArray>& arrays) { return describe_file({"a.npy", file, "/scratch/slot", 0, arrays}, {nullptr, rules}).value(); };
    const std::uint64_t end = file.size();
    const Description told = described({{"tail", DataType::f32, true, {open_axis, 3}, end - 50}, {"head", DataType::i16, false, {2, 5}, 7}});
    EXPECT_EQ(told.format, "call");
    EXPECT_EQ(told.extents, (std::vector<Extent>{{"head", DataType::i16, false, {2, 5}, 7, 20}, {"tail", DataType::f32, true, {4, 3}, end - 50, 48}}));
    EXPECT_EQ(described({{"", DataType::f64, false, {100, 2}, end - 33}}).extents, (std::vector<Extent>{{"", DataType::f64, false, {2, 2}, end - 33, 32}}));
    EXPECT_EQ(described({{"", DataType::u8, false, {9}, 0}, {"", DataType::u8, false, {9}, 8}}).extents.size(), 1u);
    for (const DescribedArray& none : {DescribedArray{"", DataType::f64, false, {3}, end}, DescribedArray{"", DataType::f64, false, {2, 1ull << 62}, 0}, DescribedArray{"", DataType::f64, false, {open_axis, open_axis}, 0}, DescribedArray{"", DataType::f64, false, {open_axis}, end - 7}})
        EXPECT_EQ(described({none}).format, "rule");
    EXPECT_EQ(described({}).format, "rule");
}

TEST(DescribeFile, AnNpyThatLiesIsDamaged) {
    for (const std::string header : {"{'descr': '<f8', 'fortran_order': False, 'shape': (4, 5, 7), }", "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296, 4), }",
                                     "{'descr': '<f8', 'fortran_order': False, 'shape': (-4, 5), }", "{'descr': '<f8', 'fortran_order': False, }", "{'descr': '<f8', 'fortran_order': False, 'shape': (4", "", "'shape'"})
        EXPECT_EQ(describe_file(npy(header, 960)).code(), Code::corrupt) << header;
    Bytes short_header = npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", 8);
    short_header[9] = std::byte{0x70};
    EXPECT_EQ(describe_file(short_header).code(), Code::corrupt);
    EXPECT_EQ(describe_file(npy("{}", 8, 9)).code(), Code::unsupported);
}

TEST(DescribeFile, ASafetensorsFileIsItsTensors) {
    const std::string header = R"({"__metadata__":{"step":"200"},"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[16,28]},"a":{"dtype":"F64","shape":[2],"data_offsets":[0,16]},"empty":{"dtype":"F32","shape":[0,4],"data_offsets":[28,28]},"odd":{"dtype":"F4","shape":[7],"data_offsets":[28,32]}})";
    const Bytes file = safetensors(header, 32);
    const std::uint64_t at = file.size() - 32;
    EXPECT_EQ(extents_of(file), (std::vector<Extent>{{"a", DataType::f64, false, {2}, at, 16}, {"b", DataType::bf16, false, {2, 3}, at + 16, 12}, {"odd", DataType::bytes, false, {4}, at + 28, 4}}));
    EXPECT_EQ(describe_file(file)->described_bytes(), 32u);
}

TEST(DescribeFile, ASafetensorsFileThatLiesIsDamagedOrDescribesWhatIsThere) {
    for (const std::string header : {R"({"a":{"dtype":"F64","shape":[2]}})", R"({"a":[1,2]})", R"({"a":{"dtype":"F64","shape":[-2],"data_offsets":[0,16]}})", R"({"a":{"dtype":"F64","shape":[2],"data_offsets":[16,0]}})",
                                     R"({"a":{"dtype":1,"shape":[2],"data_offsets":[0,16]}})", "{not JSON}", "{\"\xff\":1}"})
        EXPECT_EQ(describe_file(safetensors(header, 32)).code(), Code::corrupt) << header;
    EXPECT_EQ(describe_file(safetensors("{\"a\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}", 0)).code(), Code::corrupt);
    // Beyond the file, and one over another: the first of them is taken.
    const Bytes over = safetensors(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[8],"data_offsets":[4,12]},"c":{"dtype":"U8","shape":[30],"data_offsets":[12,42]}})", 32);
    EXPECT_EQ(extents_of(over), (std::vector<Extent>{{"a", DataType::u8, false, {8}, over.size() - 32, 8}}));
    EXPECT_EQ(describe_file(safetensors(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[18446744073709551600,18446744073709551608]}})", 32)).code(), Code::corrupt);
}

TEST(DescribeFile, OtherBytesAreOfNoFormat) {
    for (const std::string text : {"", "x", "\x93NUMP", "PK", "CDF", "a text of some length that is no file of numbers"}) EXPECT_EQ(describe_file(to_bytes(text)).code(), Code::unsupported) << text;
}

// Whatever a byte, or the end, becomes: nothing lies outside of the file.
TEST(DescribeFile, DamagedOnesStayWithinTheFile) {
    const Bytes files[] = {npy("{'descr': '<f8', 'fortran_order': False, 'shape': (4, 5, 6), }   \n", 960),
                           safetensors(R"({"a":{"dtype":"F64","shape":[2],"data_offsets":[0,16]},"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[16,28]}})", 28)};
    std::mt19937_64 random(7);
    for (const Bytes& whole : files) {
        for (int round = 0; round < 20'000; ++round) {
            Bytes file = whole;
            for (int i = 0; i <= round % 3; ++i) file[random() % std::min<std::size_t>(file.size(), 150)] = std::byte(random());
            if (round % 2 == 0) file.resize(random() % file.size());
            const Result<Description> described = describe_file(file);
            if (!described.ok()) continue;
            std::uint64_t end = 0;
            for (const Extent& extent : described->extents) {
                ASSERT_GE(extent.offset, end);
                ASSERT_GT(extent.length, 0u);
                ASSERT_LE(extent.length, file.size() - extent.offset);
                end = extent.offset + extent.length;
            }
        }
    }
}

TEST(DescribeFile, WhatIsNotSoundIsLeftOut) {
    const auto at = [](std::uint64_t offset, std::uint64_t length) { return Extent{"at " + std::to_string(offset), DataType::u8, false, {length}, offset, length}; };
    EXPECT_EQ(sound({at(50, 10), at(0, 20), at(15, 10), at(20, 5), at(90, 20), at(95, 0), at(UINT64_MAX, 2), at(3, UINT64_MAX)}, 100), (std::vector<Extent>{at(0, 20), at(20, 5), at(50, 10)}));
    std::vector<Extent> many;
    for (std::uint64_t i = 0; i < extents_max + 10; ++i) many.push_back(at(i, 1));
    EXPECT_EQ(sound(many, many.size()).size(), extents_max);
}

}  // namespace
}  // namespace cairn
