#include "copies/read_turns.hpp"

#include <gmock/gmock.h>

namespace cairn {
namespace {

using ::testing::ElementsAre;

PartRead read_of(std::size_t footer, std::uint64_t length) { return {footer, 0, {}, 0, length, false}; }

std::vector<std::size_t> all_of(ReadTurns& turns) {
    std::vector<std::size_t> taken;
    while (const auto next = turns.take()) taken.push_back(*next);
    return taken;
}

TEST(ReadTurns, OfNothingThereIsNothing) {
    ReadTurns turns(std::vector<PartRead>{});
    EXPECT_TRUE(turns.is_empty());
    EXPECT_FALSE(turns.take());
}

TEST(ReadTurns, EachPartIsReadFrontToBack) {
    ReadTurns turns({read_of(0, 4), read_of(0, 4), read_of(0, 4), read_of(3, 4), read_of(3, 4)});
    std::vector<std::size_t> first, second;
    for (const std::size_t index : all_of(turns)) (index < 3 ? first : second).push_back(index);
    EXPECT_THAT(first, ElementsAre(0, 1, 2));
    EXPECT_THAT(second, ElementsAre(3, 4));
    EXPECT_TRUE(turns.is_empty());
}

TEST(ReadTurns, ThePartOfWhichMostIsLeftIsFirst) {
    ReadTurns turns({read_of(0, 4), read_of(1, 4), read_of(1, 4), read_of(2, 4)});
    EXPECT_EQ(turns.take(), 1u);
}

TEST(ReadTurns, ReadersAreSpreadOverParts) {
    ReadTurns turns({read_of(0, 4), read_of(0, 4), read_of(1, 4), read_of(1, 4), read_of(2, 4), read_of(2, 4)});
    EXPECT_THAT((std::vector<std::size_t>{*turns.take(), *turns.take(), *turns.take()}), ::testing::UnorderedElementsAre(0, 2, 4));
}

TEST(ReadTurns, WhoEndsItsReadGoesOnThere) {
    ReadTurns turns({read_of(0, 4), read_of(0, 4), read_of(0, 4), read_of(1, 4), read_of(1, 4), read_of(1, 4)});
    const std::size_t slow = *turns.take(), quick = *turns.take();
    turns.ended(quick);
    const std::size_t next = *turns.take();
    EXPECT_EQ(next, quick + 1);
    turns.ended(next);
    EXPECT_EQ(turns.take(), quick + 2);
    EXPECT_EQ(turns.take(), slow + 1);  // nothing else is left
}

TEST(ReadTurns, BytesCountAndNotReads) {
    ReadTurns turns({read_of(0, 100), read_of(0, 1), read_of(1, 10), read_of(1, 10), read_of(1, 10)});
    EXPECT_EQ(turns.take(), 0u);
    EXPECT_EQ(turns.take(), 2u);
    EXPECT_EQ(turns.take(), 3u);  // 10 bytes are on their way there, and 100 of the other part
}

}  // namespace
}  // namespace cairn
