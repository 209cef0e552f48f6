// The plan: groups against the paper's rule, election, and that parts hold every byte of every image exactly once, in blocks.
#include "model/plan.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace cairn {
namespace {

constexpr std::uint64_t block = 4096;

NodeImages node_of(NodeIndex node, Rank first_rank, const std::vector<std::uint64_t>& sizes) {
    NodeImages result{node, {}};
    for (std::uint64_t bytes : sizes) result.images.push_back({first_rank++, bytes, {}});
    return result;
}

// Random nodes: 1 to 9 with 1 to 5 ranks each; sizes from nothing to some blocks, whole blocks often.
std::vector<NodeImages> random_nodes(std::mt19937_64& random) {
    std::vector<NodeImages> nodes;
    Rank rank = 0;
    const auto count = 1 + random() % 9;
    for (NodeIndex node = 0; node < count; ++node) {
        std::vector<std::uint64_t> sizes(1 + random() % 5);
        for (auto& bytes : sizes) bytes = random() % 4 == 0 ? 0 : random() % 3 == 0 ? block * (random() % 9) : random() % (9 * block);
        nodes.push_back(node_of(node, rank, sizes));
        rank += static_cast<Rank>(sizes.size());
    }
    return nodes;
}

std::uint64_t blocks_of(const NodeSources& run) {
    std::uint64_t sum = 0;
    for (const Source& source : run.sources) sum += div_up(source.length, block);
    return sum;
}

TEST(Groups, EqualThePapersRuleWhereFilesDivideNodes) {
    for (std::uint32_t files = 1; files <= 8; ++files)
        for (std::uint32_t size = 1; size <= 8; ++size)
            for (NodeIndex node = 0; node < files * size; ++node) EXPECT_EQ(group_of(node, files * size, files), node / size);
}

TEST(Groups, AreAlwaysAsManyAsFilesAndDifferByOneNode) {
    for (std::uint32_t nodes = 1; nodes <= 70; ++nodes)
        for (std::uint32_t files = 1; files <= nodes; ++files) {
            std::vector<std::uint32_t> members(files);
            std::uint32_t last = 0;
            for (NodeIndex node = 0; node < nodes; ++node) {
                const std::uint32_t group = group_of(node, nodes, files);
                ASSERT_LT(group, files);
                ASSERT_GE(group, last);  // neighbours stay together
                last = group;
                ++members[group];
            }
            const auto [least, most] = std::minmax_element(members.begin(), members.end());
            EXPECT_GE(*least, 1u) << nodes << " nodes, " << files << " files";
            EXPECT_LE(*most - *least, 1u) << nodes << " nodes, " << files << " files";
        }
}

TEST(Groups, DoNotOverflowAtManyNodes) { EXPECT_EQ(group_of(3'999'999, 4'000'000, 2'000'000), 1'999'999u); }

TEST(Elect, MostLocalBytesLeadAndTiesGoToTheLowest) {
    const std::vector<NodeImages> nodes = {node_of(0, 0, {10, 10}), node_of(1, 2, {30}), node_of(2, 3, {15, 15}), node_of(3, 5, {29})};
    EXPECT_EQ(elect(nodes, {0, 1, 2, 3}), 1u);
    EXPECT_EQ(elect(nodes, {0, 2, 3}), 2u);
    EXPECT_EQ(elect(nodes, {2, 1}), 1u);  // whatever the order of the group
    EXPECT_EQ(elect(nodes, {0}), 0u);
}

TEST(Plan, HoldsEveryByteOnceInWholeBlocks) {
    std::mt19937_64 random(1);
    for (int round = 0; round < 2000; ++round) {
        const std::vector<NodeImages> nodes = random_nodes(random);
        std::uint32_t ranks = 0;
        for (const NodeImages& node : nodes) ranks += static_cast<std::uint32_t>(node.images.size());
        const auto files = static_cast<std::uint32_t>(1 + random() % ranks);
        const std::vector<PartPlan> plan = make_plan(nodes, files, block);

        ASSERT_EQ(plan.size(), files);
        std::map<Rank, std::map<std::uint64_t, std::uint64_t>> runs;  // rank: image offset, length
        for (std::uint32_t part = 0; part < files; ++part) {
            EXPECT_EQ(plan[part].part, part);
            bool leader_is_in = false;
            for (const NodeSources& node : plan[part].nodes) {
                leader_is_in |= node.node == plan[part].leader;
                for (const Source& source : node.sources) {
                    EXPECT_EQ(source.image_offset % block, 0u);
                    auto [at, fresh] = runs[source.rank].emplace(source.image_offset, source.length);
                    EXPECT_TRUE(fresh) << "rank " << source.rank << " twice at " << source.image_offset;
                }
            }
            EXPECT_TRUE(leader_is_in) << "the leader of part " << part << " has none of its data";
        }
        for (const NodeImages& node : nodes)
            for (const ImageInfo& image : node.images) {
                std::uint64_t covered = 0;
                for (const auto& [offset, length] : runs[image.rank]) {
                    EXPECT_EQ(offset, covered);
                    covered += length;
                }
                EXPECT_EQ(covered, image.bytes) << "rank " << image.rank;
                EXPECT_FALSE(runs[image.rank].empty()) << "rank " << image.rank << " has no place, " << image.bytes << " bytes";
            }
    }
}

TEST(Plan, MoreFilesThanNodesAreCutEvenlyByTheNodeThatHoldsTheData) {
    std::mt19937_64 random(2);
    for (int round = 0; round < 500; ++round) {
        const std::vector<NodeImages> nodes = random_nodes(random);
        const auto files = static_cast<std::uint32_t>(nodes.size() + random() % 12);
        std::map<NodeIndex, std::set<std::uint64_t>> sizes;
        if (files == nodes.size()) continue;
        for (const PartPlan& part : make_plan(nodes, files, block)) {
            ASSERT_EQ(part.nodes.size(), 1u);
            EXPECT_EQ(part.nodes[0].node, part.leader);
            sizes[part.leader].insert(blocks_of(part.nodes[0]));
        }
        EXPECT_EQ(sizes.size(), nodes.size());  // every node leads
        for (const auto& [node, blocks] : sizes) EXPECT_LE(*blocks.rbegin() - *blocks.begin(), 1u) << "node " << node;
    }
}

TEST(Chunks, AreWholeBlocksBetweenOneBlockAndABuffer) {
    constexpr std::uint64_t buffer = 64 * block;
    EXPECT_EQ(chunk_bytes(buffer, block, 0, 8), block);
    EXPECT_EQ(chunk_bytes(buffer, block, 32 * block, 8), block);           // 32 blocks through 8 writers, four rounds
    EXPECT_EQ(chunk_bytes(buffer, block, 320 * block, 8), 10 * block);
    EXPECT_EQ(chunk_bytes(buffer, block, 320 * block + 1, 8), 10 * block);
    EXPECT_EQ(chunk_bytes(buffer, block, 1ull << 50, 8), buffer);
    EXPECT_EQ(chunk_bytes(buffer + block / 2, block, 1ull << 50, 8), buffer);  // the part of a block at the end is not used
}

}  // namespace
}  // namespace cairn
