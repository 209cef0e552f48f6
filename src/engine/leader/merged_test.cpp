// A leader whose own images share runs: each byte in its place, in the order of the turns, and what it gives away of them is as much as it says.
#include <set>

#include "engine/leader/leader_testing.hpp"

namespace cairn::engine {
namespace {

using testing::Alone;
using testing::role_block;
using testing::RoleOptions;

// Ranks 1, 4 and 5 lie on node 1, which leads; each as long as LeaderAlone's image, but the last one.
struct MergedTest : testing::LeaderAlone {
    static constexpr std::uint64_t short_bytes = 20 * role_block, all_bytes = 2 * image_bytes + short_bytes;
    static std::uint64_t bytes_of_rank(Rank rank) { return rank == 5 ? short_bytes : image_bytes; }

    static message::Lead merging(std::uint64_t turn_blocks) {
        message::Lead lead = lead_of(image_bytes, 3 * blocks * role_block);
        lead.ranks_total = 6;
        lead.codec = codec_name(Codec::zero_runs);
        lead.pack_bytes = 8 * role_block;
        lead.merge_ranks = 3;
        lead.merge_bytes = turn_blocks * role_block;
        for (const Rank rank : {4, 5}) {
            lead.parts[0].shares[0].nodes[0].sources.push_back({rank, 0, bytes_of_rank(rank)});
            lead.images.push_back(testing::role_image(rank, bytes_of_rank(rank)));
        }
        return lead;
    }
    void begin_merging(RoleOptions options, const message::Lead& lead) {
        options.settings.buffer_bytes = 8 * role_block;
        node = std::make_unique<Alone<Leader>>(options);
        for (const Rank rank : {1, 4, 5}) node->add_image(rank, bytes_of_rank(rank));
        hear(lead);
    }
    // All of the part's pieces are what they are said to be: so many bytes.
    std::uint64_t check_merged(const Footer& footer, const Bytes& file) {
        std::uint64_t sum = 0;
        for (const StoredRun& run : footer.runs)
            for (const StoredPiece& piece : run.pieces) {
                const Bytes image = testing::role_bytes(piece.rank, bytes_of_rank(piece.rank));
                EXPECT_EQ(piece.image_offset % role_block, 0u);
                EXPECT_TRUE(testing::bytes_in(file, run.part_offset + piece.at, piece.length) == testing::bytes_in(image, piece.image_offset, piece.length));
                sum += piece.length;
            }
        return sum;
    }
    Footer written(Bytes& file) {
        complete();
        const message::PartsDone done = node->next<message::PartsDone>(0);
        EXPECT_EQ(done.code, Code::ok) << done.text;
        file = node->read(path()).value_or(Bytes());
        return footer_of(file);
    }
};

// Turns of four blocks are not to be had of three images in a buffer of eight: two images give them. Of nine blocks there are none.
TEST_F(MergedTest, OfLongTurnsABufferHasRoomForFewerImages) {
    for (const std::uint64_t turn_blocks : {4, 9}) {
        begin_merging(options(), merging(turn_blocks));
        Bytes file;
        const Footer footer = written(file);
        EXPECT_EQ(check_merged(footer, file), all_bytes);
        std::size_t together = 0;
        for (const StoredRun& run : footer.runs) {
            EXPECT_TRUE(run.pieces.size() == 1 || raw_bytes(run) <= 8 * role_block);
            EXPECT_LE(run.pieces.size(), 2u);
            together += run.pieces.size() == 2;
            for (const StoredPiece& piece : run.pieces) EXPECT_TRUE(run.pieces.size() == 1 || piece.length <= 4 * role_block);
        }
        EXPECT_EQ(together > 0, turn_blocks == 4);
    }
}

TEST_F(MergedTest, RunsHaveTurnsOfAllAndThenWhatIsLeft) {
    begin_merging(options(), merging(2));
    Bytes file;
    const Footer footer = written(file);
    EXPECT_EQ(check_merged(footer, file), all_bytes);
    std::set<std::set<Rank>> together;
    for (const StoredRun& run : footer.runs) {
        EXPECT_LE(raw_bytes(run), 8 * role_block) << "a buffer";
        std::set<Rank> ranks;
        for (const StoredPiece& piece : run.pieces) {
            ranks.insert(piece.rank);
            EXPECT_TRUE(run.pieces.size() == 1 || piece.length <= 2 * role_block);
        }
        together.insert(ranks);
    }
    EXPECT_TRUE(together.count({1, 4, 5}) && together.count({1, 4})) << "when the short one has no more the others go on";
    EXPECT_FALSE(together.count({5}));
}

TEST_F(MergedTest, WhoKnowsNoSuchCodecMergesNothing) {
    message::Lead lead = merging(2);
    lead.codec = "of another release";
    begin_merging(options(), lead);
    Bytes file;
    const Footer footer = written(file);
    EXPECT_EQ(check_merged(footer, file), all_bytes);
    for (const StoredRun& run : footer.runs) EXPECT_EQ(run.pieces.size(), 1u);
}

// What is given off the end takes no more space than its work says, whoever takes it, merged or not; and the rest is written.
TEST_F(MergedTest, WhatChangesHandsIsWholeTurns) {
    message::Lead lead = merging(1);
    begin_merging(slow(), lead);
    node->run(200 * millisecond);
    hear(message::Shed{attempt_id, 1, 0, 2, 50 * role_block});
    const message::Given given = node->next<message::Given>(0);
    std::uint64_t bytes = 0;
    ASSERT_EQ(given.work.size(), 1u);
    for (const message::Work& work : given.work) {
        EXPECT_LE(space_of(work.nodes, {role_block, 8 * role_block}), work.bytes);
        EXPECT_LE(work.bytes, 50 * role_block);
        EXPECT_GT(work.bytes, 47 * role_block) << "a round less than asked for, at most";
        for (const NodeSources& each : work.nodes)
            for (const Source& source : each.sources) {
                EXPECT_EQ(source.image_offset + source.length, bytes_of_rank(source.rank));
                bytes += source.length;
            }
    }
    Bytes file;
    const Footer footer = written(file);
    EXPECT_EQ(check_merged(footer, file), all_bytes - bytes);
}

}  // namespace
}  // namespace cairn::engine
