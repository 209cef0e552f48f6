// Which codec the planner names, version by version.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/log.hpp"
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

// One kind of data is made a quarter of in no time, and the other hardly shorter in long: storage takes 1 MB/s.
TEST_F(PlannerTest, LeadersAreToldWhichKeysToLeave) {
    RoleOptions options;
    options.settings.codecs = {Codec::planes, Codec::planes_small};
    begin(options);
    for (int version = 0; version < 4; ++version) {
        const Contest& contest = plan();
        for (const auto& [leader, track] : contest.leaders) EXPECT_EQ(track.lead.keys, contest.keys);
        const bool leaves = !contest.keys.empty();
        EXPECT_EQ(leaves, version >= 2) << version;
        if (leaves) {
            EXPECT_EQ(contest.codec, "predict-planes-zstd");
            EXPECT_EQ(effort_of(contest.keys, 8, Effort::fast), Effort::none);
            EXPECT_NE(effort_of(contest.keys, 7, Effort::fast), Effort::none);
            EXPECT_EQ(node->common.counters.planned_by_key, static_cast<std::uint64_t>(version - 1));
        }
        message::PartsDone done;
        done.encoders = 1;
        done.codecs = {{"predict-planes-zstd", 1'000'000, 500'000, 700'000}};
        done.keys = {{7, Effort::fast, 1'000'000, 250'000, 100'000'000}};
        if (version > 0) done.keys.push_back({8, leaves ? Effort::none : Effort::fast, 1'000'000, leaves ? 1'000'000u : 950'000u, leaves ? 1'000'000u : 9'000'000'000u});
        for (auto& [leader, track] : side().contest->leaders) track.done = done;
        PartInfo part;
        part.bytes = 3 * image_bytes;
        side().contest->leaders.begin()->second.done->parts = {part};
        const std::vector<NodeImages> nodes = {{0, {testing::role_image(0, image_bytes)}}, {1, {testing::role_image(1, image_bytes)}}, {2, {testing::role_image(2, image_bytes)}}};
        node->subject.learn_from_success(*node->flight, nodes, static_cast<Nanos>(3 * image_bytes * 1000), false);
    }
}

// Three images of 4 Mi blocks each lie in one part, whose footer has room for 11 million pieces.
TEST_F(PlannerTest, WhereAFooterHasNoRoomForAllTurnsNothingIsMerged) {
    using testing::role_block;
    const std::string path = (std::filesystem::temp_directory_path() / ("cairn-planner-" + std::to_string(::getpid()))).string();
    ASSERT_TRUE(log_to_file(path, LogLevel::warning).ok());
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
        plan();
    }
    log_off();
    std::ifstream log(path);
    int told = 0;
    for (std::string line; std::getline(log, line);) told += line.find("not-merged") != std::string::npos && line.find("flush.merge_bytes") != std::string::npos;
    EXPECT_EQ(told, 1) << "once a job";
    std::filesystem::remove(path);
}

// A version whose leaders tell what they tried.
struct PlannerMergeTest : PlannerTest {
    void begin_trying(RoleOptions options) {
        options.settings.merge_ranks = 0;
        options.settings.merge_bytes = testing::role_block;
        begin(options);
    }
    void flushed(double apart_by_merged, bool held_back = false) {
        std::vector<NodeImages> nodes;
        for (NodeIndex each = 0; each < node->job->nodes(); ++each) nodes.push_back({each, {testing::role_image(each, image_bytes)}});
        const bool is_tried = plan().trial_merge.ranks > 1;
        message::PartsDone done;
        done.codecs = {{"zero-runs", 1'000'000, 500'000, 1'000'000'000, is_tried ? static_cast<std::uint64_t>(1000 * apart_by_merged) : 0u, is_tried ? 1000u : 0u}};
        for (auto& [leader, track] : side().contest->leaders) track.done = done;
        PartInfo part;
        part.bytes = nodes.size() * image_bytes;
        side().contest->leaders.begin()->second.done->parts = {part};
        node->subject.learn_from_success(*node->flight, nodes, static_cast<Nanos>(3 * image_bytes * 1000), held_back);
    }
};

TEST_F(PlannerMergeTest, VersionsAreMergedAsTrialsSay) {
    RoleOptions options;
    options.settings.codec = Codec::zero_runs;
    begin_trying(options);
    for (int version = 0; version < 2; ++version) {
        const Contest& contest = plan();
        EXPECT_EQ(contest.merge, MergePolicy());
        EXPECT_EQ(contest.trial_merge.ranks, merge_ranks_chosen);
        for (const auto& [leader, track] : contest.leaders) {
            EXPECT_EQ(track.lead.merge_ranks, 1u);
            EXPECT_EQ(track.lead.trial_merge_ranks, merge_ranks_chosen);
            EXPECT_EQ(track.lead.trial_merge_bytes, testing::role_block);
        }
        flushed(1.5, version == 0);
    }
    EXPECT_EQ(plan().merge.ranks, merge_ranks_chosen);
    for (const auto& [leader, track] : side().contest->leaders) EXPECT_EQ(track.lead.merge_ranks, merge_ranks_chosen);
    int tried = 0;
    for (int version = 0; version < 64; ++version) {
        flushed(1.5);
        tried += side().contest->trial_merge.ranks > 1;
        for (const auto& [leader, track] : side().contest->leaders) EXPECT_EQ(track.lead.trial_merge_ranks > 1, side().contest->trial_merge.ranks > 1);
    }
    EXPECT_LE(tried, 8);
    EXPECT_EQ(plan().merge.ranks, merge_ranks_chosen);
    for (int version = 0; version < 20; ++version) flushed(1);
    EXPECT_EQ(plan().merge, MergePolicy());
}

// Without a codec nothing is merged, and where none is tried either there is nothing to try.
TEST_F(PlannerMergeTest, TheCodecThatIsTriedIsTriedWithIt) {
    RoleOptions options;
    options.settings.codecs = {Codec::zero_runs};
    begin_trying(options);
    EXPECT_EQ(plan().trial, "zero-runs");
    EXPECT_GT(side().contest->trial_merge.ranks, 1u);
    for (int version = 0; version < 3; ++version) flushed(4);
    EXPECT_EQ(plan().codec, "zero-runs");
    EXPECT_EQ(side().contest->merge.ranks, merge_ranks_chosen);
    options.settings.codecs.clear();
    begin_trying(options);
    EXPECT_EQ(plan().trial_merge, MergePolicy());
    flushed(4);
    flushed(4);
    EXPECT_EQ(plan().merge, MergePolicy());
}

TEST_F(PlannerMergeTest, NothingIsTriedWhereItIsSetOrVersionsHaveABase) {
    RoleOptions options;
    options.settings.codec = Codec::planes;
    options.settings.full_every = 2;
    begin_trying(options);
    flushed(1);
    node->subject.learn_of_base(*node->flight);
    node->flight->key.version = 2;
    EXPECT_GT(plan().base, 0u);
    EXPECT_EQ(side().contest->trial_merge, MergePolicy());
    options.settings.full_every = 1;
    options.settings.merge_ranks = 3;
    begin(options);
    EXPECT_EQ(plan().merge.ranks, 3u);
    EXPECT_EQ(side().contest->trial_merge, MergePolicy());
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
