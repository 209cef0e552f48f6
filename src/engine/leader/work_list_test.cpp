// Work lists by themselves: what each policy makes of a share, in which order it is taken, and what goes from the end.
#include "engine/leader/work_list.hpp"

#include <gtest/gtest.h>

#include <map>

#include "base/units.hpp"

namespace cairn::engine {
namespace {

constexpr std::uint64_t block = 4096;

// Node 0 leads: rank 0 has five blocks and a bit here, ranks 1 and 2 lie on node 1, rank 3 on node 2.
Share share_of_three() {
    Share share;
    share.nodes = {{0, {{0, 0, 5 * block + 100}}}, {1, {{1, 0, 2 * block}, {2, block, 3 * block}}}, {2, {{3, 0, 4 * block}}}};
    return share;
}

WorkList list_of(Placement placement, LocalSplit split = LocalSplit::chunks, std::uint32_t writers = 2) {
    return {share_of_three(), 0, {placement, split, writers, block, 2 * block}};
}

std::uint64_t length_of(const std::vector<Piece>& pieces) {
    std::uint64_t sum = 0;
    for (const Piece& piece : pieces) sum += piece.source.length;
    return sum;
}

TEST(WorkList, HoldsEveryByteOfTheShareOnce) {
    for (const Placement placement : {Placement::append, Placement::interleaved, Placement::contiguous}) {
        WorkList list = list_of(placement);
        EXPECT_EQ(list.unstarted_bytes(), 14 * block + 100);
        std::map<Rank, std::uint64_t> next = {{0, 0}, {1, 0}, {2, block}, {3, 0}};  // within an image pieces come in order
        while (auto piece = list.take_local(0, block)) {
            EXPECT_EQ(piece->source.image_offset, std::exchange(next[piece->source.rank], piece->source.image_offset + piece->source.length));
            EXPECT_LE(piece->source.length, block);
        }
        while (auto remote = list.take_remote(3 * block)) {
            const Source& source = remote->piece.source;
            EXPECT_EQ(source.image_offset, std::exchange(next[source.rank], source.image_offset + source.length));
            EXPECT_LE(source.length, placement == Placement::append ? 3 * block : 2 * block);  // else no longer than a chunk
        }
        EXPECT_EQ(next, (std::map<Rank, std::uint64_t>{{0, 5 * block + 100}, {1, 2 * block}, {2, 4 * block}, {3, 4 * block}}));
        EXPECT_FALSE(list.has_local() || list.has_remote());
    }
}

TEST(WorkList, FollowersTakeTurns) {
    WorkList list = list_of(Placement::append);
    std::vector<NodeIndex> nodes;
    while (auto remote = list.take_remote(block)) nodes.push_back(remote->piece.node);
    EXPECT_EQ(nodes, (std::vector<NodeIndex>{1, 2, 1, 2, 1, 2, 1, 2, 1}));
}

TEST(WorkList, APieceThatIsCutGoesOnWhereItWas) {
    WorkList list = list_of(Placement::append);
    EXPECT_EQ(list.take_local(0, 2 * block)->source.image_offset, 0u);
    const auto second = list.take_local(1, 2 * block);
    EXPECT_EQ(second->source, (Source{0, 2 * block, 2 * block}));
    const auto last = list.take_local(0, 2 * block);
    EXPECT_EQ(last->source, (Source{0, 4 * block, block + 100}));
}

TEST(WorkList, ImagesAreDealtOutWholeAndTheLargestFirst) {
    Share share;
    share.nodes = {{0, {{0, 0, block}, {1, 0, 3 * block}, {2, 0, 2 * block}}}};
    WorkList list(share, 0, {Placement::append, LocalSplit::files, 2, block, 8 * block});
    EXPECT_EQ(list.take_local(1, 8 * block)->source.rank, 2u);
    EXPECT_FALSE(list.take_local(1, 8 * block));  // what is left is the other writer's
    EXPECT_EQ(list.take_local(0, 8 * block)->source.rank, 0u);
    EXPECT_EQ(list.take_local(0, 8 * block)->source.rank, 1u);
}

TEST(WorkList, ContiguousKeepsReceivedDataByRegionsOfEqualLength) {
    WorkList list = list_of(Placement::contiguous, LocalSplit::chunks, 3);
    std::map<std::uint32_t, std::uint64_t> bytes;
    std::uint64_t last_of_region[3] = {0, 0, 0};
    while (auto remote = list.take_remote(2 * block)) {
        EXPECT_GE(remote->piece.position, last_of_region[remote->queue]);
        last_of_region[remote->queue] = remote->piece.position;
        bytes[remote->queue] += remote->piece.source.length;
    }
    EXPECT_EQ(bytes.size(), 3u);
    for (const auto& [region, sum] : bytes) EXPECT_LE(sum, 4 * block) << region;
}

TEST(WorkList, GivesFromTheEndAndKeepsTheFront) {
    WorkList list = list_of(Placement::append);
    std::uint64_t blocks = 3;
    const std::vector<Piece> given = list.give_local(blocks);
    EXPECT_EQ(blocks, 0u);
    ASSERT_EQ(given.size(), 1u);
    EXPECT_EQ(given[0].source, (Source{0, 3 * block, 2 * block + 100}));  // three blocks, the last of them short
    EXPECT_EQ(list.take_local(0, 100 * block)->source, (Source{0, 0, 3 * block}));
    EXPECT_FALSE(list.has_local());
}

TEST(WorkList, GivesWhatLiesOnTheTakersNodeWhenAskedFor) {
    WorkList list = list_of(Placement::append);
    std::uint64_t blocks = 6;
    const std::vector<Piece> given = list.give_remote(NodeIndex(2), blocks);
    EXPECT_EQ(length_of(given), 4 * block);
    for (const Piece& piece : given) EXPECT_EQ(piece.node, 2u);
    EXPECT_EQ(blocks, 2u);
    EXPECT_EQ(length_of(list.give_remote(std::nullopt, blocks)), 2 * block);
    EXPECT_EQ(blocks, 0u);
    EXPECT_EQ(list.unstarted_bytes(), 8 * block + 100);
}

TEST(WorkList, WhatWasTakenOverComesBehindItsOwn) {
    WorkList list = list_of(Placement::append);
    list.add({{0, {{7, 0, block}}}, {2, {{8, 0, block}}}}, 1);
    std::vector<Rank> ranks;
    while (auto piece = list.take_local(0, 100 * block)) ranks.push_back(piece->source.rank);
    EXPECT_EQ(ranks, (std::vector<Rank>{0, 7}));
    std::vector<Rank> remote;
    std::uint32_t last_range = 0;
    while (auto next = list.take_remote(100 * block)) {
        remote.push_back(next->piece.source.rank);
        last_range = next->piece.range;
    }
    EXPECT_EQ(remote, (std::vector<Rank>{1, 3, 2, 8}));
    EXPECT_EQ(last_range, 1u);
}

TEST(WorkList, FixedPlacementsKnowTheirPlaceInWholeBlocks) {
    WorkList list = list_of(Placement::interleaved);
    EXPECT_EQ(list.take_local(0, 2 * block)->position, 0u);
    EXPECT_EQ(list.take_local(1, 2 * block)->position, 2 * block);
    EXPECT_EQ(list.local_end(), 6 * block);  // whatever was taken
}

// Small images of several nodes, the leader's own among them.
TEST(WorkList, SmallImagesArePackedAndChangeHandsWhole) {
    Share share;
    for (NodeIndex node = 0; node < 8; ++node) share.nodes.push_back({node, {{node, 0, 1000}}});
    share.nodes.push_back({8, {{8, 0, 5 * block}}});
    const WorkPolicy policy{Placement::append, LocalSplit::chunks, 2, block, 2 * block, block};
    WorkList list(share, 0, policy);
    EXPECT_EQ(list.unstarted_bytes(), 8000 + 5 * block);
    EXPECT_FALSE(list.has_local()) << "those of this node are gathered with the others";
    std::uint64_t blocks = 100;
    EXPECT_EQ(length_of(list.give_remote(NodeIndex(4), blocks)), 0u) << "a pack is no node's";
    EXPECT_EQ(length_of(list.give_remote(NodeIndex(8), blocks)), 5 * block);
    WorkList rest = list;
    const std::vector<Piece> given = rest.give_remote(std::nullopt, blocks);
    ASSERT_EQ(given.size(), 1u);
    ASSERT_EQ(given[0].packed.size(), 4u);
    EXPECT_EQ(given[0].packed.front().source.rank, 4u);
    const std::vector<Piece> own = rest.give_local(blocks);
    ASSERT_EQ(own.size(), 1u) << "with an image of this node it is no remote data";
    EXPECT_EQ(own[0].packed.front().source.rank, 0u);
    EXPECT_EQ(rest.unstarted_bytes(), 0u);
    std::vector<Rank> ranks;
    while (auto next = list.take_remote(block))
        if (!next->piece.packed.empty())
            for (const NodeSource& each : next->piece.packed) ranks.push_back(each.source.rank);
    EXPECT_EQ(ranks, (std::vector<Rank>{0, 1, 2, 3, 4, 5, 6, 7}));
}

// Four images of the leader's node and three of another, all too long for a pack.
WorkList merging_list(bool own_only) {
    Share share;
    share.nodes = {{0, {{0, 0, 9 * block}, {1, 0, 5 * block + 7}, {2, block, 5 * block}, {3, 0, 5 * block}}}, {1, {{4, 0, 5 * block}, {5, 0, 5 * block}, {6, 0, 100}}}};
    WorkPolicy policy{Placement::append, LocalSplit::chunks, 2, block, 4 * block, 4 * block};
    policy.merge = {4, block, 4 * block};
    policy.merges_own_only = own_only;
    return {share, 0, policy};
}

std::vector<Source> sources_of(const Piece& piece) {
    std::vector<Source> sources;
    for (const NodeSource& each : piece.packed) sources.push_back(each.source);
    if (piece.packed.empty()) sources.push_back(piece.source);
    return sources;
}

TEST(WorkList, ImagesOfOneNodeShareRuns) {
    WorkList list = merging_list(false);
    EXPECT_EQ(list.unstarted_bytes(), 34 * block + 107);
    EXPECT_FALSE(list.has_local());
    std::map<NodeIndex, std::vector<std::vector<Source>>> runs;
    while (auto next = list.take_remote(8 * block)) {
        EXPECT_FALSE(next->piece.merged) << "what is taken is a run";
        EXPECT_LE(next->piece.bytes(), 4 * block);
        runs[next->piece.node].push_back(sources_of(next->piece));
    }
    ASSERT_EQ(runs[0].size(), 6u);
    EXPECT_EQ(runs[0].front(), (std::vector<Source>{{0, 0, block}, {1, 0, block}, {2, block, block}, {3, 0, block}}));
    EXPECT_EQ(runs[1][0], (std::vector<Source>{{4, 0, block}, {5, 0, block}, {4, block, block}, {5, block, block}}));
    EXPECT_EQ(runs[1].back(), (std::vector<Source>{{6, 0, 100}})) << "too short, and no other is";
    const auto alone = list.take_local(1, 100 * block);
    ASSERT_TRUE(alone) << "what the longest has beyond the others";
    EXPECT_EQ(alone->source, (Source{0, 6 * block, 3 * block}));
    EXPECT_FALSE(list.has_local() || list.has_remote());
}

TEST(WorkList, WhatIsEncodedWhereItLiesIsNotMerged) {
    WorkList list = merging_list(true);
    std::vector<Piece> of_other;
    while (auto next = list.take_remote(100 * block))
        if (next->piece.node == 1) of_other.push_back(next->piece);
    ASSERT_EQ(of_other.size(), 3u);
    EXPECT_EQ(of_other[1].source, (Source{5, 0, 5 * block}));
}

TEST(WorkList, OfImagesThatShareRunsTheEndChangesHands) {
    WorkList list = merging_list(false);
    std::uint64_t blocks = 3;
    EXPECT_TRUE(list.give_remote(NodeIndex(2), blocks).empty());
    const std::vector<Piece> remote = list.give_remote(NodeIndex(1), blocks);
    EXPECT_EQ(blocks, 0u);
    ASSERT_EQ(remote.size(), 2u);
    EXPECT_EQ(sources_of(remote[0]), (std::vector<Source>{{6, 0, 100}}));
    EXPECT_TRUE(remote[1].merged);
    EXPECT_EQ(sources_of(remote[1]), (std::vector<Source>{{4, 4 * block, block}, {5, 4 * block, block}}));
    blocks = 5;
    const std::vector<Piece> own = list.give_local(blocks);
    ASSERT_EQ(own.size(), 1u);
    EXPECT_EQ(sources_of(own[0]), (std::vector<Source>{{0, 5 * block, 4 * block}, {1, 5 * block, 7}}));
    EXPECT_EQ(blocks, 0u);
    std::uint64_t bytes = 0;
    for (const Piece& piece : own) bytes += piece.bytes();
    for (const Piece& piece : remote) bytes += piece.bytes();
    EXPECT_EQ(list.unstarted_bytes() + bytes, 34 * block + 107);
}

TEST(WorkList, OfWhatStaysOneImageMayBeAlone) {
    Share share;
    share.nodes = {{0, {{0, 0, 9 * block}, {1, 0, 2 * block}}}};
    WorkPolicy policy{Placement::append, LocalSplit::chunks, 2, block, 4 * block, 4 * block};
    policy.merge = {2, block, 4 * block};
    WorkList list(share, 0, policy);
    list.add({{0, {{7, 0, 2 * block}, {8, 0, 2 * block}}}}, 1);
    EXPECT_TRUE(list.has_remote());
    const auto first = list.take_remote(1);
    EXPECT_EQ(sources_of(first->piece), (std::vector<Source>{{0, 0, block}, {1, 0, block}}));
    EXPECT_EQ(sources_of(list.take_remote(1)->piece), (std::vector<Source>{{0, block, block}, {1, block, block}}));
    const auto local = list.take_local(0, 100 * block);
    ASSERT_TRUE(local);
    EXPECT_EQ(local->source, (Source{0, 2 * block, 7 * block}));
    const auto added = list.take_remote(1);
    EXPECT_EQ(sources_of(added->piece), (std::vector<Source>{{7, 0, block}, {8, 0, block}}));
    EXPECT_EQ(added->piece.range, 1u);
}

}  // namespace
}  // namespace cairn::engine
