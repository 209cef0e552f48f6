// Where units of an image go that are read straight into memory, and which of them are not what they should be.
#include "copies/landing.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

Slice memory_of(std::size_t bytes) { return Slice::of(Bytes(bytes)); }

TEST(Landing, NeighboursInOneMemoryAreOneDestination) {
    const Slice all = memory_of(300);
    Receiving to = RankSink();
    to.memory = [&](Rank, std::uint64_t offset, std::uint64_t length) { return all.part(offset - 1000, length); };
    const auto into = destinations_of(to, 0, 1000, {100, 200, 300});
    ASSERT_TRUE(into.has_value());
    ASSERT_EQ(into->size(), 1u);
    EXPECT_EQ(into->front().at, 0u);
    EXPECT_EQ(into->front().into.length, 300u);
}

// The second begins at the offset at which the first ends, in memory of its own.
TEST(Landing, NeighboursInMemoriesOfTheirOwnAreNot) {
    const Slice first = memory_of(100), second = memory_of(200);
    Receiving to = RankSink();
    to.memory = [&](Rank, std::uint64_t offset, std::uint64_t length) { return offset < 100 ? first.part(offset, length) : second.part(offset, length); };
    const auto into = destinations_of(to, 0, 0, {100, 200});
    ASSERT_TRUE(into.has_value());
    ASSERT_EQ(into->size(), 2u);
    EXPECT_EQ(into->at(0).into.buffer, first.buffer);
    EXPECT_EQ(into->at(0).into.length, 100u);
    EXPECT_EQ(into->at(1).at, 100u);
    EXPECT_EQ(into->at(1).into.buffer, second.buffer);
    EXPECT_EQ(into->at(1).into.length, 100u);
}

TEST(Landing, OneWithoutMemoryIsNoneOfAll) {
    const Slice first = memory_of(100);
    Receiving to = RankSink();
    to.memory = [&](Rank, std::uint64_t offset, std::uint64_t length) { return offset < 100 ? first.part(offset, length) : Slice(); };
    EXPECT_FALSE(destinations_of(to, 0, 0, {100, 200}).has_value());
}

TEST(Landing, WhatDiffersIsToldByPlaceInTheImage) {
    const std::vector<std::uint64_t> made{1, 2, 3}, expected{1, 5, 6};
    const auto differing = differing_units(made, expected, {100, 200, 250}, 1000);
    ASSERT_EQ(differing.size(), 2u);
    EXPECT_EQ(differing[0].offset, 1100u);
    EXPECT_EQ(differing[0].length, 100u);
    EXPECT_EQ(differing[1].offset, 1200u);
    EXPECT_EQ(differing[1].length, 50u);
}

}  // namespace
}  // namespace cairn
