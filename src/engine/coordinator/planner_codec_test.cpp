// Which codec the planner names, version by version.
#include "engine/coordinator/planner_testing.hpp"

namespace cairn::engine {
namespace {

using testing::PlannerTest;
using testing::RoleOptions;

// Storage takes 1 MB/s and a codec makes half of it in no time: from the second version on it is used. Where cores are busy it is not.
TEST_F(PlannerTest, TheCodecIsTheOneThatWasSoonerLately) {
    for (const bool busy : {false, true}) {
        RoleOptions options;
        options.settings.codecs = {Codec::zero_runs};
        begin(options);
        const Contest& first = plan();
        EXPECT_EQ(first.codec, "");
        EXPECT_EQ(first.trial, "zero-runs");
        message::PartsDone done;
        done.codecs = {{"zero-runs", 1'000'000, 500'000, busy ? 10'000u : 700'000u}};  // of each of three
        for (auto& [leader, track] : side().contest->leaders) {
            EXPECT_EQ(track.lead.trial, "zero-runs");
            track.done = done;
        }
        PartInfo part;
        part.bytes = 3 * image_bytes;
        side().contest->leaders.begin()->second.done->parts = {part};
        const std::vector<NodeImages> nodes = {{0, {testing::role_image(0, image_bytes)}}, {1, {testing::role_image(1, image_bytes)}}, {2, {testing::role_image(2, image_bytes)}}};
        node->subject.learn_from_success(*node->flight, nodes, static_cast<Nanos>(3 * image_bytes * 1000), false);
        const Contest& second_one = plan();
        EXPECT_EQ(second_one.codec, busy ? "" : "zero-runs");
        EXPECT_EQ(second_one.trial, "") << "it is seen in use, or far from being worth it";
        for (const auto& [leader, track] : second_one.leaders) EXPECT_EQ(track.lead.codec, second_one.codec);
        node->subject.learn_from_failures(*node->flight);
        EXPECT_EQ(plan().codec, busy ? "" : "zero-runs") << "an attempt that failed says nothing of codecs";
    }
}

// A version that took so many seconds, and what each of its leaders says.
struct PlannerCodecTest : PlannerTest {
    void begin_choosing(RoleOptions options = {}) {
        options.settings.codecs = {Codec::zero_runs};
        begin(options);
    }
    // Each leader encodes so many bytes a second, into half of them, and writes for this share of the time.
    void flushed(std::uint64_t encodes_per_s, double took_s, double storage_share = 0.5, bool held_back = false) {
        std::vector<NodeImages> nodes;
        for (NodeIndex each = 0; each < node->job->nodes(); ++each) nodes.push_back({each, {testing::role_image(each, image_bytes)}});
        const Contest& contest = plan();
        message::PartsDone done;
        done.codecs = {{"zero-runs", 1'000'000, 500'000, encodes_per_s}};
        done.storage_busy_ns = static_cast<std::uint64_t>(storage_share * took_s * second);
        for (auto& [leader, track] : side().contest->leaders) track.done = done;
        PartInfo part;
        part.bytes = nodes.size() * image_bytes / (contest.codec.empty() ? 1 : 2);
        side().contest->leaders.begin()->second.done->parts = {part};
        node->subject.learn_from_success(*node->flight, nodes, static_cast<Nanos>(took_s * second), held_back);
    }
    static constexpr double bytes = 3 * image_bytes;
};

TEST_F(PlannerCodecTest, AVersionThatWasHeldBackSaysNothing) {
    begin_choosing();
    flushed(1'000'000'000, bytes / 1e6, 0.5, true);
    EXPECT_EQ(plan().codec, "");
    flushed(1'000'000'000, bytes / 1e6);
    EXPECT_EQ(plan().codec, "zero-runs");
}

// Three nodes with ranks, of which one leads. What it says of a codec holds for all of them where each encodes what it sends.
TEST_F(PlannerCodecTest, FollowersThatWouldEncodeCount) {
    for (const EncodeAt at : {EncodeAt::leader, EncodeAt::follower}) {
        RoleOptions options;
        options.settings.encode_at = at;
        options.settings.leaders = 1;
        begin_choosing(options);
        flushed(700'000, bytes / 1e6);
        EXPECT_EQ(plan().codec, at == EncodeAt::follower ? "zero-runs" : "");
    }
}

// No leader writes for more than half of the time: encoding binds, and storage is as fast as it was.
TEST_F(PlannerCodecTest, StorageBindsWhereOneLeaderWritesAllTheTime) {
    begin_choosing();
    flushed(700'000, bytes / 1e6);
    ASSERT_EQ(plan().codec, "zero-runs");
    flushed(700'000, bytes / 0.4e6);
    EXPECT_EQ(plan().codec, "");
}

TEST_F(PlannerCodecTest, WithAnotherCodecNumbersOfLeadersAreTriedAnew) {
    RoleOptions options;
    options.ranks = {{0}, {1}, {2}, {3}};
    begin_choosing(options);
    for (int i = 0; i < 3; ++i) flushed(10'000, bytes / 1e6);
    plan();
    ASSERT_EQ(leaders().size(), 3u) << "one fewer lost nothing";
    flushed(1'000'000'000, bytes / 1e6);
    ASSERT_EQ(plan().codec, "zero-runs");
    EXPECT_EQ(leaders().size(), 4u);
}

// Three images of 4 Mi blocks each lie in one part, whose footer has room for 11 million pieces.
TEST_F(PlannerTest, WhereAFooterHasNoRoomForAllTurnsNothingIsMerged) {
    using testing::role_block;
    RoleOptions options;
    options.settings.codec = Codec::zero_runs;
    options.settings.merge_ranks = 2;
    for (const std::uint32_t turn_blocks : {1, 2}) {
        options.settings.merge_bytes = turn_blocks * role_block;
        begin(options);
        for (NodeIndex each = 0; each < node->job->nodes(); ++each) side().sealed[each] = {{testing::role_image(each, role_block << 22)}, role_block};
        const Contest& contest = plan();
        ASSERT_EQ(contest.plan.size(), 1u);
        const std::uint32_t images = turn_blocks == 1 ? 1 : 2;
        EXPECT_EQ(contest.merge.ranks, images);
        for (const auto& [leader, track] : contest.leaders) EXPECT_EQ(track.lead.merge_ranks, images);
    }
}

// What others write fixes the places of bytes beforehand.
TEST_F(PlannerTest, OnlyAppendHasCodecs) {
    RoleOptions options;
    options.settings.codecs = {Codec::zero_runs};
    options.settings.placement = Placement::contiguous;
    begin(options);
    EXPECT_EQ(plan().codec + plan().trial, "");
}

}  // namespace
}  // namespace cairn::engine
