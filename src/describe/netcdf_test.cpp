// Files of netCDF's own library and of SciPy's, and headers made by hand that lie.
#include "describe/golden_testing.hpp"

namespace cairn {
namespace {

std::string big(std::uint64_t number, int width = 4) {
    std::string text;
    while (width-- > 0) text += static_cast<char>(width < 8 ? number >> (8 * width) : 0);
    return text;
}
std::string named(const std::string& name) { return big(name.size()) + name + std::string((4 - name.size() % 4) % 4, '\0'); }
std::string variable(const std::string& name, const std::vector<std::uint64_t>& dimensions, std::uint64_t type, std::uint64_t begin) {
    std::string text = named(name) + big(dimensions.size());
    for (const std::uint64_t dimension : dimensions) text += big(dimension);
    return text + big(0, 8) + big(type) + big(0xFFFFFFFF) + big(begin);  // a size that is no one's
}
// A CDF-1 of the dimensions, named d0, d1, ..., without attributes.
std::string classic(std::uint64_t records, const std::vector<std::uint64_t>& dimensions, const std::vector<std::string>& variables) {
    std::string text = "CDF\1" + big(records) + big(10) + big(dimensions.size());
    for (std::size_t i = 0; i < dimensions.size(); ++i) text += named("d" + std::to_string(i)) + big(dimensions[i]);
    text += big(0, 8) + big(11) + big(variables.size());
    for (const std::string& each : variables) text += each;
    return text;
}
// A CDF-5, whose numbers have 64 bits, so that sums and products of them can have more: the dimensions 0 and what is given, and variables of bytes along the first and one of these.
struct WideVariable {
    std::vector<std::uint64_t> dimensions;
    std::uint64_t begin = 0;
};
std::string wide(std::uint64_t records, const std::vector<std::uint64_t>& dimensions, const std::vector<WideVariable>& variables, std::size_t bytes) {
    const auto wide_name = [](char letter) { return big(1, 8) + letter + std::string(3, '\0'); };
    const std::string none = big(0) + big(0, 8);
    std::string text = "CDF\5" + big(records, 8) + big(10) + big(dimensions.size(), 8);
    for (const std::uint64_t length : dimensions) text += wide_name('d') + big(length, 8);
    text += none + big(11) + big(variables.size(), 8);
    for (std::size_t i = 0; i < variables.size(); ++i) {
        text += wide_name(static_cast<char>('a' + i)) + big(variables[i].dimensions.size(), 8);
        for (const std::uint64_t dimension : variables[i].dimensions) text += big(dimension, 8);
        text += none + big(1) + big(UINT64_MAX, 8) + big(variables[i].begin, 8);
    }
    return text + std::string(bytes - text.size(), 'x');
}
std::vector<Extent> extents_in(const std::string& file) {
    const Result<Description> described = describe_file(to_bytes(file));
    EXPECT_TRUE(described.ok()) << described.status().to_string();
    return described.ok() ? described->extents : std::vector<Extent>();
}

TEST(Netcdf, VariablesAndRecordsOfEachVersion) {
    for (const auto& [name, type] : {std::pair("cdf1.nc", DataType::i16), std::pair("cdf2.nc", DataType::i16), std::pair("cdf5.nc", DataType::u64)}) {
        SCOPED_TRACE(name);
        testing::expect_counted(testing::golden_described(name), "netcdf",
                                {{"grid", DataType::f64, {3, 5}, 100, true},
                                 {"odd", DataType::i16, {3}, 200, true},
                                 {"field[0]", DataType::f32, {3, 5}, 300, true},
                                 {"step[0]", type, {3}, 30, true},
                                 {"field[1]", DataType::f32, {3, 5}, 400, true},
                                 {"step[1]", type, {3}, 40, true}});
    }
}

TEST(Netcdf, RecordsOfOneVariableAloneAreOneArray) {
    Bytes file = testing::golden_described("alone.nc");
    testing::expect_counted(file, "netcdf", {{"only", DataType::i16, {5, 3}, 100, true}});
    // Whoever wrote it did not come back to say how many there are; and fewer than were said.
    for (int i = 4; i < 8; ++i) file[i] = std::byte{0xFF};
    testing::expect_counted(file, "netcdf", {{"only", DataType::i16, {5, 3}, 100, true}});
    file.resize(file.size() - 1);
    testing::expect_counted(file, "netcdf", {{"only", DataType::i16, {4, 3}, 100, true}});
}

TEST(Netcdf, RecordsThatAFileEndsIn) {
    Bytes file = testing::golden_described("cdf1.nc");
    for (int i = 4; i < 8; ++i) file[i] = std::byte{0xFF};
    EXPECT_EQ(describe_file(file)->extents.size(), 6u);
    file.resize(file.size() - 9);  // within the last step
    EXPECT_EQ(describe_file(file)->extents.size(), 5u);
    file.resize(file.size() - 60);
    EXPECT_EQ(describe_file(file)->extents.size(), 4u);
}

TEST(Netcdf, SizesAreWhatDimensionsMake) {
    const std::string two = classic(0, {4, 6}, {variable("a", {0, 1}, 5, 200), variable("b", {}, 6, 296)});
    EXPECT_EQ(extents_in(two + std::string(304 - two.size(), 'x')), (std::vector<Extent>{{"a", DataType::f32, true, {4, 6}, 200, 96}, {"b", DataType::f64, true, {}, 296, 8}}));
    // Larger than can be, in the header, beyond the end, and of text.
    const std::string lies = classic(7, {0, 0xFFFFFFFF, 4}, {variable("a", {1, 1, 1}, 6, 900), variable("b", {2}, 5, 8), variable("c", {2}, 5, 0xFFFFFFF0), variable("d", {2}, 2, 900), variable("e", {0, 1, 1}, 6, 900),
                                                             variable("f", {2, 0}, 1, 900), variable("g", {2}, 1, 900)});
    EXPECT_EQ(extents_in(lies + std::string(1000 - lies.size(), 'x')), (std::vector<Extent>{{"g", DataType::i8, false, {4}, 900, 4}}));
}

TEST(Netcdf, HeadersThatLieAreDamaged) {
    const std::string good = classic(1, {0, 4}, {variable("a", {0, 1}, 5, 200)});
    EXPECT_TRUE(describe_file(to_bytes(good)).ok());
    for (std::size_t bytes = 4; bytes < good.size(); ++bytes) EXPECT_EQ(describe_file(to_bytes(good.substr(0, bytes))).code(), Code::corrupt) << bytes;
    for (const std::string& bad : {classic(1, {4}, {variable("a", {1}, 5, 200)}), classic(1, {4}, {variable("a", {0}, 12, 200)}), classic(1, {4}, {variable("a", {0}, 0, 200)}), std::string("CDF\1") + big(0) + big(11) + big(1),
                                   std::string("CDF\1") + big(0) + big(10) + big(0xFFFFFFFF), std::string("CDF\5") + big(0, 8) + big(0, 12) + big(12) + big(1, 8) + big(UINT64_MAX, 8)})
        EXPECT_EQ(describe_file(to_bytes(bad)).code(), Code::corrupt);
    std::string axes = "CDF\1" + big(0) + big(10) + big(1) + named("x") + big(1) + big(0, 8) + big(11) + big(1) + named("v") + big(200'000);
    for (int i = 0; i < 200'000; ++i) axes += big(0);
    axes += big(0, 8) + big(5) + big(4) + big(axes.size() + 20);
    EXPECT_TRUE(extents_in(axes + "1234").empty());
}

TEST(Netcdf, RecordsAreDescribedAsManyAsAreAllowed) {
    const std::string header = classic(0xFFFFFFFF, {0}, {variable("a", {0}, 5, 200), variable("b", {0}, 5, 204)});
    const std::vector<Extent> extents = extents_in(header + std::string(200 + 8 * 100'000 - header.size(), 'x'));
    ASSERT_EQ(extents.size(), extents_max);
    EXPECT_EQ(extents.back(), (Extent{"b[32767]", DataType::f32, true, {}, 204 + 8 * 32'767, 4}));
}

// What wraps around to a number that a file could have is no size, and makes no array; nor does anything beside it whose place would follow from it.
TEST(Netcdf, SizesThatAreMoreThanCanBeSaidMakeNoArrays) {
    const std::uint64_t half = std::uint64_t{1} << 63;
    const Extent eight{"b", DataType::i8, false, {8}, 600, 8};
    EXPECT_EQ(extents_in(wide(0, {half + 4, 2, 8}, {{{0, 1}, 500}, {{2}, 600}}, 1000)), std::vector<Extent>{eight}) << "8 modulo 2^64";
    // Records whose size wraps around: when each part is filled up to 4 bytes, and when they are added.
    EXPECT_TRUE(extents_in(wide(3, {0, UINT64_MAX, 8}, {{{0, 1}, 500}, {{0, 2}, 508}}, 1000)).empty());
    EXPECT_TRUE(extents_in(wide(3, {0, half, 8}, {{{0, 1}, 500}, {{0, 1}, 500}, {{0, 2}, 508}}, 1000)).empty());
}

TEST(Netcdf, MoreRecordsThanCanBeAreThoseThatAreThere) {
    for (const std::uint64_t records : {std::uint64_t{25}, std::uint64_t{1} << 40, std::uint64_t{1} << 62, UINT64_MAX - 1}) {
        SCOPED_TRACE(records);
        const std::vector<Extent> two = extents_in(wide(records, {0, 8}, {{{0, 1}, 800}, {{0, 1}, 808}}, 1200));
        ASSERT_EQ(two.size(), 50u);
        EXPECT_EQ(two.back(), (Extent{"b[24]", DataType::i8, false, {8}, 1192, 8}));
        EXPECT_EQ(extents_in(wide(records, {0, 16}, {{{0, 1}, 800}}, 1200)), (std::vector<Extent>{{"a", DataType::i8, false, {25, 16}, 800, 400}}));
    }
}

}  // namespace
}  // namespace cairn
