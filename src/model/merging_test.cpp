// Merging: whatever the sizes are, every byte is in one run, no run is longer than it may be, and each piece begins on a block.
#include "model/merging.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace cairn {
namespace {

constexpr std::uint64_t merge_block = 4096;
constexpr SpacePolicy merge_space{merge_block, 8 * merge_block};

NodeSources node_of(std::vector<std::uint64_t> lengths) {
    NodeSources node{3, {}};
    for (Rank rank = 0; rank < lengths.size(); ++rank) node.sources.push_back({rank, rank * merge_block, lengths[rank]});
    return node;
}

std::vector<std::size_t> sizes_of(const std::vector<Pack>& groups) {
    std::vector<std::size_t> sizes;
    for (const Pack& group : groups) sizes.push_back(group.size());
    return sizes;
}

TEST(Merging, WhatIsAskedForIsMadeToFitARun) {
    constexpr std::uint64_t mib = 1 << 20;
    EXPECT_EQ(fitting(4, 64 << 10, 4 * mib, merge_block), (MergePolicy{4, 64 << 10, 4 * mib}));
    EXPECT_EQ(fitting(4, 5000, 4 * mib, merge_block), (MergePolicy{4, 2 * merge_block, 4 * mib})) << "whole blocks";
    EXPECT_EQ(fitting(4, 64 << 10, 4 * mib, mib), (MergePolicy{4, mib, 4 * mib})) << "one of the default's";
    EXPECT_EQ(fitting(16, 64 << 10, 4 * mib, mib), (MergePolicy{4, mib, 4 * mib})) << "of which no more fit";
    EXPECT_EQ(fitting(16, 100 * mib, 4 * mib, merge_block), (MergePolicy{16, mib / 4, 4 * mib})) << "all that fits in a run is as much as each can give";
    EXPECT_EQ(fitting(1000, 1, 4 * mib, merge_block).ranks, merge_ranks_most);
    EXPECT_EQ(fitting(4, UINT64_MAX, UINT64_MAX / 2, merge_block).ranks, 4u);
    for (const MergePolicy& none : {fitting(1, 64 << 10, 4 * mib, merge_block), fitting(0, 1, 4 * mib, merge_block), fitting(4, 1, mib, mib), fitting(4, 1, 0, merge_block)}) EXPECT_EQ(none, MergePolicy());
}

TEST(Merging, LongImagesAreGroupedAndShortOnesAreNot) {
    NodeSources node = node_of({100, 4 * merge_block, 5 * merge_block, 0, 6 * merge_block, 7 * merge_block, 8 * merge_block});
    const std::vector<Pack> groups = take_merged(node, merge_space, {3, merge_block, 8 * merge_block});
    ASSERT_EQ(sizes_of(groups), (std::vector<std::size_t>{3, 2})) << "and none is of one";
    EXPECT_EQ(groups[0].front(), (NodeSource{3, {1, merge_block, 4 * merge_block}}));
    EXPECT_EQ(groups[1].front().source.rank, 5u);
    EXPECT_EQ(node.sources, (std::vector<Source>{{0, 0, 100}, {3, 3 * merge_block, 0}})) << "those are for a pack, or for none";
    NodeSources odd = node_of({4 * merge_block, 4 * merge_block, 4 * merge_block}), one = node_of({4 * merge_block}), as_ever = node_of({4 * merge_block, 4 * merge_block});
    EXPECT_EQ(sizes_of(take_merged(odd, merge_space, {2, merge_block, 8 * merge_block})), (std::vector<std::size_t>{2}));
    EXPECT_EQ(odd.sources, (std::vector<Source>{{2, 2 * merge_block, 4 * merge_block}}));
    EXPECT_TRUE(take_merged(one, merge_space, {2, merge_block, 8 * merge_block}).empty());
    EXPECT_TRUE(take_merged(as_ever, merge_space, {}).empty());
    EXPECT_TRUE(take_merged(as_ever, {merge_block, 0}, {2, merge_block, 8 * merge_block}).empty()) << "where nothing is packed";
    EXPECT_EQ(as_ever, node_of({4 * merge_block, 4 * merge_block}));
}

TEST(Merging, ImagesGiveByTurns) {
    const MergePolicy policy{2, 2 * merge_block, 8 * merge_block};
    Pack group = {{3, {0, 0, 7 * merge_block}}, {3, {1, merge_block, 5 * merge_block + 10}}};
    const Pack first = cut_run(group, policy, UINT64_MAX);
    EXPECT_EQ(first, (Pack{{3, {0, 0, 2 * merge_block}}, {3, {1, merge_block, 2 * merge_block}}, {3, {0, 2 * merge_block, 2 * merge_block}}, {3, {1, 3 * merge_block, 2 * merge_block}}}));
    Pack same = group;
    EXPECT_EQ(cut_run(group, policy, UINT64_MAX), (Pack{{3, {0, 4 * merge_block, 2 * merge_block}}, {3, {1, 5 * merge_block, merge_block + 10}}, {3, {0, 6 * merge_block, merge_block}}})) << "and its short end";
    EXPECT_TRUE(group.empty());
    EXPECT_EQ(bytes_of(cut_run(same, policy, 1)), 3 * merge_block + 10) << "one round is the least";
    EXPECT_EQ(same, (Pack{{3, {0, 6 * merge_block, merge_block}}})) << "alone";
}

TEST(Merging, WhatIsGivenIsWholeTurnsOffTheEnd) {
    const MergePolicy policy{2, 2 * merge_block, 8 * merge_block};
    const Pack whole = {{3, {0, 0, 7 * merge_block}}, {3, {1, merge_block, 5 * merge_block + 10}}};
    Pack stays = whole;
    EXPECT_TRUE(split_end(stays, policy, 0, merge_block).empty());
    EXPECT_EQ(stays, whole);
    EXPECT_EQ(split_end(stays, policy, 2, merge_block), (Pack{{3, {0, 6 * merge_block, merge_block}}})) << "a round more would be five";
    stays = whole;
    EXPECT_EQ(split_end(stays, policy, 5, merge_block), (Pack{{3, {0, 4 * merge_block, 3 * merge_block}}, {3, {1, 5 * merge_block, merge_block + 10}}}));
    EXPECT_EQ(stays, (Pack{{3, {0, 0, 4 * merge_block}}, {3, {1, merge_block, 4 * merge_block}}}));
    EXPECT_EQ(split_end(stays, policy, 1000, merge_block), (Pack{{3, {0, 0, 4 * merge_block}}, {3, {1, merge_block, 4 * merge_block}}}));
    EXPECT_TRUE(stays.empty());
    stays = {{3, {0, 0, 4 * merge_block + 10}}, {3, {1, 0, 4 * merge_block + 20}}};
    EXPECT_TRUE(split_end(stays, policy, 1, merge_block).empty()) << "each of the two ends takes a block";
    EXPECT_EQ(split_end(stays, policy, 2, merge_block), (Pack{{3, {0, 4 * merge_block, 10}}, {3, {1, 4 * merge_block, 20}}}));
}

// Runs off the front and work off the end, in any order: each byte in one place.
TEST(Merging, WhateverTheSizesAreEveryByteIsInOneRun) {
    std::mt19937_64 random(5);
    for (int round = 0; round < 2000; ++round) {
        const std::uint64_t block = merge_block << random() % 3, run_bytes = block * (1 + random() % 32);
        const MergePolicy policy = fitting(static_cast<std::uint32_t>(1 + random() % 9), 1 + random() % (4 * block), run_bytes, block);
        NodeSources node{1, {}};
        std::uint64_t bytes = 0;
        std::map<std::pair<Rank, std::uint64_t>, std::uint64_t> taken;  // of which rank, from where: until where
        for (Rank rank = 0, count = static_cast<Rank>(random() % 12); rank < count; ++rank) {
            node.sources.push_back({rank, block * (random() % 5), random() % (random() % 2 == 0 ? 40 * block : 300 * block)});
            bytes += node.sources.back().length;
        }
        const auto take = [&](const Source& source) {
            EXPECT_EQ(source.image_offset % block, 0u);
            EXPECT_GT(source.length, 0u);
            EXPECT_TRUE(taken.emplace(std::pair(source.rank, source.image_offset), source.image_offset + source.length).second);
        };
        const NodeSources whole = node;
        for (Pack group : take_merged(node, {block, run_bytes}, policy)) {
            EXPECT_GE(group.size(), 2u);
            EXPECT_LE(group.size(), policy.ranks);
            while (!group.empty()) {
                if (group.size() == 1) take(group.front().source), group.clear();
                else if (random() % 4 == 0) {
                    const std::uint64_t before = bytes_of(group), blocks = random() % 50;
                    const Pack given = split_end(group, policy, blocks, block);
                    EXPECT_EQ(bytes_of(given) + bytes_of(group), before);
                    std::uint64_t blocks_given = 0;
                    for (const NodeSource& each : given) {
                        blocks_given += div_up(each.source.length, block);
                        take(each.source);
                    }
                    EXPECT_LE(blocks_given, blocks);
                } else {
                    const std::uint64_t most = random() % (2 * run_bytes), round_most = policy.turn_bytes * group.size();
                    Pack again = group;
                    const Pack run = cut_run(group, policy, most);
                    EXPECT_EQ(run, cut_run(again, policy, most));
                    EXPECT_LE(bytes_of(run), std::max(round_most, std::min(most, run_bytes)));
                    EXPECT_LE(bytes_of(run), run_bytes);
                    EXPECT_GE(run.size(), 2u);
                    for (const NodeSource& each : run) take(each.source);
                }
            }
        }
        for (const Source& source : node.sources)
            if (source.length > 0) take(source);
        std::uint64_t sum = 0;
        for (const Source& source : whole.sources) {
            std::uint64_t at = source.image_offset;
            for (auto piece = taken.find({source.rank, at}); piece != taken.end() && at < source.image_offset + source.length; piece = taken.find({source.rank, at})) {
                sum += piece->second - at;
                at = piece->second;
            }
            ASSERT_EQ(at, source.image_offset + source.length) << "round " << round;
        }
        ASSERT_EQ(sum, bytes) << "round " << round;
    }
}

// Of fewer images where a run is shorter here: a footer's room is counted by the turns that were chosen.
TEST(Merging, TurnsThatWereChosenElsewhereAreNotMadeShorter) {
    constexpr std::uint64_t mib = 1 << 20;
    EXPECT_EQ(as_chosen(16, mib / 4, 4 * mib, merge_block), (MergePolicy{16, mib / 4, 4 * mib}));
    EXPECT_EQ(as_chosen(16, mib / 4, mib, merge_block), (MergePolicy{4, mib / 4, mib}));
    EXPECT_EQ(as_chosen(16, mib / 4 + 1, mib, mib / 4), (MergePolicy{2, mib / 2, mib})) << "whole blocks";
    EXPECT_EQ(as_chosen(UINT32_MAX, merge_block, 4 * mib, merge_block).ranks, merge_ranks_most);
    for (const MergePolicy& none : {as_chosen(16, mib, mib, merge_block), as_chosen(16, 0, mib, merge_block), as_chosen(1, merge_block, mib, merge_block), as_chosen(16, 1ull << 60, mib, merge_block)})
        EXPECT_EQ(none, MergePolicy());
}

// Versions whose trials are told with the next one, as short ones' are.
struct Merger {
    double apart_by_merged = 1, raw_bytes = 3e6;
    MergeChoice choice = {};
    MergeTried told = {};
    int trials = 0;

    void version() {
        const bool is_tried = choice.tries();
        MergeTried now = told;
        now.is_asked = is_tried;
        told = {};
        if (is_tried) told.apart_bytes = 1e6 * apart_by_merged, told.merged_bytes = 1e6, told.raw_bytes = raw_bytes;
        trials += is_tried;
        choice.record(now);
    }
    // Until the choice changes, at most so many; how many.
    int versions_until(bool merges, int most) {
        int count = 0;
        for (; choice.merges() != merges && count < most; ++count) version();
        return count;
    }
};

TEST(MergeChoice, TwoTrialsThatAgreeDecide) {
    Merger merger;
    EXPECT_FALSE(merger.choice.merges());
    EXPECT_TRUE(merger.choice.tries());
    merger.apart_by_merged = 1.12;
    EXPECT_EQ(merger.versions_until(true, 100), 3) << "the first trial is told with the second version";
    EXPECT_NEAR(merger.choice.shorter(), 1.12, 0.001);
}

TEST(MergeChoice, LessThanATenthIsNotWorthIt) {
    for (const double gain : {0.5, 1.0, 1.1}) {
        Merger merger;
        merger.apart_by_merged = gain;
        EXPECT_EQ(merger.versions_until(true, 100), 100) << gain;
    }
}

// Gas at rest: a hundredth is stored of it, merged or not, and who restores one rank would decode all of them for that.
TEST(MergeChoice, WhereHardlyAnythingIsStoredThereIsNothingToSave) {
    Merger merger;
    merger.apart_by_merged = 3;
    merger.raw_bytes = 300e6;
    EXPECT_EQ(merger.versions_until(true, 100), 100);
    merger.raw_bytes = 150e6;
    EXPECT_LE(merger.versions_until(true, 100), 20);
}

TEST(MergeChoice, OneTrialThatSaysOtherwiseChangesNothing) {
    Merger merger;
    for (int i = 0; i < 200; ++i) {
        merger.apart_by_merged = i % 2 == 0 ? 3 : 1;
        if (merger.choice.tries()) merger.choice.record({true, merger.trials++ % 2 == 0 ? 3e6 : 1e6, 1e6, 4e6});
        else merger.choice.record({});
        EXPECT_FALSE(merger.choice.merges());
    }
}

TEST(MergeChoice, TrialsAreRareOnceTheyAgree) {
    for (const double gain : {1.0, 4.0}) {
        Merger merger;
        merger.apart_by_merged = gain;
        for (int i = 0; i < 100; ++i) merger.version();
        merger.trials = 0;
        for (int i = 0; i < 160; ++i) merger.version();
        EXPECT_EQ(merger.trials, 10) << gain;
    }
}

TEST(MergeChoice, ItIsGivenUpWhereItIsWorthLessThanATwentieth) {
    Merger merger;
    merger.apart_by_merged = 4;
    for (int i = 0; i < 100; ++i) merger.version();
    ASSERT_TRUE(merger.choice.merges());
    merger.apart_by_merged = 1.07;
    EXPECT_EQ(merger.versions_until(false, 100), 100) << "what is merged stays so while it is worth half of what it had to promise";
    merger.apart_by_merged = 1.03;
    EXPECT_LE(merger.versions_until(false, 100), 20);
    merger.apart_by_merged = 4;
    EXPECT_LE(merger.versions_until(true, 100), 20);
}

// Small images, one image a node, no core that is idle: nothing is told, and it is asked for again.
TEST(MergeChoice, WithoutAWordOfTrialsNothingIsMerged) {
    MergeChoice choice;
    for (int i = 0; i < 40; ++i) {
        EXPECT_TRUE(choice.tries());
        choice.record({true});
        EXPECT_FALSE(choice.merges());
    }
}

}  // namespace
}  // namespace cairn
