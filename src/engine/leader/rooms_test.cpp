// Rooms alone: runs of several leaders lie one behind the other whoever asks when, and what is asked again gets the same.
#include "engine/leader/rooms.hpp"

#include "engine/role_testing.hpp"

namespace cairn::engine {
namespace {

using testing::role_block;

struct RoomsAlone {
    explicit RoomsAlone(Common& c) : ring(c.world.clock, c.world.storage, 2, role_block), rooms(c, ring) {}
    BufferRing ring;
    Rooms rooms;
};

// One part that nodes 1 (first) and 2 lead; one of them is under test.
struct RoomsTest : ::testing::Test {
    static constexpr Id128 attempt_id{7, 5};
    void begin(NodeIndex self, std::uint64_t sized_bytes = 64 * role_block, const char* codec = "zero-runs") {
        testing::RoleOptions options;
        options.self = self;
        node = std::make_unique<testing::Alone<RoomsAlone>>(options);
        message::Lead lead;
        lead.attempt_id = attempt_id;
        lead.parts_total = 2;
        lead.block_bytes = role_block;
        lead.pack_bytes = role_block;
        lead.codec = codec;
        lead.parts = {{0, "", sized_bytes, {{1, 0, 8 * role_block, {}}, {2, 8 * role_block, 8 * role_block, {}}}}};
        lead.addresses = {{1, node->process(1).address()}, {2, node->process(2).address()}};
        attempt = std::make_shared<Attempt>(node->world, node->flight, lead);
        node->flight->leader = std::make_shared<LeaderSide>();
        node->flight->leader->leading = attempt;
    }
    PartState& part() { return *attempt->parts.front(); }
    Rooms& rooms() { return node->subject.rooms; }
    static Task<void> keep(Task<Result<std::uint64_t>> task, std::optional<Result<std::uint64_t>>* out) {
        Result<std::uint64_t> result = co_await task;
        out->emplace(std::move(result));
    }
    void start_take(std::uint64_t bytes) { node->gate.spawn(keep(rooms().take(*attempt, part(), chunk, bytes), &taken)); }

    std::unique_ptr<testing::Alone<RoomsAlone>> node;
    std::shared_ptr<Attempt> attempt;
    PendingChunk chunk;
    std::optional<Result<std::uint64_t>> taken;
};

TEST_F(RoomsTest, RunsOfAllLeadersLieOneBehindTheOther) {
    begin(1);
    start_take(5000);
    ASSERT_TRUE(taken && taken->ok());
    EXPECT_EQ(**taken, 0u);
    rooms().on_room(*node->flight, 2, {attempt_id, 0, 0, 100});
    EXPECT_EQ(node->next<message::Roomed>(2), (message::Roomed{attempt_id, 0, 0, 2 * part_alignment}));
    rooms().on_room(*node->flight, 2, {attempt_id, 0, 0, 100});  // the answer was lost
    EXPECT_EQ(node->next<message::Roomed>(2), (message::Roomed{attempt_id, 0, 0, 2 * part_alignment}));
    start_take(1);
    EXPECT_EQ(**taken, 3 * part_alignment) << "asked twice it takes one place";
    rooms().on_room(*node->flight, 2, {{7, 6}, 0, 1, 100});  // of another attempt
    rooms().on_room(*node->flight, 2, {attempt_id, 3, 1, 100});
    node->run(second);
    EXPECT_TRUE(node->heard<message::Roomed>(2).empty());
}

TEST_F(RoomsTest, NothingGoesBeyondWhatTheFileWasSizedTo) {
    begin(1, 2 * part_alignment);
    rooms().on_room(*node->flight, 2, {attempt_id, 0, 0, part_alignment + 1});
    EXPECT_EQ(node->next<message::Roomed>(2).offset, 0u);
    rooms().on_room(*node->flight, 2, {attempt_id, 0, 1, 1});
    EXPECT_EQ(attempt->failure.code(), Code::internal);
}

TEST_F(RoomsTest, AnotherLeaderAsksUntilItIsAnswered) {
    begin(2);
    start_take(100);
    const auto asked = node->next<message::Room>(1);
    EXPECT_EQ(asked, (message::Room{attempt_id, 0, 0, 100}));
    EXPECT_EQ(node->next<message::Room>(1), asked) << "again";
    rooms().on_roomed(*node->flight, {attempt_id, 0, 9, 4096});  // what was never asked for
    EXPECT_FALSE(taken);
    rooms().on_roomed(*node->flight, {attempt_id, 0, 0, 8192});
    node->run(100 * millisecond);
    ASSERT_TRUE(taken && taken->ok());
    EXPECT_EQ(**taken, 8192u);
    rooms().on_roomed(*node->flight, {attempt_id, 0, 0, 8192});  // late, and again
    EXPECT_TRUE(part().rooms_got.empty());
}

// The way of both messages passes while the chunk's bytes come.
TEST_F(RoomsTest, WhereNothingIsEncodedTheSpaceIsAskedForWhenTheChunkIsBegun) {
    begin(2, 64 * role_block, "");
    rooms().ask_early(*attempt, part(), chunk, 100);
    EXPECT_EQ(node->next<message::Room>(1), (message::Room{attempt_id, 0, 0, 100}));
    rooms().on_roomed(*node->flight, {attempt_id, 0, 0, 8192});
    start_take(100);
    ASSERT_TRUE(taken && taken->ok()) << "it waits for nothing";
    EXPECT_EQ(**taken, 8192u);
    node->run(second);
    EXPECT_TRUE(node->heard<message::Room>(1).empty()) << "and asks no more";
}

TEST_F(RoomsTest, AnEarlyQuestionThatIsLostIsAskedAgainUnderItsNumber) {
    begin(2, 64 * role_block, "");
    rooms().ask_early(*attempt, part(), chunk, 100);
    const auto asked = node->next<message::Room>(1);
    node->run(3 * second);
    start_take(100);
    EXPECT_EQ(node->next<message::Room>(1), asked);
}

TEST_F(RoomsTest, WhatMayBecomeShorterIsNotAskedForBeforeItIs) {
    begin(2);
    rooms().ask_early(*attempt, part(), chunk, 100);
    node->run(second);
    EXPECT_TRUE(node->heard<message::Room>(1).empty());
    EXPECT_FALSE(chunk.room);
}

TEST_F(RoomsTest, AFirstLeaderThatIsSilentIsNamedAndTheStorageIsNotToBlame) {
    begin(2);
    start_take(100);
    node->run(1000 * second);
    ASSERT_TRUE(taken);
    EXPECT_EQ(taken->code(), Code::unavailable);
    EXPECT_TRUE(part().blameless);
    EXPECT_FALSE(attempt->lost) << "with both the next attempt would end the same way";
}

}  // namespace
}  // namespace cairn::engine
