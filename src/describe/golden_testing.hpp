// Files that the packages wrote which own the formats (tests/golden/describe/make.py), and what lies in them: arrays that count up by one.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "describe/cursor.hpp"
#include "describe/file.hpp"

namespace cairn::testing {

inline const char* const described_golden[] = {"arrays.npz", "compressed.npz", "protocol2.pt", "protocol4.pt", "module.pt", "script.pt", "big.pt", "cdf1.nc", "cdf2.nc", "cdf5.nc", "alone.nc"};

inline Bytes golden_described(const std::string& name) {
    std::ifstream stream(std::filesystem::path(CAIRN_GOLDEN) / "describe" / name, std::ios::binary);
    Bytes file = to_bytes(std::string(std::istreambuf_iterator<char>(stream), {}));
    EXPECT_FALSE(file.empty()) << name;
    return file;
}

inline double number_at(ByteView bytes, const Extent& extent, std::uint64_t index) {
    const std::uint64_t width = type_bytes(extent.type);
    const bool is_complex = extent.type == DataType::c64 || extent.type == DataType::c128;
    Cursor cursor(bytes, extent.offset + index * width);
    const auto bits_bytes = static_cast<unsigned>(is_complex ? width / 2 : width);
    const std::uint64_t bits = extent.is_big_endian ? cursor.big(bits_bytes) : cursor.little(bits_bytes);
    EXPECT_TRUE(cursor.ok());
    const auto as_float = [](std::uint64_t of) { return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(of))); };
    switch (extent.type) {
        case DataType::f64:
        case DataType::c128: return std::bit_cast<double>(bits);
        case DataType::f32:
        case DataType::c64: return as_float(bits);
        case DataType::bf16: return as_float(bits << 16);
        default: return static_cast<double>(bits);  // none is negative
    }
}

struct Counted {
    std::string name;
    DataType type;
    std::vector<std::uint64_t> shape;
    double first;
    bool is_big_endian = false;
};

// All that is described, in the order in which it lies in the file.
inline void expect_counted(ByteView file, std::string_view format, const std::vector<Counted>& expected) {
    const Result<Description> described = describe_file(file);
    ASSERT_TRUE(described.ok()) << described.status().to_string();
    EXPECT_EQ(described->format, format);
    std::string names, expected_names;
    for (const Extent& extent : described->extents) names += extent.name + " ";
    for (const Counted& counted : expected) expected_names += counted.name + " ";
    ASSERT_EQ(names, expected_names);
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const Extent& extent = described->extents[i];
        EXPECT_EQ(extent.type, expected[i].type) << extent.name;
        EXPECT_EQ(extent.is_big_endian, expected[i].is_big_endian) << extent.name;
        EXPECT_EQ(extent.shape, expected[i].shape) << extent.name;
        EXPECT_EQ(bytes_of(extent.type, extent.shape), extent.length) << extent.name;
        for (std::uint64_t n = 0; n < extent.length / type_bytes(extent.type); ++n) ASSERT_EQ(number_at(file, extent, n), expected[i].first + static_cast<double>(n)) << extent.name << " " << n;
    }
}

// Whatever the bytes are: what is described lies in them, by offset, and none over another.
inline void expect_within(ByteView file) {
    const Result<Description> described = describe_file(file);
    if (!described.ok()) {
        ASSERT_TRUE(described.code() == Code::corrupt || described.code() == Code::unsupported) << described.status().to_string();
        return;
    }
    std::uint64_t end = 0;
    ASSERT_LE(described->extents.size(), extents_max);
    for (const Extent& extent : described->extents) {
        ASSERT_GE(extent.offset, end) << extent.name;
        ASSERT_GT(extent.length, 0u) << extent.name;
        ASSERT_LE(extent.length, file.size() - extent.offset) << extent.name;
        end = extent.offset + extent.length;
    }
}

}  // namespace cairn::testing
