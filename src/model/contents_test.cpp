#include "model/contents.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

constexpr std::uint64_t unit_bytes = 4096;

PartPlan plan() { return {2, "a", 0, {{0, 0, 0, {{0, {{0, 0, 8 * unit_bytes}, {1, 0, 0}}}}}, {1, 0, 0, {{1, {{2, 4 * unit_bytes, 4 * unit_bytes + 7}}}}}}}; }

TEST(Contents, OfAllLeadersAsPlanned) {
    EXPECT_EQ(contents(plan(), {}), (std::vector<NodeSources>{{0, {{0, 0, 8 * unit_bytes}, {1, 0, 0}}}, {1, {{2, 4 * unit_bytes, 4 * unit_bytes + 7}}}}));
}

TEST(Contents, WithoutWhatWasGivenAway) {
    const std::vector<Moved> moved = {{2, 0, {{0, {{0, 6 * unit_bytes, 2 * unit_bytes}}}}}, {2, 1, {{0, {{0, 2 * unit_bytes, unit_bytes}}}, {1, {{2, 4 * unit_bytes, 4 * unit_bytes + 7}}}}}};
    EXPECT_EQ(contents(plan(), moved), (std::vector<NodeSources>{{0, {{0, 0, 2 * unit_bytes}, {0, 3 * unit_bytes, 3 * unit_bytes}, {1, 0, 0}}}}));
}

TEST(Contents, WithWhatCameIn) {
    const std::vector<Moved> moved = {{0, 2, {{1, {{2, 0, 4 * unit_bytes}}}, {3, {{5, 0, 10}}}}}, {1, 0, {{0, {{0, 0, unit_bytes}}}}}};
    EXPECT_EQ(contents(plan(), moved), (std::vector<NodeSources>{{0, {{0, 0, 8 * unit_bytes}, {1, 0, 0}}}, {1, {{2, 0, 8 * unit_bytes + 7}}}, {3, {{5, 0, 10}}}})) << "what meets is one";
}

TEST(Contents, WhatWentOutAndCameBackIsThere) {
    const std::vector<NodeSources> work = {{0, {{0, 4 * unit_bytes, 4 * unit_bytes}}}};
    EXPECT_EQ(contents(plan(), {{2, 0, work}, {0, 2, work}}), contents(plan(), {}));
    EXPECT_EQ(contents(plan(), {{0, 2, work}, {2, 0, work}}).front().sources.front(), (Source{0, 0, 4 * unit_bytes})) << "in this order it is gone";
}

TEST(Contents, ManyPiecesOfOneImage) {
    std::vector<Moved> moved;
    for (std::uint64_t i = 0; i < 8; i += 2) moved.push_back({2, 0, {{0, {{0, i * unit_bytes, unit_bytes}}}}});
    std::vector<NodeSources> left = contents(plan(), moved);
    EXPECT_EQ(left.front().sources, (std::vector<Source>{{0, unit_bytes, unit_bytes}, {0, 3 * unit_bytes, unit_bytes}, {0, 5 * unit_bytes, unit_bytes}, {0, 7 * unit_bytes, unit_bytes}, {1, 0, 0}}));
    moved.push_back({0, 2, {{0, {{0, 2 * unit_bytes, unit_bytes}}}}});
    moved.push_back({2, 1, {{0, {{0, 0, 8 * unit_bytes}}}}});
    left = contents(plan(), moved);
    EXPECT_EQ(left.front().sources, (std::vector<Source>{{1, 0, 0}})) << "one take across several ranges";
}

}  // namespace
}  // namespace cairn
