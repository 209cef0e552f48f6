// What an image's own region index says of its bytes, for whoever encodes a range of them.
#include "copies/image_arrays.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "format/region_index.hpp"

namespace cairn {
namespace {

// Two regions, their index behind them.
LocalImage image_with_index() {
    std::vector<Region> regions(2);
    regions[0].name = "u";
    regions[0].type = DataType::f64;
    regions[0].shape = {4, 5, 6};
    regions[0].length = 960;
    regions[1].name = "v";
    regions[1].type = DataType::i32;
    regions[1].shape = {16};
    regions[1].offset = 960;
    regions[1].length = 64;
    const RegionIndex index = encode_region_index(regions);
    Bytes bytes(1024);
    bytes.insert(bytes.end(), index.bytes.begin(), index.bytes.end());
    LocalImage image;
    image.header.image.bytes = bytes.size();
    image.header.image.index_bytes = index.bytes.size();
    image.data = Slice::of(std::move(bytes));
    return image;
}
const std::vector<NumberArray> u_and_v = {{0, 960, 8, true, false, 6, 30}, {960, 64, 4, false, false, 0, 0}};

// With no key: of what they are alike is similarity_test.cpp's matter.
std::vector<NumberArray> all_in(ImageArrays& arrays, const Source& source) {
    std::vector<NumberArray> found = arrays.in(source);
    for (NumberArray& array : found) array.key = 0;
    return found;
}

std::vector<NumberArray> all_in(ImageArrays&& arrays, const Source& source) { return all_in(arrays, source); }

TEST(ImageArrays, AreThoseOfTheRegionIndex) {
    const LocalImage image = image_with_index();
    ImageArrays arrays(image, {});
    EXPECT_EQ(all_in(arrays, {0, 0, image.data.length}), u_and_v);
    const std::vector<NumberArray> tail = {{0, 60, 4, false, false, 0, 0}};
    EXPECT_EQ(all_in(arrays, {0, 964, 1000}), tail);
}

TEST(ImageArrays, AreThoseOfTheHeaderInVersion1) {
    LocalImage image = image_with_index();
    image.header.image.regions = *decode_region_index(image.data.part(1024, image.data.length - 1024).bytes(), 1024);
    image.header.image.index_bytes = 0;
    EXPECT_EQ(all_in(ImageArrays(image, {}), {0, 0, 1024}), u_and_v);
}

TEST(ImageArrays, AreNoneWhereTheIndexIsDamagedOrCanBeReadOnceOnly) {
    LocalImage image = image_with_index();
    image.readable = Readable::once;
    EXPECT_TRUE(all_in(ImageArrays(image, {}), {0, 0, 1024}).empty());
    image = image_with_index();
    image.data.data()[1030] ^= std::byte{1};
    EXPECT_TRUE(all_in(ImageArrays(image, {}), {0, 0, 1024}).empty());
    image.header.image.index_bytes = UINT64_MAX;
    EXPECT_TRUE(all_in(ImageArrays(image, {}), {0, 0, 1024}).empty());
}

// Two files: the second one has the signature of HDF5. `described`: what the application said of it.
LocalImage image_of_files(const std::vector<DescribedArray>& described = {}) {
    const std::string header = "{'descr': '>f4', 'fortran_order': False, 'shape': (5, 8), }\n";
    std::string text = std::string("\x93NUMPY\x01\0", 8) + static_cast<char>(header.size()) + '\0' + header + std::string(160, 'x');
    std::vector<Region> regions(2);
    for (Region& region : regions) region.kind = RegionKind::file;
    regions[0].name = "a.npy";
    regions[0].length = text.size();
    regions[1].name = "b.h5";
    regions[1].offset = text.size();
    text += "\x89HDF\r\n\x1a\n" + std::string(92, 'y');
    regions[1].length = 100;
    regions[1].described = described;
    for (Region& region : regions) region.shape = {region.length};
    const RegionIndex index = encode_region_index(regions);
    Bytes bytes = to_bytes(text);
    bytes.insert(bytes.end(), index.bytes.begin(), index.bytes.end());
    LocalImage image;
    image.path = "/scratch/slot";
    image.header.data_offset = 4096;
    image.header.image.bytes = bytes.size();
    image.header.image.index_bytes = index.bytes.size();
    image.data = Slice::of(std::move(bytes));
    return image;
}

TEST(ImageArrays, FilesDescribeThemselves) {
    const LocalImage image = image_of_files();
    const std::uint64_t files = image.data.length - image.header.image.index_bytes, begin = files - 100 - 160;
    const std::vector<NumberArray> array = {{begin, 160, 4, true, true, 8, 0}};
    EXPECT_EQ(all_in(ImageArrays(image, {}), {0, 0, image.data.length}), array);

    std::vector<std::uint64_t> asked;
    const auto elsewhere = [&](const std::string& path, std::uint64_t offset, std::uint64_t length) -> Result<Description> {
        EXPECT_EQ(path, "/scratch/slot");
        asked = {offset, length};
        return Description{"hdf5", {{"u", DataType::i16, false, {30}, 20, 60}}};
    };
    const std::vector<NumberArray> both = {array[0], {files - 80, 60, 2, false, false, 0, 0}};
    EXPECT_EQ(all_in(ImageArrays(image, {elsewhere, nullptr}), {0, 0, image.data.length}), both);
    EXPECT_EQ(asked, (std::vector<std::uint64_t>{4096 + files - 100, 100}));
    const auto in_vain = [](const std::string&, std::uint64_t, std::uint64_t) -> Result<Description> { return Status(Code::deadline, "late"); };
    EXPECT_EQ(all_in(ImageArrays(image, {in_vain, nullptr}), {0, 0, image.data.length}), array);
}

// An image may have thousands of files: who encodes the first of them does not wait for all.
TEST(ImageArrays, AFileIsDescribedWhenSomethingOfItIsAskedFor) {
    const LocalImage image = image_of_files();
    const std::uint64_t files = image.data.length - image.header.image.index_bytes, begin = files - 100 - 160;
    int asked = 0;
    const auto elsewhere = [&](const std::string&, std::uint64_t, std::uint64_t) -> Result<Description> {
        ++asked;
        return Description{"hdf5", {{"u", DataType::i16, false, {30}, 20, 60}}};
    };
    ImageArrays arrays(image, {elsewhere, nullptr});
    EXPECT_EQ(arrays.in({0, begin, 80}).size(), 1u);
    EXPECT_EQ(asked, 0);
    EXPECT_EQ(arrays.in({0, files - 90, 30}).size(), 1u);
    EXPECT_EQ(asked, 1);
    EXPECT_EQ(arrays.in({0, 0, image.data.length}).size(), 2u);
    EXPECT_EQ(arrays.in({0, files - 50, 40}).size(), 1u);
    EXPECT_EQ(asked, 1) << "what is known is not asked for";
}

// Pieces of one file are encoded by several threads at once: the first has it described, and the others wait for that, but not for ever.
TEST(ImageArrays, OneThreadDescribesAFileAndOthersWait) {
    const LocalImage image = image_of_files();
    const std::uint64_t files = image.data.length - image.header.image.index_bytes;
    std::atomic<int> asked = 0;
    std::promise<void> begun, go_on;
    const auto elsewhere = [&](const std::string&, std::uint64_t, std::uint64_t) -> Result<Description> {
        if (++asked == 1) begun.set_value();
        go_on.get_future().wait();
        return Description{"hdf5", {{"u", DataType::i16, false, {30}, 20, 60}}};
    };
    ImageArrays arrays(image, {elsewhere, nullptr});
    std::thread first([&] { EXPECT_EQ(arrays.in({0, files - 100, 50}).size(), 1u); });
    begun.get_future().wait();
    EXPECT_TRUE(arrays.in({0, files - 50, 50}).empty()) << "it waited, and was not told";
    EXPECT_EQ(arrays.in({0, 0, files - 100}).size(), 1u) << "of what nobody reads it is told at once";
    go_on.set_value();
    first.join();
    EXPECT_EQ(arrays.in({0, files - 50, 50}).size(), 1u);
    EXPECT_EQ(asked, 1);
}

// By the region's name, which is the file's.
TEST(ImageArrays, RulesDescribeFiles) {
    const LocalImage image = image_of_files();
    const std::uint64_t files = image.data.length - image.header.image.index_bytes, begin = files - 100 - 160;
    const auto rules = std::make_shared<const FileRules>(FileRules{{"*.h5", 20, DataType::f64, false, {-1, 2}, "x"}});
    const std::vector<NumberArray> both = {{begin, 160, 4, true, true, 8, 0}, {files - 80, 80, 8, true, false, 2, 0}};
    EXPECT_EQ(all_in(ImageArrays(image, {nullptr, rules}), {0, 0, image.data.length}), both);
}

// Of regions, and of files.
TEST(ImageArrays, AUserSaysWhichNamesAreAlike) {
    const Description of_file{"hdf5", {{"u1", DataType::i16, false, {15}, 0, 30}, {"u2", DataType::i16, false, {15}, 30, 30}}};
    const auto keys_by = [&](NameRule names) {
        const LocalImage image = image_of_files();
        std::vector<std::uint32_t> keys;
        ImageArrays arrays(image, {[&](const std::string&, std::uint64_t, std::uint64_t) -> Result<Description> { return of_file; }, nullptr, names});
        for (const NumberArray& array : arrays.in({0, 0, image.data.length}))
            if (array.width == 2) keys.push_back(array.key);
        return keys;
    };
    const std::vector<std::uint32_t> of_groups = keys_by(NameRule::groups), of_all = keys_by(NameRule::all);
    ASSERT_EQ(of_groups.size(), 2u);
    ASSERT_EQ(of_all.size(), 2u);
    EXPECT_NE(of_groups[0], of_groups[1]);
    EXPECT_EQ(of_all[0], of_all[1]);
}

// In the region's own bytes; what goes beyond its end is not there.
TEST(ImageArrays, TheApplicationDescribesFiles) {
    const LocalImage image = image_of_files({{"x", DataType::f64, true, {open_axis, 2}, 20}, {"y", DataType::i32, false, {4}, 4}, {"z", DataType::i32, false, {4}, 100}});
    const std::uint64_t files = image.data.length - image.header.image.index_bytes, begin = files - 100 - 160;
    const auto rules = std::make_shared<const FileRules>(FileRules{{"*.h5", 0, DataType::u8, false, {-1}, ""}});
    const auto elsewhere = [&](const std::string&, std::uint64_t, std::uint64_t) -> Result<Description> {
        ADD_FAILURE() << "nobody needs to be asked";
        return Status(Code::deadline, "late");
    };
    const std::vector<NumberArray> all = {{begin, 160, 4, true, true, 8, 0}, {files - 96, 16, 4, false, false, 0, 0}, {files - 80, 80, 8, true, true, 2, 0}};
    EXPECT_EQ(all_in(ImageArrays(image, {elsewhere, rules}), {0, 0, image.data.length}), all);
}

// Whoever encodes waits for each of them.
TEST(ImageArrays, AFewFilesThatAreLateAreEnough) {
    std::string text;
    std::vector<Region> regions(8);
    for (std::size_t i = 0; i < regions.size(); ++i) {
        regions[i].name = std::to_string(i) + ".h5";
        regions[i].kind = RegionKind::file;
        regions[i].offset = text.size();
        text += "\x89HDF\r\n\x1a\n" + std::string(92, 'y');
        regions[i].length = 100;
        regions[i].shape = {100};
    }
    const RegionIndex index = encode_region_index(regions);
    Bytes bytes = to_bytes(text);
    bytes.insert(bytes.end(), index.bytes.begin(), index.bytes.end());
    LocalImage image;
    image.header.image.bytes = bytes.size();
    image.header.image.index_bytes = index.bytes.size();
    image.data = Slice::of(std::move(bytes));
    int asked = 0;
    const auto late = [&](const std::string&, std::uint64_t, std::uint64_t) -> Result<Description> {
        ++asked;
        return Status(Code::deadline, "late");
    };
    EXPECT_TRUE(ImageArrays(image, {late, nullptr}).in({0, 0, image.data.length}).empty());
    EXPECT_EQ(asked, 3);
    asked = 0;
    const auto damaged = [&](const std::string&, std::uint64_t, std::uint64_t) -> Result<Description> {
        ++asked;
        return Status(Code::corrupt, "damaged");
    };
    EXPECT_TRUE(ImageArrays(image, {damaged, nullptr}).in({0, 0, image.data.length}).empty());
    EXPECT_EQ(asked, 8);
}

}  // namespace
}  // namespace cairn
