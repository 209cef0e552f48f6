// Which arrays are taken for the same variable.
#include "describe/similarity.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

Extent variable(const std::string& name, DataType type = DataType::f64, bool is_big_endian = false) { return {name, type, is_big_endian, {8}, 0, 64}; }

TEST(Similarity, NumbersOfGroupsCountAsOneSignAndThoseOfVariablesDoNot) {
    EXPECT_EQ(similarity_key(variable("Grid00000037/Density")), "Grid#/Density f64");
    EXPECT_EQ(similarity_key(variable("level2/grid10x3/u2")), "level#/grid#x#/u2 f64");
    EXPECT_EQ(similarity_key(variable("model.layers.11.mlp.weight", DataType::bf16)), "model.layers.#.mlp.weight bf16");
    EXPECT_EQ(similarity_key(variable("run3/u2[17]")), "run#/u2[#] f64");
    EXPECT_EQ(similarity_key(variable("u]")), "u] f64");
    EXPECT_EQ(similarity_key(variable("x1", DataType::i32, true)), "x1 i32 big-endian");
    EXPECT_EQ(similarity_key(variable("")), " f64");
    EXPECT_EQ(similarity_number(variable("Grid1/u")), similarity_number(variable("Grid22/u")));
    EXPECT_NE(similarity_number(variable("Grid1/u")), similarity_number(variable("Grid1/v")));
    EXPECT_NE(similarity_number(variable("u")), similarity_number(variable("u", DataType::f64, true)));
    EXPECT_NE(similarity_number(variable("u")), similarity_number(variable("u", DataType::i64)));
}

}  // namespace
}  // namespace cairn
