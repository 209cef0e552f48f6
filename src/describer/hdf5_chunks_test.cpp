// Chunks: one extent each, whatever index the library keeps them in.
#include <chrono>

#include "describer/hdf5_testing.hpp"

namespace cairn::testing {
namespace {

using How = Hdf5Writer::How;

// Of a matrix of 5 x 7 numbers in chunks of 2 x 3, cut at the edges: what each chunk holds, by where it begins.
std::vector<double> chunk_of(const std::vector<double>& values, std::size_t row, std::size_t column) {
    std::vector<double> chunk(6);
    for (std::size_t r = 0; r < 2; ++r)
        for (std::size_t c = 0; c < 3; ++c)
            if (row + r < 5 && column + c < 7) chunk[r * 3 + c] = values[(row + r) * 7 + column + c];
    return chunk;
}

void expect_chunks_of_matrix(const Said& said, const std::string& name, const std::vector<double>& values) {
    std::vector<std::vector<double>> found, expected;
    for (std::size_t i = 0; i < said.count(name); ++i) {
        EXPECT_EQ(said.at(name, i).shape, (std::vector<std::uint64_t>{2, 3})) << name;
        EXPECT_EQ(said.at(name, i).type, DataType::f64) << name;
        found.push_back(said.values<double>(said.at(name, i)));
    }
    for (std::size_t row = 0; row < 5; row += 2)
        for (std::size_t column = 0; column < 7; column += 3) expected.push_back(chunk_of(values, row, column));
    std::sort(found.begin(), found.end());
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(found, expected) << name;
}

TEST(Hdf5Chunks, EachIndexOfTheLibraryTellsItsChunks) {
    const Folder folder;
    const std::vector<double> values = ramp(35, 1);
    for (const bool newest : {false, true}) {  // the old one has one index, a tree; the new ones have one for each kind of growing
        const std::string path = folder.file("chunks.h5");
        Hdf5Writer writer(path, 0, newest);
        writer.doubles("fixed", {5, 7}, values, How{.chunk = {2, 3}});
        writer.doubles("one", {5, 7}, values, How{.chunk = {5, 7}});
        writer.doubles("grows", {5, 7}, values, How{.chunk = {2, 3}, .most = {H5S_UNLIMITED, 7}});
        writer.doubles("grows both ways", {5, 7}, values, How{.chunk = {2, 3}, .most = {H5S_UNLIMITED, H5S_UNLIMITED}});
        writer.doubles("none", {5, 7}, values, How{.chunk = {2, 3}, .written = false});
        writer.doubles("no rows", {0, 7}, {}, How{.chunk = {2, 3}, .most = {H5S_UNLIMITED, 7}});
        writer.close();
        const Said said = said_of(path);
        for (const std::string name : {"fixed", "grows", "grows both ways"}) expect_chunks_of_matrix(said, name, values);
        EXPECT_EQ(said.values<double>(said.at("one")), values);
        EXPECT_EQ(said.at("one").shape, (std::vector<std::uint64_t>{5, 7}));
        EXPECT_EQ(said.extents.size(), 3 * 9 + 1u);
    }
}

TEST(Hdf5Chunks, OfArraysAndRecordsTheyAreOfTheirShape) {
    const Folder folder;
    const std::string path = folder.file("vectors.h5");
    const hsize_t three = 3;
    const Hdf5Id vector(H5Tarray_create2(H5T_IEEE_F64LE, 1, &three));
    const std::vector<double> values = ramp(60);
    Hdf5Writer writer(path);
    writer.dataset("vectors", vector.get(), vector.get(), {4, 5}, values.data(), How{.chunk = {2, 5}});
    writer.close();
    const Said said = said_of(path);
    ASSERT_EQ(said.count("vectors"), 2u);
    EXPECT_EQ(said.at("vectors").shape, (std::vector<std::uint64_t>{2, 5, 3}));
    EXPECT_EQ(said.values<double>(said.at("vectors", 1)), ramp(30, 15));
}

// A chunk may say that filters left it as it is: then it is numbers as any other.
TEST(Hdf5Chunks, WhatAFilterMadeIsBytesOfTheStoredLength) {
    const Folder folder;
    const std::string path = folder.file("packed.h5");
    const std::vector<double> values = ramp(3000), rows = ramp(1000, -7);
    Hdf5Writer writer(path);
    writer.doubles("packed", {3000}, values, How{.chunk = {1000}, .gzip = 6, .shuffle = true});
    const hsize_t second = 1000, third = 2000;
    {
        const Hdf5Id made(H5Dopen2(writer.file(), "packed", H5P_DEFAULT));
        ASSERT_GE(H5Dwrite_chunk(made.get(), H5P_DEFAULT, 3, &second, 8000, rows.data()), 0);  // neither filter
        ASSERT_GE(H5Dwrite_chunk(made.get(), H5P_DEFAULT, 2, &third, 8000, rows.data()), 0);   // shuffled, not packed
    }
    writer.close();
    const Said said = said_of(path);
    ASSERT_EQ(said.count("packed"), 3u);
    std::size_t plain = 0, zlib = 0, shuffled = 0;
    for (const Extent& extent : said.extents) {
        if (extent.type == DataType::f64) {
            ++plain;
            EXPECT_EQ(said.values<double>(extent), rows);
        } else {
            EXPECT_EQ(extent.type, DataType::bytes);
            EXPECT_EQ(extent.shape, std::vector<std::uint64_t>{extent.length});
            (extent.length == 8000 ? shuffled : zlib) += 1;
            EXPECT_TRUE(extent.length == 8000 || (extent.length < 4000 && said.values<std::uint8_t>(extent).at(0) == 0x78)) << extent.length;
        }
    }
    EXPECT_EQ(plain, 1u);
    EXPECT_EQ(zlib, 1u);
    EXPECT_EQ(shuffled, 1u);
}

// Few chunks of many that could be; and more that could be than may be looked for.
TEST(Hdf5Chunks, ThoseThatAreNotThereCostALookAndNotMore) {
    const Folder folder;
    const std::string path = folder.file("sparse.h5");
    Hdf5Writer writer(path);
    for (const auto& [name, rows] : std::map<std::string, hsize_t>{{"few", 100'000}, {"more", 100'000'000'000}}) {
        const hsize_t shape[] = {rows}, chunk[] = {100}, at[] = {rows - 150}, some[] = {100};
        const Hdf5Id space(H5Screate_simple(1, shape, nullptr)), properties(H5Pcreate(H5P_DATASET_CREATE)), memory(H5Screate_simple(1, some, nullptr));
        H5Pset_chunk(properties.get(), 1, chunk);
        const Hdf5Id made(H5Dcreate2(writer.file(), name.c_str(), H5T_IEEE_F64LE, space.get(), H5P_DEFAULT, properties.get(), H5P_DEFAULT));
        H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, at, nullptr, some, nullptr);
        const std::vector<double> values = ramp(100, 1);
        ASSERT_GE(H5Dwrite(made.get(), H5T_NATIVE_DOUBLE, memory.get(), space.get(), H5P_DEFAULT, values.data()), 0);
    }
    writer.close();
    const Said said = said_of(path);
    ASSERT_EQ(said.count("few"), 2u);
    EXPECT_EQ(said.count("more"), H5_VERSION_GE(1, 14, 0) ? 2u : 0u);
    std::vector<double> written(50);
    const std::vector<double> first = said.values<double>(said.at("few"));
    EXPECT_EQ(std::vector<double>(first.begin() + 50, first.end()), ramp(50, 1));
}

// A file of twice as many chunks takes about twice the time, and stops at the limit.
TEST(Hdf5Chunks, ThousandsOfThemAreFoundInTimeThatGrowsAsTheyDo) {
    const Folder folder;
    const auto seconds = [&](hsize_t count) {
        const std::string path = folder.file("many.h5");
        Hdf5Writer writer(path);
        writer.doubles("x", {count, 2}, ramp(count * 2), How{.chunk = {1, 2}});
        writer.close();
        const Bytes bytes = bytes_in(path);
        const auto began = std::chrono::steady_clock::now();
        const Result<std::vector<Extent>> extents = describe_hdf5(bytes);
        const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
        EXPECT_TRUE(extents.ok());
        EXPECT_EQ(extents.ok() ? extents.value().size() : 0, std::min<std::size_t>(count, extents_max));
        return took;
    };
    const double few = seconds(2000), many = seconds(extents_max + 1000);
    EXPECT_LT(many, few * 33 * 6) << "the square of it would be a thousand times as long";
}

}  // namespace
}  // namespace cairn::testing
