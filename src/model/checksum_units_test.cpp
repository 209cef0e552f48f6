#include "model/checksum_units.hpp"

#include <gtest/gtest.h>

#include <random>

namespace cairn {
namespace {

using List = std::vector<std::uint64_t>;

Region region(std::uint64_t offset, std::uint64_t length) {
    Region r;
    r.offset = offset;
    r.length = length;
    return r;
}

TEST(Units, EndAtBlocksOfTheImageAndAtCuts) {
    EXPECT_EQ(unit_ends(4096, 0), List());
    EXPECT_EQ(unit_ends(4096, 10000), (List{4096, 8192, 10000}));
    EXPECT_EQ(unit_ends({4096, 0, {100, 5000, 8192}}, 10000), (List{100, 4096, 5000, 8192, 10000}));
    EXPECT_EQ(unit_ends({4096, 5000, {100, 5000, 8000, 20000}}, 5000), (List{3000, 3192, 5000}));  // it begins within a block
    EXPECT_EQ(unit_count(4096, 5000, {100, 5000, 8000, 20000}, 5000), 3u);
}

TEST(Units, AreAsManyAsTheirEnds) {
    std::mt19937_64 random(5);
    for (int i = 0; i < 2000; ++i) {
        const std::uint64_t offset = random() % 20000, length = random() % 30000;
        List cuts;
        for (std::uint64_t at = 0; (at += 1 + random() % 9000) < 60000;)
            if (at % 4096 != 0) cuts.push_back(at);
        const Units units(4096, offset, cuts);
        const List ends = unit_ends(units, length);
        ASSERT_EQ(ends.size(), unit_count(4096, offset, cuts, length));
        std::uint64_t before = 0;
        for (const std::uint64_t end : ends) {
            ASSERT_GT(end, before);
            ASSERT_LE(end - before, 4096u);
            ASSERT_TRUE((offset + end) % 4096 == 0 || end == length || std::binary_search(cuts.begin(), cuts.end(), offset + end));
            before = end;
        }
        ASSERT_EQ(before, length);
    }
}

TEST(Units, ARegionIsCutFromItsNeighboursAndTinyOnesStayTogether) {
    const std::uint64_t block = 1 << 20;
    EXPECT_EQ(cuts_of({region(0, 5000000), region(5000000, 3000000)}, 8000000, block), (List{5000000}));
    EXPECT_EQ(cuts_of({region(0, 5000000), region(5000064, 3000000)}, 8000064, block), (List{5000000, 5000064}));  // what lies between is nobody's
    List tiny;
    std::vector<Region> regions;
    for (int i = 0; i < 100; ++i) regions.push_back(region(1000u * i, 1000));
    const List cuts = cuts_of(regions, 100000, block);
    EXPECT_EQ(cuts.size(), 19u);
    for (std::size_t i = 0; i < cuts.size(); ++i) EXPECT_EQ(cuts[i], 5000 * (i + 1));
    EXPECT_EQ(cuts_of({region(0, 8), region(8, 2 * block - 8)}, 2 * block, block), (List{8}));
    EXPECT_EQ(cuts_of({region(0, block), region(block, block)}, 2 * block, block), List());
    EXPECT_EQ(cuts_of({}, 2 * block, block), List());
}

// Whatever the regions are: one that is not tiny is made of units of its own.
TEST(Units, NoUnitHoldsBytesOfALargeRegionAndOfAnother) {
    std::mt19937_64 random(7);
    for (int i = 0; i < 500; ++i) {
        std::vector<Region> regions;
        std::uint64_t at = 0;
        while (at < 200000) {
            const std::uint64_t length = random() % 4 == 0 ? random() % 40000 : random() % 300;
            regions.push_back(region(at, length));
            at += length + random() % 64;
        }
        const std::uint64_t bytes = regions.back().offset + regions.back().length;
        const List cuts = cuts_of(regions, bytes, 16384);
        ASSERT_TRUE(cuts_valid(cuts, 0, bytes, 16384));
        const List ends = unit_ends({16384, 0, cuts}, bytes);
        for (const Region& each : regions) {
            if (each.length < unit_bytes_min) continue;
            ASSERT_TRUE(each.offset == 0 || std::binary_search(ends.begin(), ends.end(), each.offset));
            ASSERT_TRUE(std::binary_search(ends.begin(), ends.end(), each.offset + each.length));
        }
        ASSERT_LE(cuts.size(), bytes / unit_bytes_min * 2 + 2);
    }
}

TEST(Units, CutsThatCanNotBe) {
    EXPECT_TRUE(cuts_valid({}, 0, 0, 4096));
    EXPECT_TRUE(cuts_valid({5, 4097}, 0, 5000, 4096));
    EXPECT_FALSE(cuts_valid({0}, 0, 5000, 4096));
    EXPECT_FALSE(cuts_valid({5, 5}, 0, 5000, 4096));
    EXPECT_FALSE(cuts_valid({4096}, 0, 5000, 4096));
    EXPECT_FALSE(cuts_valid({5000}, 0, 5000, 4096));
    EXPECT_FALSE(cuts_valid({7}, 8, 5000, 4096));
}

TEST(Units, RunsThatMeetAreCutThere) {
    List cuts = {100};
    append_cuts(cuts, 5000, {5001}, 4096);
    append_cuts(cuts, 8192, {8200}, 4096);
    EXPECT_EQ(cuts, (List{100, 5000, 5001, 8200}));
    EXPECT_EQ(cuts_within(cuts, 100, 4901), (List{5000}));
}

}  // namespace
}  // namespace cairn
