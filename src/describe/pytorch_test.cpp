// Archives that PyTorch wrote: objects of dictionaries, a module, a script, and one of the other byte order.
#include "describe/pytorch.hpp"

#include "describe/golden_testing.hpp"

namespace cairn {
namespace {

TEST(DescribePytorch, TensorsHaveTheKeysThatLeadToThem) {
    testing::expect_counted(testing::golden_described("protocol2.pt"), "zip",
                            {{"model/weight", DataType::f32, {3, 4}, 10},  // and model/tied
                             {"model/bias", DataType::bf16, {4}, 20},
                             {"views/left", DataType::f64, {2}, 100},  // longer than views/head, and before views/over
                             {"2", DataType::f64, {1}, 102},  // between the views
                             {"views/right", DataType::f64, {5}, 103},
                             {"3", DataType::i16, {6}, 50},  // every second of them is a tensor
                             {"views/last", DataType::i32, {2, 3, 4}, 30},  // and views/again; permuted, and described as it lies
                             {"optimizer/state/0/step", DataType::f32, {}, 3}});
}

TEST(DescribePytorch, ProtocolFourAndTypesWithoutAStorageOfTheirs) {
    const Bytes file = testing::golden_described("protocol4.pt");
    const Result<Description> described = describe_file(file);
    ASSERT_TRUE(described.ok());
    std::vector<Extent> extents = described->extents;
    ASSERT_EQ(extents.size(), 7u);
    // 80 to 83 in eight bits are all 80.
    EXPECT_EQ(extents[5].name, "others/4");
    EXPECT_EQ(extents[5].type, DataType::u8);
    EXPECT_EQ(as_text(ByteView(file).subspan(extents[5].offset, extents[5].length)), "jjjj");
    const std::pair<const char*, DataType> expected[] = {{"model/weight", DataType::f32}, {"model/bias", DataType::bf16}, {"others/0", DataType::u16}, {"others/1", DataType::c64}, {"others/2", DataType::u8}};
    for (std::size_t i = 0; i < std::size(expected); ++i) {
        EXPECT_EQ(extents[i].name, expected[i].first);
        EXPECT_EQ(extents[i].type, expected[i].second);
    }
    EXPECT_EQ(extents[3].shape, (std::vector<std::uint64_t>{2, 2}));
    const double firsts[] = {10, 20, 60, 1, 70};
    for (std::size_t i = 0; i < std::size(firsts); ++i)
        for (std::uint64_t n = 0; n < extents[i].length / type_bytes(extents[i].type); ++n) EXPECT_EQ(testing::number_at(file, extents[i], n), firsts[i] + static_cast<double>(n)) << extents[i].name;
    EXPECT_EQ(extents[6].name, "optimizer/state/0/step");
}

TEST(DescribePytorch, ModulesAndScripts) {
    testing::expect_counted(testing::golden_described("module.pt"), "zip", {{"_parameters/weight", DataType::f32, {2, 3}, 10}, {"_parameters/bias", DataType::f32, {2}, 20}});
    testing::expect_counted(testing::golden_described("script.pt"), "zip", {{"scale", DataType::f32, {2, 3}, 10}});
}

TEST(DescribePytorch, TheByteOrderIsTheArchives) { testing::expect_counted(testing::golden_described("big.pt"), "zip", {{"a", DataType::f32, {2, 3}, 10, true}}); }

}  // namespace
}  // namespace cairn
