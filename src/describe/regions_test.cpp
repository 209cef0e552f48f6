// What regions say of an image's bytes.
#include "describe/regions.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

Region region(DataType type, std::vector<std::uint64_t> shape, std::uint64_t offset, std::uint64_t length) {
    Region made;
    made.name = "at " + std::to_string(offset);
    made.type = type;
    made.shape = std::move(shape);
    made.offset = offset;
    made.length = length;
    return made;
}

// With no key: of what they are alike is similarity_test.cpp's matter.
std::vector<NumberArray> arrays_in(const std::vector<Region>& regions) {
    std::vector<NumberArray> arrays = arrays_of(describe_regions(regions), NameRule::groups);
    for (NumberArray& array : arrays) {
        EXPECT_NE(array.key, 0u);
        array.key = 0;
    }
    return arrays;
}

TEST(DescribeRegions, TypeAndShapeSayWhereNeighboursLie) {
    const std::vector<NumberArray> arrays = arrays_in({region(DataType::f64, {4, 5, 6}, 1000, 960), region(DataType::i32, {7, 9}, 0, 252), region(DataType::f32, {100}, 300, 400)});
    const std::vector<NumberArray> expected = {{0, 252, 4, false, false, 9, 0}, {300, 400, 4, true, false, 0, 0}, {1000, 960, 8, true, false, 6, 30}};
    EXPECT_EQ(arrays, expected);
}

TEST(DescribeRegions, ComplexNumbersAreTwoAndAxesOfOneAreNone) {
    const std::vector<NumberArray> arrays = arrays_in({region(DataType::c128, {10, 20}, 0, 3200), region(DataType::f64, {1, 50, 1}, 3200, 400), region(DataType::f64, {1, 50}, 3600, 400),
                                                                       region(DataType::f64, {4, 1, 5, 1}, 4000, 160)});
    const std::vector<NumberArray> expected = {{0, 3200, 8, true, false, 2, 40}, {3200, 400, 8, true, false, 0, 0}, {3600, 400, 8, true, false, 0, 0}, {4000, 160, 8, true, false, 5, 0}};
    EXPECT_EQ(arrays, expected);
}

TEST(DescribeRegions, BytesFilesAndWhatIsEmptyAreNone) {
    Region file = region(DataType::f64, {10}, 100, 80);
    file.kind = RegionKind::file;
    EXPECT_TRUE(arrays_in({region(DataType::bytes, {100}, 0, 100), file, region(DataType::f64, {0}, 200, 0)}).empty());
}

}  // namespace
}  // namespace cairn
