// What an image's own region index says of its bytes, for whoever encodes a range of them.
#include "copies/image_arrays.hpp"

#include <gtest/gtest.h>

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

TEST(ImageArrays, AreThoseOfTheRegionIndex) {
    const LocalImage image = image_with_index();
    ImageArrays arrays(image);
    EXPECT_EQ(arrays.in({0, 0, image.data.length}), u_and_v);
    const std::vector<NumberArray> tail = {{0, 60, 4, false, false, 0, 0}};
    EXPECT_EQ(arrays.in({0, 964, 1000}), tail);
}

TEST(ImageArrays, AreThoseOfTheHeaderInVersion1) {
    LocalImage image = image_with_index();
    image.header.image.regions = *decode_region_index(image.data.part(1024, image.data.length - 1024).bytes(), 1024);
    image.header.image.index_bytes = 0;
    EXPECT_EQ(ImageArrays(image).in({0, 0, 1024}), u_and_v);
}

TEST(ImageArrays, AreNoneWhereTheIndexIsDamagedOrCanBeReadOnceOnly) {
    LocalImage image = image_with_index();
    image.readable = Readable::once;
    EXPECT_TRUE(ImageArrays(image).in({0, 0, 1024}).empty());
    image = image_with_index();
    image.data.data()[1030] ^= std::byte{1};
    EXPECT_TRUE(ImageArrays(image).in({0, 0, 1024}).empty());
    image.header.image.index_bytes = UINT64_MAX;
    EXPECT_TRUE(ImageArrays(image).in({0, 0, 1024}).empty());
}

}  // namespace
}  // namespace cairn
