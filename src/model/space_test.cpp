// Space: packs hold every byte once, a part takes little more than its bytes, and what leaves a share takes its space along.
#include "model/space.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace cairn {
namespace {

constexpr std::uint64_t space_kib = 1024, space_mib = space_kib * space_kib;
constexpr SpacePolicy packing{space_mib, space_mib};

std::vector<NodeSources> images_of(std::uint32_t count, std::uint64_t bytes) {
    std::vector<NodeSources> nodes;
    for (std::uint32_t i = 0; i < count; ++i) nodes.push_back({i, {{i, 0, bytes}}});
    return nodes;
}

TEST(Space, LargeSourcesStandAloneOnAlignedPlaces) {
    const auto four = images_of(4, 520 * space_kib);
    EXPECT_EQ(packs_of(four, packing).size(), 4u);
    EXPECT_EQ(space_of(four, packing), 4 * 520 * space_kib) << "they took a block each, 4 MiB";
    EXPECT_EQ(space_of(images_of(1, 3 * space_mib + 1), packing), 3 * space_mib + part_alignment);
}

TEST(Space, SmallOnesOfAllNodesAreLaidEndToEnd) {
    const auto small = images_of(1000, 100);
    ASSERT_EQ(packs_of(small, packing).size(), 1u);
    EXPECT_EQ(packs_of(small, packing)[0].size(), 1000u);
    EXPECT_EQ(space_of(small, packing), round_up(100'000, part_alignment));
    EXPECT_EQ(packs_of(images_of(5000, 8), packing).size(), 2u) << "and not too many";
}

TEST(Space, WithoutPackingEachTakesWholeBlocks) { EXPECT_EQ(space_of(images_of(4, 520 * space_kib), {space_mib, 0}), 4 * space_mib); }

// The bar of a part: its bytes, 1 % of them and 64 KiB, whatever the sizes are.
TEST(Space, OfAnySizesIsLittleMoreThanTheirBytes) {
    std::mt19937_64 random(3);
    for (int round = 0; round < 300; ++round) {
        std::vector<NodeSources> nodes;
        std::map<Rank, std::uint64_t> wanted;
        std::uint64_t sum = 0;
        const std::uint64_t scale = 1ull << (random() % 24);
        for (std::uint32_t i = 0, count = 1 + random() % 200; i < count; ++i) {
            const std::uint64_t bytes = random() % scale;
            nodes.push_back({i, {{i, 0, bytes}}});
            sum += bytes;
            if (bytes > 0) wanted[i] = bytes;
        }
        std::map<Rank, std::uint64_t> packed;
        for (const Pack& pack : packs_of(nodes, packing)) {
            EXPECT_TRUE(pack.size() == 1 || bytes_of(pack) <= packing.pack_bytes);
            for (const NodeSource& each : pack) EXPECT_TRUE(packed.emplace(each.source.rank, each.source.length).second);
        }
        ASSERT_EQ(packed, wanted);
        EXPECT_LE(space_of(nodes, packing), sum + sum / 100 + 64 * space_kib);
    }
}

// Whatever becomes of chunks, the runs that they become lose less than a hundredth of what is stored.
TEST(Space, EncodedRunsAreLongEnough) {
    EXPECT_EQ(encoded_chunk_bytes(0, 0), space_mib);
    for (const double ratio : {0.001, 0.05, 0.2, 0.6, 0.93}) {
        const std::uint64_t raw = 700'000'000, chunk = encoded_chunk_bytes(raw, static_cast<std::uint64_t>(ratio * raw));
        const double stored = ratio * static_cast<double>(chunk);
        EXPECT_LT(static_cast<double>(part_alignment) / 2, stored / 100) << ratio;
        EXPECT_LT(stored, 2 * 256.0 * space_kib) << ratio << ": and not longer than they need be";
    }
    EXPECT_GT(encoded_chunk_bytes(1ull << 50, 1), 1ull << 40) << "nothing but zeros";
}

}  // namespace
}  // namespace cairn
