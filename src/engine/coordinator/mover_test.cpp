// The mover alone: work goes from who is behind to who is ahead, every question is repeated until it is answered, and nothing is in two hands.
#include "engine/coordinator/mover.hpp"

#include "engine/role_testing.hpp"

namespace cairn::engine {
namespace {

using testing::Alone;
using testing::role_block;

// Node 0 coordinates. Node 1 writes rank 1's image into part 0, node 2 rank 2's into part 1; both parts are on one target.
struct MoverTest : ::testing::Test {
    static constexpr std::uint64_t share_bytes = 100 * role_block;
    static constexpr Id128 attempt_id{7, 5};

    MoverTest() {
        node.flight->coordinator = std::make_shared<CoordinatorSide>(node.flight->since);
        Contest contest;
        contest.attempt_id = attempt_id;
        contest.block_bytes = role_block;
        contest.begun = node.world.clock.now();
        contest.plan = {{0, "", 3 * share_bytes, {{1, 0, share_bytes, {{1, {{1, 0, share_bytes}}}}}}},
                        {1, "", 3 * share_bytes, {{2, 0, share_bytes, {{2, {{2, 0, share_bytes}}}}}}}};
        contest.targets = {0, 0};
        contest.part_space_bytes = {share_bytes, share_bytes};
        for (const NodeIndex each : {1u, 2u}) {
            contest.leaders[each].lead.attempt_id = attempt_id;
            side().sealed[each] = {{testing::role_image(each, share_bytes)}, role_block};
        }
        side().contest = std::move(contest);
        node.run(10 * second);  // rates have settled
    }
    CoordinatorSide& side() { return *node.flight->coordinator; }
    Contest& contest() { return *side().contest; }
    // A leader's word on its part, as the coordinator notes it.
    void progress(NodeIndex leader, std::uint64_t unstarted, std::uint64_t begun, std::uint64_t bytes_per_s) {
        LeaderTrack& track = contest().leaders.at(leader);
        ++track.progress.sequence;
        track.progress.parts = {{leader - 1, unstarted, begun, bytes_per_s}};
        track.progress_known = true;
        track.most_bytes_per_s = std::max(track.most_bytes_per_s, static_cast<double>(bytes_per_s));
        track.declined = false;
        node.subject.shift_soon(*node.flight);
        node.run(millisecond);
    }
    // Node 2 has done its own, node 1 has most of its still to do: asked to give.
    message::Shed shed() {
        progress(1, 80 * role_block, 0, 10 * role_block);
        progress(2, 0, 0, 10 * role_block);
        return node.next<message::Shed>(1);
    }
    static message::Given given_to(const message::Shed& shed) {
        const std::uint64_t from = share_bytes - shed.bytes;
        return {attempt_id, shed.move, {{0, from, shed.bytes, {{1, {{1, from, shed.bytes}}}}}}};
    }

    Alone<Mover> node;
};

TEST_F(MoverTest, WorkGoesFromTheSlowToTheFast) {
    const message::Shed asked = shed();
    EXPECT_EQ(asked.attempt_id, attempt_id);
    EXPECT_EQ(asked.part, 0u);
    EXPECT_EQ(asked.to, 2u);
    EXPECT_EQ(asked.bytes, 40 * role_block) << "so that both end at the same time";
    node.subject.on_given(*node.flight, 1, given_to(asked));
    const message::Take take = node.next<message::Take>(2);
    EXPECT_EQ(take.move, asked.move);
    ASSERT_EQ(take.work.size(), 1u);
    EXPECT_EQ(take.work[0].part, 1u);
    EXPECT_EQ(take.work[0].offset, 0u) << "the part's first leader says where";
    EXPECT_EQ(take.work[0].bytes, asked.bytes);
    EXPECT_EQ(take.work[0].nodes, given_to(asked).work[0].nodes);
    ASSERT_EQ(take.addresses.size(), 1u);
    EXPECT_EQ(take.addresses[0], (message::NodeAddress{1, node.process(1).address()}));
    EXPECT_EQ(contest().part_space_bytes[1], share_bytes + asked.bytes);
    EXPECT_TRUE(node.heard<message::Complete>(2).empty());
}

TEST_F(MoverTest, AMoveIsRepeatedUntilItIsTaken) {
    const message::Shed asked = shed();
    for (int i = 0; i < 3; ++i) {
        node.subject.repeat(*node.flight);
        EXPECT_EQ(node.next<message::Shed>(1), asked);
        EXPECT_TRUE(node.heard<message::Take>(2).empty());
    }
    node.subject.on_given(*node.flight, 1, given_to(asked));
    const message::Take take = node.next<message::Take>(2);
    for (int i = 0; i < 3; ++i) {
        node.subject.repeat(*node.flight);
        EXPECT_EQ(node.next<message::Take>(2), take);
    }
    node.run(millisecond);
    EXPECT_TRUE(node.heard<message::Shed>(1).empty()) << "it has given";
    node.subject.on_taken(*node.flight, {{7, 6}, asked.move});  // of another attempt
    EXPECT_EQ(contest().moves.size(), 1u);
    node.subject.on_taken(*node.flight, {attempt_id, asked.move});
    EXPECT_TRUE(contest().moves.empty());
    node.subject.repeat(*node.flight);
    node.run(millisecond);
    EXPECT_TRUE(node.heard<message::Take>(2).empty());
}

// Said twice, or by somebody else, it is no second gift.
TEST_F(MoverTest, WhatIsGivenIsPassedOnOnce) {
    const message::Shed asked = shed();
    node.subject.on_given(*node.flight, 2, given_to(asked));  // not who was asked
    node.run(millisecond);
    EXPECT_TRUE(node.heard<message::Take>(2).empty());
    node.subject.on_given(*node.flight, 1, given_to(asked));
    node.next<message::Take>(2);
    node.subject.on_given(*node.flight, 1, given_to(asked));
    node.subject.on_taken(*node.flight, {attempt_id, asked.move});
    node.subject.on_given(*node.flight, 1, given_to(asked));
    node.run(millisecond);
    EXPECT_TRUE(node.heard<message::Take>(2).empty());
    EXPECT_EQ(contest().part_space_bytes[1], share_bytes + asked.bytes);
    EXPECT_EQ(contest().leaders.at(2).takes, 1u);
}

TEST_F(MoverTest, WhoHasNothingToGiveIsNotAskedUntilItSpeaks) {
    const message::Shed asked = shed();
    node.subject.on_given(*node.flight, 1, {attempt_id, asked.move, {}});
    node.run(second);
    EXPECT_TRUE(node.heard<message::Shed>(1).empty());
    EXPECT_TRUE(contest().moves.empty());
    progress(1, 60 * role_block, 0, 10 * role_block);
    EXPECT_NE(node.next<message::Shed>(1).move, asked.move);
}

// No room for it in the other part: the giver keeps all of it.
TEST_F(MoverTest, WhatHasNoRoomGoesBackToTheGiver) {
    contest().plan[1].sized_bytes = share_bytes + role_block;
    const message::Shed asked = shed();
    node.subject.on_given(*node.flight, 1, given_to(asked));
    const message::Take back = node.next<message::Take>(1);
    EXPECT_EQ(back.work, given_to(asked).work);
    EXPECT_EQ(contest().full, std::set<std::uint32_t>{1});
    EXPECT_TRUE(node.heard<message::Take>(2).empty());
}

// Of a node that was lost meanwhile: nobody can take it, and the attempt is about to end.
TEST_F(MoverTest, WorkOfALostNodeIsNotPassedOn) {
    const message::Shed asked = shed();
    side().lose(1);
    node.subject.on_given(*node.flight, 1, given_to(asked));
    node.run(millisecond);
    EXPECT_TRUE(node.heard<message::Take>(2).empty());
}

// Nothing unstarted anywhere, nothing on its way: then everybody hears that no more will come, and a first leader what came into its part.
TEST_F(MoverTest, CompleteComesWhenNothingCanMoveAnyMore) {
    const message::Shed asked = shed();
    node.subject.on_given(*node.flight, 1, given_to(asked));
    node.next<message::Take>(2);
    progress(1, 0, role_block, 10 * role_block);
    EXPECT_TRUE(node.heard<message::Complete>(1).empty()) << "a move is on its way";
    node.subject.on_taken(*node.flight, {attempt_id, asked.move});
    node.run(millisecond);
    EXPECT_TRUE(node.heard<message::Complete>(1).empty()) << "the taker has not told of it";
    progress(2, 0, role_block, 10 * role_block);
    EXPECT_EQ(node.next<message::Complete>(1), (message::Complete{attempt_id, {}}));
    EXPECT_EQ(node.next<message::Complete>(2), (message::Complete{attempt_id, {testing::role_image(1, share_bytes)}}));
    contest().leaders.at(2).done.emplace();
    node.subject.repeat(*node.flight);
    EXPECT_EQ(node.next<message::Complete>(1), (message::Complete{attempt_id, {}}));
    EXPECT_TRUE(node.heard<message::Complete>(2).empty()) << "it has reported";
    progress(1, 80 * role_block, 0, 1);
    EXPECT_TRUE(node.heard<message::Shed>(1).empty()) << "no move after that";
}

TEST_F(MoverTest, NothingMovesWhereEveryFileHasItsOwner) {
    auto roster = std::make_shared<Roster>(*node.flight->job->roster);
    roster->layout = FileLayout::ranks;
    node.flight->job->roster = std::move(roster);
    progress(1, 80 * role_block, 0, 10 * role_block);
    progress(2, 0, 0, 10 * role_block);
    node.run(10 * second);
    EXPECT_TRUE(node.heard<message::Shed>(1).empty());
}

TEST_F(MoverTest, NothingMovesWhereEveryOffsetIsFixed) {
    testing::RoleOptions options;
    options.settings.placement = Placement::contiguous;
    Alone<Mover> fixed(options);
    fixed.flight->coordinator = std::make_shared<CoordinatorSide>(fixed.flight->since);
    fixed.flight->coordinator->contest = contest();
    for (auto& [leader, track] : fixed.flight->coordinator->contest->leaders) {
        track.progress.parts = {{leader - 1, leader == 1 ? 80 * role_block : 0, 0, 10 * role_block}};
        track.progress_known = true;
    }
    fixed.run(10 * second);
    fixed.subject.shift_soon(*fixed.flight);
    fixed.run(second);
    EXPECT_TRUE(fixed.heard<message::Shed>(1).empty());
    EXPECT_TRUE(fixed.heard<message::Complete>(1).empty());
}

}  // namespace
}  // namespace cairn::engine
