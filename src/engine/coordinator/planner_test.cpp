// The planner alone: what an attempt is planned with, and what it does without after attempts that failed.
#include "engine/coordinator/planner_testing.hpp"

namespace cairn::engine {
namespace {

using testing::PlannerTest;
using testing::role_block;
using testing::RoleOptions;

// Where there is a codec, and the coordinator's node has that setting.
TEST_F(PlannerTest, FollowersEncodeWhereTheSettingsSaySo) {
    for (const Codec codec : {Codec::none, Codec::zero_runs})
        for (const EncodeAt at : {EncodeAt::leader, EncodeAt::follower}) {
            RoleOptions options;
            options.settings.codec = codec;
            options.settings.encode_at = at;
            begin(options);
            for (const auto& [leader, track] : plan().leaders) EXPECT_EQ(track.lead.encode_at_follower, codec == Codec::zero_runs && at == EncodeAt::follower);
        }
}

TEST_F(PlannerTest, EveryByteOfEveryImageIsSomebodysOnce) {
    RoleOptions options;
    options.files = 2;
    begin(options);
    const Contest& contest = plan();
    EXPECT_EQ(contest.block_bytes, role_block);
    ASSERT_EQ(contest.plan.size(), 2u);
    std::map<Rank, std::uint64_t> bytes;
    for (const auto& [leader, track] : contest.leaders) {
        EXPECT_EQ(track.lead.attempt_id, contest.attempt_id);
        EXPECT_EQ(track.lead.parts_total, 2u);
        EXPECT_EQ(track.lead.ranks_total, 3u);
        for (const PartPlan& part : track.lead.parts)
            for (const Share& share : part.shares) {
                if (share.leader != leader) {
                    EXPECT_TRUE(share.nodes.empty()) << "of others' shares only the range";
                }
                for (const NodeSources& sources : share.nodes) {
                    EXPECT_TRUE(std::any_of(track.lead.addresses.begin(), track.lead.addresses.end(), [&](const auto& each) { return each.node == sources.node; }));
                    for (const Source& source : sources.sources) bytes[source.rank] += source.length;
                }
            }
    }
    EXPECT_EQ(bytes, (std::map<Rank, std::uint64_t>{{0, image_bytes}, {1, image_bytes}, {2, image_bytes}}));
}

TEST_F(PlannerTest, NodesThatDoNotAgreeOnBlocksAreNamed) {
    begin();
    seal(2, 2, 2 * role_block);
    Contest contest;
    const Result<std::vector<NodeImages>> planned = node->subject.plan(*node->flight, contest);
    EXPECT_EQ(planned.code(), Code::invalid_argument);
    EXPECT_NE(planned.status().text().find("node 2 (n2, rank 2)"), std::string::npos) << planned.status().text();
}

TEST_F(PlannerTest, ATargetThatFailedIsNotUsedForAWhile) {
    RoleOptions options;
    options.files = 3;
    begin(options);
    node->common.targets = std::make_shared<PlacementTargets>(PlacementTargets{"sim", {"a", "b", "c"}, "@"});
    plan();
    EXPECT_EQ(targets(), (std::set<std::string>{"a", "b", "c"}));
    const PartPlan failed = side().contest->plan[1];
    fails(failed.first_leader(), of_part(1));
    const std::vector<NodeIndex> led = leaders();
    plan();
    EXPECT_EQ(targets().size(), 2u);
    EXPECT_EQ(targets().count(failed.target), 0u);
    EXPECT_EQ(leaders(), led) << "its leader is not to blame";
    node->run(1000 * second);
    plan();
    EXPECT_EQ(targets().count(failed.target), 1u) << "and not for ever";
}

// Those that are there are not blamed for those that hang, and are not waited for in vain.
TEST_F(PlannerTest, RootsAreAskedForRoomWithinOneWait) {
    RoleOptions options;
    options.roots = {"/persistent/.bad-a", "/persistent/.bad-b", "/persistent/.good"};
    begin(options);
    sim::Faults& faults = node->sim.faults();
    faults.below = "/persistent/.bad";
    faults.below_is = sim::Faults::Below::hangs;
    const auto look = [](Planner* planner, engine::Job* job) -> Task<Status> {
        co_await planner->free_space().look(*job);
        co_return Status();
    };
    const Nanos begun = node->sim.now();
    (void)node->result_of(look(&node->subject, node->job.get()));
    EXPECT_LT(node->sim.now() - begun, options.settings.io_wait + second);
    const Experience& experience = *node->job->experience;
    EXPECT_EQ(experience.avoided.size(), 2u);
    EXPECT_EQ(experience.avoided.count("/persistent/.good"), 0u);
    EXPECT_EQ(experience.free_bytes.count("/persistent/.good"), 1u);
}

// What one look says may be wrong; what three say is believed.
TEST_F(PlannerTest, ATargetIsFullWhenItSaidSoThreeTimes) {
    for (const int untrue : {0, 1, 2, 3, 4}) {
        RoleOptions options;
        options.roots = {"/persistent/.a", "/persistent/.b"};
        options.files = 2;
        begin(options);
        node->sim.faults().below = "/persistent/.a";
        node->sim.faults().below_is = sim::Faults::Below::seems_full;
        int looks = 0;
        const auto look = [&](Planner* planner, FlightPtr flight) -> Task<Status> {
            co_await planner->free_space().look(*flight->job);
            co_await planner->free_space().look_again_where_full(flight);
            co_return Status();
        };
        auto task = look(&node->subject, node->flight);
        task.start();
        for (; looks < untrue && !task.done(); ++looks) node->run(looks == 0 ? millisecond : options.settings.heartbeat / 4);
        node->sim.faults().below.clear();
        ASSERT_TRUE(node->run_until([&] { return task.done(); }));
        EXPECT_EQ(node->job->experience->free_bytes["/persistent/.a"] != 0, untrue < 3) << untrue;
    }
}

// Nobody asked for parts below persistent; where no root is, the file system may choose.
TEST_F(PlannerTest, WhereNoTargetIsLeftRootsAreTriedAgain) {
    for (const bool of_roots : {true, false}) {
        RoleOptions options;
        if (of_roots) options.roots = {"/persistent/.a"};
        begin(options);
        if (!of_roots) node->common.targets = std::make_shared<PlacementTargets>(PlacementTargets{"sim", {"/persistent/.a"}, "@"});
        plan();
        EXPECT_EQ(targets(), std::set<std::string>{"/persistent/.a"});
        fails(side().contest->plan[0].first_leader(), of_part(0));
        plan();
        EXPECT_EQ(targets(), std::set<std::string>{of_roots ? "/persistent/.a" : ""});
    }
}

TEST_F(PlannerTest, ALeaderThatFailedByItselfDoesNotLeadNextTime) {
    begin();
    plan();
    EXPECT_EQ(leaders(), (std::vector<NodeIndex>{0, 1, 2}));
    fails(1, of_itself());
    plan();
    EXPECT_EQ(leaders(), (std::vector<NodeIndex>{0, 2}));
    EXPECT_EQ(side().sealed.size(), 3u) << "its images are to be had";
    node->run(1000 * second);
    plan();
    EXPECT_EQ(leaders(), (std::vector<NodeIndex>{0, 1, 2}));
}

// One that was told to leave, or whose part failed where the file system put it.
TEST_F(PlannerTest, WhoWasToldToLeaveIsNotToBlame) {
    begin();
    plan();
    message::PartsDone left;
    left.code = Code::superseded;
    fails(1, left);
    plan();
    EXPECT_EQ(leaders(), (std::vector<NodeIndex>{0, 1, 2}));
    fails(2, of_part(0));
    plan();
    EXPECT_EQ(leaders(), (std::vector<NodeIndex>{0, 1})) << "without targets it may be the node";
}

TEST_F(PlannerTest, ANodeThatWasLostHasToSealAgain) {
    begin();
    plan();
    message::PartsDone lost;
    lost.code = Code::unavailable;
    lost.has_lost = true;
    lost.lost = 2;
    fails(1, lost);
    EXPECT_EQ(side().missing(*node->job), std::vector<NodeIndex>{2});
    EXPECT_EQ(side().first_missing(*node->job), std::vector<NodeIndex>{2});
    EXPECT_FALSE(side().lost_io_node);
    seal(2, 2);
    plan();
    EXPECT_EQ(leaders(), (std::vector<NodeIndex>{0, 1, 2})) << "neither is unfit";
}

TEST_F(PlannerTest, ALostIoNodeIsNoLeaderNextTime) {
    RoleOptions options;
    options.ranks = {{0}, {1}, {}, {}};
    begin(options);
    plan();
    EXPECT_EQ(leaders(), (std::vector<NodeIndex>{2, 3}));
    node->subject.lose(*node->flight, 3);
    EXPECT_TRUE(side().lost_io_node) << "the next attempt begins at once";
    EXPECT_TRUE(side().complete(*node->job));
    plan();
    EXPECT_EQ(leaders(), std::vector<NodeIndex>{2});
    node->subject.lose(*node->flight, 2);
    plan();
    EXPECT_EQ(leaders(), (std::vector<NodeIndex>{0, 1})) << "without I/O nodes those lead that have images";
    node->subject.lose(*node->flight, 17);  // what a leader says is not believed blindly
    node->run(1000 * second);
    plan();
    EXPECT_EQ(leaders(), (std::vector<NodeIndex>{0, 1})) << "until they answer a call";
}

// ---- ahead of the last seal ----

struct PlannerAheadTest : PlannerTest {
    void begin_three() {
        RoleOptions options;
        options.files = 2;
        begin(options);
    }
    bool begins(Rank rank, std::uint64_t bytes = image_bytes) {
        message::Begun begun;
        begun.images.push_back({rank, bytes, {}});
        begun.block_bytes = role_block;
        return node->subject.note_begun(*node->job, 1, rank, std::move(begun));
    }
    void plan_ahead() {
        const auto ahead = [](Planner* planner, engine::JobPtr job) -> Task<Status> {
            co_await planner->plan_ahead(std::move(job), 1);
            co_return Status();
        };
        (void)node->result_of(ahead(&node->subject, node->job));
    }
    void all_begin() {
        for (const Rank rank : {0u, 1u, 2u}) EXPECT_EQ(begins(rank), rank == 2);
        plan_ahead();
    }
    bool was_planned_ahead() { return std::exchange(node->common.counters.planned_ahead, 0) == 1; }
};

TEST_F(PlannerAheadTest, ThePlanIsTheOneThatSealedImagesGive) {
    begin_three();
    all_begin();
    EXPECT_TRUE(node->subject.free_space().is_known(*node->job));
    const std::vector<PartPlan> ahead = plan().plan;
    EXPECT_TRUE(was_planned_ahead());
    EXPECT_FALSE(node->subject.free_space().is_known(*node->job)) << "what it writes takes room";
    const std::vector<PartPlan> again = plan().plan;
    EXPECT_FALSE(was_planned_ahead()) << "an attempt that failed may have shown something";
    EXPECT_EQ(ahead, again);
    begin_three();
    EXPECT_EQ(plan().plan, again) << "nobody told sizes before";
    EXPECT_FALSE(was_planned_ahead());
}

TEST_F(PlannerAheadTest, AnotherSizeThanWasToldIsPlannedAnew) {
    begin_three();
    for (const Rank rank : {0u, 1u, 2u}) begins(rank, rank == 1 ? role_block : image_bytes);
    plan_ahead();
    std::uint64_t bytes = 0;
    for (const PartPlan& part : plan().plan)
        for (const Share& share : part.shares)
            for (const NodeSources& sources : share.nodes)
                for (const Source& source : sources.sources) bytes += source.length;
    EXPECT_EQ(bytes, 3 * image_bytes);
    EXPECT_FALSE(was_planned_ahead());
}

TEST_F(PlannerAheadTest, WhatChangedMeanwhileIsPlannedAnew) {
    begin_three();
    all_begin();
    begins(1, image_bytes);  // again, and nobody has planned since
    plan();
    EXPECT_FALSE(was_planned_ahead());

    begin_three();
    node->common.targets = std::make_shared<PlacementTargets>(PlacementTargets{"sim", {"a", "b"}, "@"});
    all_begin();
    node->job->experience->avoided["a"] = node->world.clock.in(1000 * second);
    plan();
    EXPECT_FALSE(was_planned_ahead());
    EXPECT_EQ(targets(), std::set<std::string>{"b"});

    begin_three();
    all_begin();
    node->job->experience->unfit[2] = node->world.clock.in(1000 * second);
    plan();
    EXPECT_FALSE(was_planned_ahead());
    EXPECT_EQ(leaders(), (std::vector<NodeIndex>{0, 1}));
}

// It tells no sizes, and its place in the plan stays its own, behind the others or between them.
TEST_F(PlannerAheadTest, AnIoNodeHasItsPlace) {
    RoleOptions behind, between;
    behind.ranks = {{0}, {1}, {}};
    between.ranks = {{0}, {}, {1}};
    for (const RoleOptions& options : {behind, between}) {
        begin(options);
        std::uint32_t told = 0;
        for (NodeIndex each = 0; each < node->job->nodes(); ++each)
            for (const Rank rank : options.ranks[each])
                EXPECT_EQ(node->subject.note_begun(*node->job, 1, each, {{{rank, image_bytes, {}}}, role_block}), ++told == 2);
        plan_ahead();
        const std::vector<PartPlan> ahead = plan().plan;
        EXPECT_TRUE(was_planned_ahead());
        EXPECT_EQ(ahead, plan().plan);
    }
}

// Who flushes uses what was looked at, and will have shown more when it is over.
TEST_F(PlannerAheadTest, NothingIsPlannedWhileAnotherVersionIsFlushed) {
    begin_three();
    begins(0), begins(1);
    (void)node->job->experience->turn.try_receive();
    EXPECT_FALSE(begins(2));
    plan_ahead();  // it had begun before the other
    EXPECT_FALSE(node->subject.free_space().is_known(*node->job));
    node->job->experience->turn.try_send(0);
    plan();
    EXPECT_FALSE(was_planned_ahead());
}

// Whose turn it is among targets goes on with what is written, and not with what is planned.
TEST_F(PlannerAheadTest, PlansThatAreNotUsedTakeNobodysTurn) {
    begin();
    node->common.targets = std::make_shared<PlacementTargets>(PlacementTargets{"sim", {"a", "b"}, "@"});
    std::vector<std::string> used;
    for (int flush = 0; flush < 4; ++flush) {
        all_begin();
        if (flush % 2 == 1) {
            begins(1);  // and once more
            plan_ahead();
        }
        used.push_back(plan().plan.at(0).target);
        EXPECT_TRUE(was_planned_ahead());
    }
    EXPECT_NE(used[0], used[1]);
    EXPECT_EQ(used, (std::vector<std::string>{used[0], used[1], used[0], used[1]}));
}

TEST_F(PlannerAheadTest, WhatCanNotBeIsNotBelieved) {
    begin_three();
    const auto begins_with = [&](std::uint64_t bytes, std::uint64_t block_bytes) {
        message::Begun begun;
        begun.images = {ImageInfo{0, bytes, {}}, ImageInfo{7, bytes, {}}};
        begun.block_bytes = block_bytes;
        return node->subject.note_begun(*node->job, 1, 0, std::move(begun));
    };
    for (const std::uint64_t bytes : {std::uint64_t{UINT64_MAX}, std::uint64_t{UINT64_MAX / 2}, std::uint64_t{(1ull << 60) - 1}}) begins_with(bytes, role_block);
    for (const std::uint64_t block : {std::uint64_t{0}, std::uint64_t{1000}, std::uint64_t{1ull << 40}, std::uint64_t{UINT64_MAX}}) begins_with(role_block, block);
    EXPECT_TRUE(node->job->experience->ahead.empty());
}

// Another flush began and ended while targets were looked at.
TEST_F(PlannerAheadTest, RoomThatAFlushHasUsedIsLookedAtAgain) {
    RoleOptions options;
    options.roots = {"/persistent/.a"};
    begin(options);
    for (const Rank rank : {0u, 1u, 2u}) begins(rank);
    auto ahead = node->subject.plan_ahead(node->job, 1);
    ahead.start();
    ASSERT_FALSE(ahead.done()) << "it looks";
    ++node->job->experience->placement_turn;
    ASSERT_TRUE(node->run_until([&] { return ahead.done(); }));
    EXPECT_FALSE(node->subject.free_space().is_known(*node->job));
    plan();
    EXPECT_FALSE(was_planned_ahead());
}

// What hangs while images are filled may have come back when an attempt asks: it is blamed then.
TEST_F(PlannerAheadTest, ALookAheadBlamesNobody) {
    RoleOptions options;
    options.roots = {"/persistent/.bad", "/persistent/.good"};
    begin(options);
    node->sim.faults().below = "/persistent/.bad";
    node->sim.faults().below_is = sim::Faults::Below::hangs;
    all_begin();
    EXPECT_TRUE(node->job->experience->avoided.empty());
    EXPECT_FALSE(node->subject.free_space().is_known(*node->job)) << "so the attempt looks";
}

TEST_F(PlannerAheadTest, WordsOfStrangersAndOfOldVersionsAreNotKept) {
    begin_three();
    node->job->committed = 1;
    EXPECT_FALSE(begins(0));
    EXPECT_TRUE(node->job->experience->ahead.empty());
    for (Version version = 2; version < 100; ++version) node->subject.note_begun(*node->job, version, 0, {{{0, 1, {}}}, role_block});
    EXPECT_LE(node->job->experience->ahead.size(), 4u);
    EXPECT_EQ(node->job->experience->ahead.begin()->first, 2u) << "what is due next is kept";
}

TEST_F(PlannerTest, WhereCardsDecideEachWritesItsOwn) {
    begin();
    for (const bool full : {true, false}) {
        plan();
        for (auto& [leader, track] : side().contest->leaders) {
            track.done.emplace();
            track.done->card = full ? Card::full : Card::has_room;
        }
        node->subject.learn_from_success(*node->flight, {}, second, false);
        plan();
        EXPECT_EQ(side().contest->keep_own, full);
        for (const auto& [leader, track] : side().contest->leaders) {
            EXPECT_EQ(track.lead.keep_own, full);
            for (const PartPlan& part : track.lead.parts)
                for (const Share& share : part.shares)
                    for (const NodeSources& sources : share.nodes)
                        EXPECT_TRUE(!full || sources.node == leader);
        }
    }
}

}  // namespace
}  // namespace cairn::engine
