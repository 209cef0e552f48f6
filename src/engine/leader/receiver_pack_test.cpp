// A run that is gathered of several images: what does not come of it is asked for again.
#include "engine/leader/receiver_testing.hpp"

namespace cairn::engine {
namespace {

using testing::ReceiverTest;
using testing::role_block;
using testing::role_bytes;
using testing::RoleOptions;

// Images of ranks 1 and 2, a block each, share a run.
struct ReceiverPackTest : ReceiverTest {
    static RoleOptions pack_options() {
        RoleOptions options = ReceiverTest::options();
        options.settings.buffer_bytes = 4 * role_block;
        return options;
    }
    ReceiverPackTest() : ReceiverTest(pack_options()) {
        message::Lead lead = attempt->lead;
        lead.pack_bytes = 4 * role_block;
        lead.parts = {{0, "", 0, {{0, 0, 2 * role_block, {{1, {{1, 0, role_block}}}, {2, {{2, 0, role_block}}}}}}}};
        lead.addresses.push_back({2, node.process(2).address()});
        lead_by(lead);
    }
    std::vector<message::Want> wants_of(NodeIndex from) {
        node.run(100 * millisecond);
        return node.heard<message::Want>(from);
    }
    void say(const message::Want& want) {
        node.note_heard(want.source.rank);
        message::Chunk chunk{want.tag, Code::ok, "", testing::block_checksums(role_bytes(want.source.rank, role_block))};
        chunk.arrays = {{8, 64, 8, true, false, 0, 0, want.source.rank}};
        node.subject.receiver.on_chunk(*node.flight, std::move(chunk));
    }
    void answer_whole(const message::Want& want) {
        send_bytes(want.tag, role_bytes(want.source.rank, role_block));
        say(want);
    }
};

// In another buffer, since what is late may still come into the first one; and what has come is not asked for again.
TEST_F(ReceiverPackTest, WhatDoesNotComeOfAPackIsAskedForAgain) {
    begin();
    const std::vector<message::Want> first = wants_of(1), other = wants_of(2);
    ASSERT_EQ(first.size(), 1u);
    ASSERT_EQ(other.size(), 1u);
    answer_whole(other[0]);
    say(first[0]);  // and its payload is lost
    node.run(node.common.settings.io_wait + second);
    const std::vector<message::Want> again = wants_of(1);
    ASSERT_EQ(again.size(), 1u);
    EXPECT_EQ(again[0].source, first[0].source);
    EXPECT_NE(again[0].tag, first[0].tag);
    EXPECT_TRUE(wants_of(2).empty());
    answer_whole(again[0]);
    node.run(100 * millisecond);
    ASSERT_TRUE(attempt->failure.ok()) << attempt->failure.to_string();
    ASSERT_EQ(part().write_queue.front().size(), 1u);
    const PendingChunk& chunk = part().write_queue.front().front();
    for (const StoredPiece& piece : chunk.packed) {
        EXPECT_TRUE(sim::content_equal(chunk.data.part(piece.at, piece.length), Slice::of(role_bytes(piece.rank, role_block)))) << piece.rank;
        EXPECT_EQ(piece.checksums, testing::block_checksums(role_bytes(piece.rank, role_block)));
    }
    ASSERT_EQ(chunk.arrays.size(), 2u) << "once of each image, at its place";
    for (const NumberArray& array : chunk.arrays)
        for (const StoredPiece& piece : chunk.packed)
            EXPECT_EQ(array.offset == piece.at + 8, piece.rank == array.key);
    EXPECT_EQ(part().fetching, 0u);
}

TEST_F(ReceiverPackTest, AndAFewTimesOnly) {
    begin();
    int asked = 0;
    for (; attempt->failure.ok() && asked < 10; ++asked) {
        const std::vector<message::Want> wanted = wants_of(1);
        ASSERT_EQ(wanted.size(), 1u);
        for (const message::Want& each : wants_of(2)) answer_whole(each);
        say(wanted[0]);
        node.run(node.common.settings.io_wait + second);
    }
    EXPECT_EQ(asked, 3);
    EXPECT_EQ(attempt->lost, 1u);
    EXPECT_NE(attempt->failure.text().find("rank 1 from node 1"), std::string::npos) << attempt->failure.text();
}

}  // namespace
}  // namespace cairn::engine
