// Which arrays are taken for the same variable.
#include "describe/similarity.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

Extent variable(const std::string& name, DataType type = DataType::f64, bool is_big_endian = false) { return {name, type, is_big_endian, {8}, 0, 64}; }

std::string key_of(const Extent& extent) { return similarity_key(extent, NameRule::groups); }
std::uint32_t number_of(const Extent& extent) { return similarity_number(extent, NameRule::groups); }

TEST(Similarity, NumbersOfGroupsCountAsOneSignAndThoseOfVariablesDoNot) {
    EXPECT_EQ(key_of(variable("Grid00000037/Density")), "Grid#/Density f64");
    EXPECT_EQ(key_of(variable("level2/grid10x3/u2")), "level#/grid#x#/u2 f64");
    EXPECT_EQ(key_of(variable("model.layers.11.mlp.weight", DataType::bf16)), "model.layers.#.mlp.weight bf16");
    EXPECT_EQ(key_of(variable("run3/u2[17]")), "run#/u2[#] f64");
    EXPECT_EQ(key_of(variable("u]")), "u] f64");
    EXPECT_EQ(key_of(variable("x1", DataType::i32, true)), "x1 i32 big-endian");
    EXPECT_EQ(key_of(variable("")), " f64");
    EXPECT_EQ(number_of(variable("Grid1/u")), number_of(variable("Grid22/u")));
    EXPECT_NE(number_of(variable("Grid1/u")), number_of(variable("Grid1/v")));
    EXPECT_NE(number_of(variable("u")), number_of(variable("u", DataType::f64, true)));
    EXPECT_NE(number_of(variable("u")), number_of(variable("u", DataType::i64)));
}

TEST(Similarity, AUserSaysWhichNumbersCountAsOneSign) {
    EXPECT_EQ(similarity_key(variable("out_0010/u2"), NameRule::all), "out_#/u# f64");
    EXPECT_EQ(similarity_key(variable("u2[17]"), NameRule::all), "u#[#] f64");
    EXPECT_EQ(similarity_key(variable("out_0010/u2"), NameRule::exact), "out_0010/u2 f64");
    EXPECT_EQ(similarity_key(variable("u2[17]"), NameRule::exact), "u2[#] f64");
    EXPECT_EQ(similarity_key(variable("007"), NameRule::all), "# f64");
    EXPECT_NE(similarity_number(variable("grid1/u"), NameRule::exact), similarity_number(variable("grid2/u"), NameRule::exact));
    EXPECT_EQ(similarity_number(variable("u1"), NameRule::all), similarity_number(variable("u2"), NameRule::all));
    EXPECT_NE(similarity_number(variable("u1"), NameRule::all), similarity_number(variable("u1", DataType::f32), NameRule::all));
}

}  // namespace
}  // namespace cairn
