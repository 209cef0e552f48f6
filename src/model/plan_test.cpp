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

PlanOptions options_of(std::uint32_t files, std::uint32_t leaders) { return {files, leaders, false, false, block, {}, {}}; }

std::uint64_t blocks_of(const Share& share) {
    std::uint64_t sum = 0;
    for (const NodeSources& node : share.nodes) sum += blocks_of(node);
    return sum;
}

// Every byte of every image once, every rank with a place, ranges side by side and as long as what goes into them.
void expect_whole(const std::vector<PartPlan>& plan, const std::vector<NodeImages>& nodes) {
    std::map<Rank, std::map<std::uint64_t, std::uint64_t>> runs;  // rank: image offset, length
    for (std::uint32_t part = 0; part < plan.size(); ++part) {
        EXPECT_EQ(plan[part].part, part);
        ASSERT_FALSE(plan[part].shares.empty());
        std::uint64_t offset = 0;
        std::set<NodeIndex> leaders;
        for (const Share& share : plan[part].shares) {
            EXPECT_TRUE(leaders.insert(share.leader).second) << "leader " << share.leader << " twice in part " << part;
            EXPECT_EQ(share.offset, offset);
            EXPECT_EQ(share.bytes, blocks_of(share) * block);
            offset += share.bytes;
            for (const NodeSources& node : share.nodes)
                for (const Source& source : node.sources) {
                    EXPECT_EQ(source.image_offset % block, 0u);
                    auto [at, fresh] = runs[source.rank].emplace(source.image_offset, source.length);
                    EXPECT_TRUE(fresh) << "rank " << source.rank << " twice at " << source.image_offset;
                }
        }
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

TEST(Plan, HoldsEveryByteOnceInWholeBlocks) {
    std::mt19937_64 random(1);
    for (int round = 0; round < 4000; ++round) {
        std::vector<NodeImages> nodes = random_nodes(random);
        std::uint32_t ranks = 0;
        std::uint64_t blocks = 0;
        for (const NodeImages& node : nodes) ranks += static_cast<std::uint32_t>(node.images.size());
        for (const NodeImages& node : nodes) blocks += node_blocks(node, block);
        for (auto extra = random() % 4; extra > 2; --extra) nodes.push_back({static_cast<NodeIndex>(nodes.size()), {}});
        PlanOptions options = options_of(static_cast<std::uint32_t>(1 + random() % ranks), static_cast<std::uint32_t>(1 + random() % (nodes.size() + 2)));
        options.whole_parts = random() % 4 == 0;
        options.keep_own = random() % 3 == 0;
        if (random() % 3 == 0) {  // parts of any sizes
            options.part_blocks.assign(options.files, 0);
            for (std::uint64_t i = 0; i < blocks; ++i) ++options.part_blocks[random() % options.files];
        }
        const std::vector<PartPlan> plan = make_plan(nodes, options);
        ASSERT_EQ(plan.size(), options.files);
        expect_whole(plan, nodes);
        for (std::uint32_t part = 0; part < options.files; ++part) {
            if (options.whole_parts) { EXPECT_EQ(plan[part].shares.size(), 1u); }
            if (!options.part_blocks.empty()) { EXPECT_EQ(plan[part].range_bytes(), options.part_blocks[part] * block); }
        }
        if (HasFailure()) FAIL() << "in round " << round;
    }
}

TEST(Plan, LeadersWriteTheSameAndPartsHoldTheSame) {
    std::mt19937_64 random(2);
    for (int round = 0; round < 500; ++round) {
        std::vector<NodeImages> nodes;
        const auto count = static_cast<std::uint32_t>(1 + random() % 12);
        std::uint64_t blocks = 0;
        for (NodeIndex node = 0; node < count; ++node) {
            nodes.push_back(node_of(node, 2 * node, {(80 + random() % 40) * block, (80 + random() % 40) * block}));
            blocks += node_blocks(nodes.back(), block);
        }
        const auto files = static_cast<std::uint32_t>(1 + random() % (2 * count)), leaders = static_cast<std::uint32_t>(1 + random() % count);
        std::map<NodeIndex, std::uint64_t> written;
        for (const PartPlan& part : make_plan(nodes, options_of(files, leaders))) {
            EXPECT_NEAR(static_cast<double>(part.range_bytes() / block), static_cast<double>(blocks) / files, 1.0);
            for (const Share& share : part.shares) written[share.leader] += share.bytes / block;
        }
        EXPECT_EQ(written.size(), leaders);
        const double even = static_cast<double>(blocks) / leaders;
        for (const auto& [node, own] : written) EXPECT_NEAR(static_cast<double>(own), even, 2 * std::max(2.0, even / 64) + 1) << "node " << node;
    }
}

TEST(Plan, OfAsManyLeadersAsFilesIsThePapers) {
    // 4 nodes, 2 files: in each group of two the node with most bytes leads, the other one sends.
    const std::vector<NodeImages> nodes = {node_of(0, 0, {10 * block}), node_of(1, 1, {20 * block}), node_of(2, 2, {16 * block}), node_of(3, 3, {14 * block})};
    const std::vector<PartPlan> plan = make_plan(nodes, options_of(2, 2));
    ASSERT_EQ(plan.size(), 2u);
    for (const PartPlan& part : plan) ASSERT_EQ(part.shares.size(), 1u);
    EXPECT_EQ(plan[0].first_leader(), 1u);
    EXPECT_EQ(plan[1].first_leader(), 2u);
    EXPECT_EQ(plan[0].shares[0].nodes, (std::vector<NodeSources>{{0, {{0, 0, 10 * block}}}, {1, {{1, 0, 20 * block}}}}));
    EXPECT_EQ(plan[1].shares[0].nodes, (std::vector<NodeSources>{{2, {{2, 0, 16 * block}}}, {3, {{3, 0, 14 * block}}}}));
}

TEST(Plan, WhenEveryNodeLeadsNothingTravelsButTheUnevenness) {
    const std::vector<NodeImages> even = {node_of(0, 0, {8 * block}), node_of(1, 1, {8 * block}), node_of(2, 2, {8 * block}), node_of(3, 3, {8 * block})};
    for (std::uint32_t files : {1u, 2u, 4u})
        for (const PartPlan& part : make_plan(even, options_of(files, 4)))
            for (const Share& share : part.shares) {
                ASSERT_EQ(share.nodes.size(), 1u);
                EXPECT_EQ(share.nodes[0].node, share.leader);
                EXPECT_EQ(share.bytes, 8 * block);
            }
    const std::vector<NodeImages> uneven = {node_of(0, 0, {12 * block}), node_of(1, 1, {4 * block})};
    const std::vector<PartPlan> plan = make_plan(uneven, options_of(2, 2));
    EXPECT_EQ(plan[0].shares[0].nodes, (std::vector<NodeSources>{{0, {{0, 0, 8 * block}}}}));
    EXPECT_EQ(plan[1].shares[0].nodes, (std::vector<NodeSources>{{0, {{0, 8 * block, 4 * block}}}, {1, {{1, 0, 4 * block}}}}));
}

TEST(Plan, WhoKeepsItsOwnSendsNothingWhenEveryNodeLeads) {
    const std::vector<NodeImages> nodes = {node_of(0, 0, {120 * block}), node_of(1, 1, {40 * block, 7}), {2, {}}, node_of(3, 3, {90 * block})};
    for (std::uint32_t files : {1u, 2u, 3u, 4u}) {
        PlanOptions options = options_of(files, 3);
        options.keep_own = true;
        options.unfit = {2};
        const std::vector<PartPlan> plan = make_plan(nodes, options);
        expect_whole(plan, nodes);
        std::map<NodeIndex, std::uint64_t> written;
        for (const PartPlan& part : plan) {
            EXPECT_NEAR(static_cast<double>(part.range_bytes() / block), 251.0 / files, 1.0);  // parts hold the same all the same
            for (const Share& share : part.shares) {
                ASSERT_EQ(share.nodes.size(), 1u);
                EXPECT_EQ(share.nodes[0].node, share.leader);
                written[share.leader] += share.bytes / block;
            }
        }
        EXPECT_EQ(written, (std::map<NodeIndex, std::uint64_t>{{0, 120}, {1, 41}, {3, 90}}));
        options.leaders = 2;  // some must send: then all write the same
        EXPECT_NEAR(static_cast<double>(make_plan(nodes, options)[0].shares[0].bytes / block), files == 1 ? 125.5 : 251.0 / std::max(files, 2u), 3.0);
    }
}

TEST(Plan, UnfitNodesLeadOnlyWhenNobodyElseCan) {
    const std::vector<NodeImages> nodes = {node_of(0, 0, {9 * block}), node_of(1, 1, {5 * block})};
    PlanOptions options = options_of(1, 2);
    options.unfit = {0};
    ASSERT_EQ(make_plan(nodes, options)[0].shares.size(), 1u);
    EXPECT_EQ(make_plan(nodes, options)[0].first_leader(), 1u);
    expect_whole(make_plan(nodes, options), nodes);
    options.unfit = {0, 1};
    EXPECT_EQ(make_plan(nodes, options)[0].shares.size(), 2u);
}

TEST(Plan, DedicatedNodesLead) {
    const std::vector<NodeImages> nodes = {node_of(0, 0, {9 * block}), node_of(1, 1, {9 * block}), {2, {}}, {3, {}}};
    const std::vector<PartPlan> plan = make_plan(nodes, options_of(1, 4));
    ASSERT_EQ(plan.size(), 1u);
    ASSERT_EQ(plan[0].shares.size(), 2u);
    EXPECT_EQ(plan[0].shares[0].leader, 2u);
    EXPECT_EQ(plan[0].shares[1].leader, 3u);
    expect_whole(plan, nodes);
}

// A file for each rank, or node: each has what it is named after, and is written by who holds it.
TEST(Plan, OfFilesOfRanksOrNodesIsTheirs) {
    const std::vector<NodeImages> nodes = {node_of(0, 0, {9 * block, 0}), {1, {}}, node_of(2, 2, {5 * block + 1}), node_of(3, 3, {7, 7})};
    for (const FileLayout layout : {FileLayout::ranks, FileLayout::nodes}) {
        PlanOptions options = options_of(layout == FileLayout::ranks ? 5 : 3, 1);
        options.layout = layout;
        options.unfit = {1};
        const std::vector<PartPlan> plan = make_plan(nodes, options);
        expect_whole(plan, nodes);
        const std::vector<NodeIndex> owners = layout == FileLayout::ranks ? std::vector<NodeIndex>{0, 0, 2, 3, 3} : std::vector<NodeIndex>{0, 2, 3};
        ASSERT_EQ(plan.size(), owners.size());
        for (std::size_t part = 0; part < plan.size(); ++part) {
            EXPECT_EQ(owner_of(plan[part]), owners[part]);
            EXPECT_EQ(plan[part].first_leader(), owners[part]);
            ASSERT_EQ(plan[part].shares.size(), 1u);
            ASSERT_EQ(plan[part].shares[0].nodes.size(), 1u);
            if (layout == FileLayout::nodes) continue;
            ASSERT_EQ(plan[part].shares[0].nodes[0].sources.size(), 1u);
            EXPECT_EQ(plan[part].shares[0].nodes[0].sources[0].rank, part);
        }
        options.unfit = {};  // a dedicated node writes for all, and each file is still its owner's
        EXPECT_EQ(make_plan(nodes, options).back().first_leader(), 1u);
        EXPECT_EQ(owner_of(make_plan(nodes, options).back()), 3u);
        options.unfit = {1, 2};  // who can not lead is led for
        EXPECT_NE(make_plan(nodes, options)[layout == FileLayout::ranks ? 2 : 1].first_leader(), 2u);
    }
}

// Where ranks go round the nodes a file still has its rank's number.
TEST(Plan, OfFilesOfRanksIsByRank) {
    const std::vector<NodeImages> nodes = {{0, {{0, block, {}}, {2, 3 * block, {}}}}, {1, {{1, 2 * block, {}}, {3, block, {}}}}};
    PlanOptions options = options_of(4, 1);
    options.layout = FileLayout::ranks;
    const std::vector<PartPlan> plan = make_plan(nodes, options);
    expect_whole(plan, nodes);
    for (Rank rank = 0; rank < 4; ++rank) {
        EXPECT_EQ(plan[rank].shares[0].nodes[0].sources, (std::vector<Source>{{rank, 0, nodes[rank % 2].images[rank / 2].bytes}}));
        EXPECT_EQ(owner_of(plan[rank]), rank % 2);
    }
}

// Of whatever nodes, and as many files as there can be.
TEST(Plan, SafetensorsFilesHaveWholeImagesAndTheNodeWithMostOfThemLeads) {
    std::mt19937_64 random(11);
    for (int round = 0; round < 300; ++round) {
        const std::vector<NodeImages> nodes = random_nodes(random);
        std::size_t ranks = 0;
        for (const NodeImages& node : nodes) ranks += node.images.size();
        PlanOptions options = options_of(static_cast<std::uint32_t>(1 + random() % ranks), 1);
        options.layout = FileLayout::tensors;
        const std::vector<PartPlan> plan = make_plan(nodes, options);
        expect_whole(plan, nodes);
        for (const PartPlan& part : plan) {
            ASSERT_EQ(part.shares.size(), 1u);
            std::uint64_t most = 0, of_leader = 0;
            std::size_t images = 0;
            for (const NodeSources& node : part.shares[0].nodes) {
                std::uint64_t bytes = 0;
                for (const Source& source : node.sources) {
                    const auto image = std::find_if(nodes[node.node].images.begin(), nodes[node.node].images.end(), [&](const ImageInfo& each) { return each.rank == source.rank; });
                    EXPECT_EQ(source, (Source{image->rank, 0, image->bytes}));
                    bytes += source.length;
                    ++images;
                }
                most = std::max(most, bytes);
                if (node.node == part.shares[0].leader) of_leader = bytes;
            }
            EXPECT_GT(images, 0u);
            EXPECT_EQ(of_leader, most);
        }
    }
}

TEST(Plan, SafetensorsFilesAreAsEvenAsImagesAllow) {
    const std::vector<NodeImages> nodes = {node_of(0, 0, {4 * block, 4 * block, 4 * block}), node_of(1, 3, {4 * block, 8 * block})};
    PlanOptions options = options_of(3, 1);
    options.layout = FileLayout::tensors;
    const std::vector<PartPlan> plan = make_plan(nodes, options);
    EXPECT_EQ(plan[0].shares[0].nodes, (std::vector<NodeSources>{{0, {{0, 0, 4 * block}, {1, 0, 4 * block}}}}));
    EXPECT_EQ(plan[1].shares[0].nodes, (std::vector<NodeSources>{{0, {{2, 0, 4 * block}}}, {1, {{3, 0, 4 * block}}}}));
    EXPECT_EQ(plan[2].shares[0].nodes, (std::vector<NodeSources>{{1, {{4, 0, 8 * block}}}}));
}

// An I/O node that does not answer is never waited for, whatever becomes of the others.
TEST(Plan, UnfitDedicatedNodesNeverLead) {
    const std::vector<NodeImages> nodes = {node_of(0, 0, {9 * block}), node_of(1, 1, {9 * block}), {2, {}}, {3, {}}};
    PlanOptions options = options_of(1, 4);
    options.unfit = {2};
    EXPECT_EQ(leaders_max(nodes, options.unfit), 1u);
    ASSERT_EQ(make_plan(nodes, options)[0].shares.size(), 1u);
    EXPECT_EQ(make_plan(nodes, options)[0].shares[0].leader, 3u);
    for (const std::vector<NodeIndex>& unfit : {std::vector<NodeIndex>{2, 3}, {2, 3, 0, 1}}) {
        options.unfit = unfit;
        EXPECT_EQ(leaders_max(nodes, options.unfit), 2u);
        ASSERT_EQ(make_plan(nodes, options)[0].shares.size(), 2u);
        EXPECT_EQ(make_plan(nodes, options)[0].shares[0].leader, 0u);
        EXPECT_EQ(make_plan(nodes, options)[0].shares[1].leader, 1u);
        expect_whole(make_plan(nodes, options), nodes);
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
