// Flushes on the simulated cluster: every division of nodes, ranks and files ends in exactly K parts that give every byte back.
#include <gtest/gtest.h>

#include "proof/cluster.hpp"

namespace cairn {
namespace {

using testing::Cluster;
using testing::ClusterOptions;

struct Shape {
    std::vector<std::uint32_t> ranks_per_node;
    std::uint32_t files;
};

class FlushShapes : public ::testing::TestWithParam<std::tuple<int, Placement>> {};

const Shape shapes[] = {{{1}, 1}, {{4}, 3}, {{2, 2}, 1}, {{2, 2}, 2}, {{2, 2}, 3}, {{2, 2}, 4}, {{1, 3, 2}, 2}, {{1, 3, 2}, 5}, {{1, 1, 1, 1, 1, 1, 1, 1}, 3}};

TEST_P(FlushShapes, CommitExactlyKPartsAndGiveEveryByteBack) {
    const Shape& shape = shapes[std::get<0>(GetParam())];
    ClusterOptions options;
    options.ranks_per_node = shape.ranks_per_node;
    options.files = shape.files;
    options.settings.placement = std::get<1>(GetParam());
    options.settings.buffer_bytes = 64 << 10;
    options.settings.buffers = 3;
    // uneven, one of them empty, some not a multiple of the block
    options.image_bytes = [](Rank rank, Version version) { return rank == 1 ? 0 : 150'000ull * (rank + 1) + 17 * version; };
    Cluster cluster(options);
    ASSERT_TRUE(cluster.open_job().ok());
    for (Version version = 1; version <= 3; ++version) {
        const Status captured = cluster.capture_all(version);
        ASSERT_TRUE(captured.ok()) << captured.to_string();
        ASSERT_TRUE(cluster.run_until_committed(version, 60 * second)) << cluster.state(0, version).failure.to_string();
        const Status whole = cluster.check_committed(cluster.key(version), version % shape.ranks_per_node.size());
        EXPECT_TRUE(whole.ok()) << whole.to_string();
    }
    const auto newest = cluster.newest_committed();
    ASSERT_TRUE(newest.ok()) << newest.status().to_string();
    ASSERT_TRUE(newest->has_value());
    EXPECT_EQ((*newest)->key, cluster.key(3));
}

INSTANTIATE_TEST_SUITE_P(All, FlushShapes,
                         ::testing::Combine(::testing::Range(0, static_cast<int>(std::size(shapes))),
                                            ::testing::Values(Placement::append, Placement::interleaved, Placement::contiguous)));

// ispdc23's split: however images and writers divide, with work that moves and without, every byte arrives.
class LocalSplits : public ::testing::TestWithParam<std::tuple<int, Placement>> {};

TEST_P(LocalSplits, WholeImagesPerWriterGiveEveryByteBack) {
    for (std::uint32_t writers : {1u, 3u, 16u}) {
        const Shape& shape = shapes[std::get<0>(GetParam())];
        ClusterOptions options;
        options.ranks_per_node = shape.ranks_per_node;
        options.files = shape.files;
        options.settings.placement = std::get<1>(GetParam());
        options.settings.local_split = LocalSplit::files;
        options.settings.writers = writers;
        options.settings.buffer_bytes = 64 << 10;
        options.settings.buffers = 3;
        options.image_bytes = [](Rank rank, Version) { return rank == 1 ? 0 : 150'000ull * (rank + 1); };
        Cluster cluster(options);
        ASSERT_TRUE(cluster.open_job().ok());
        ASSERT_TRUE(cluster.capture_all(1).ok());
        ASSERT_TRUE(cluster.run_until_committed(1, 60 * second)) << cluster.state(0, 1).failure.to_string();
        const Status whole = cluster.check_committed(cluster.key(1));
        EXPECT_TRUE(whole.ok()) << whole.to_string();
    }
}

INSTANTIATE_TEST_SUITE_P(All, LocalSplits,
                         ::testing::Combine(::testing::Range(0, static_cast<int>(std::size(shapes))),
                                            ::testing::Values(Placement::append, Placement::interleaved, Placement::contiguous)));

// What each writer wrote tells whose the images were; and the two times of a flush are in order.
TEST(Flush, WholeImagesAreDealtOutLargestFirst) {
    ClusterOptions options;
    options.ranks_per_node = {4};
    options.settings.local_split = LocalSplit::files;
    options.settings.writers = 3;
    options.image_bytes = [](Rank rank, Version) { return 1'000'000ull * (rank + 1); };
    Cluster cluster(options);
    ASSERT_TRUE(cluster.open_job().ok());
    ASSERT_TRUE(cluster.capture_all(1).ok());
    ASSERT_TRUE(cluster.run_until_committed(1, 60 * second)) << cluster.state(0, 1).failure.to_string();
    const NodeCounters& counters = cluster.hosts[0].daemon->counters();
    ASSERT_EQ(counters.writers.size(), 3u);
    EXPECT_EQ(counters.writers[0].local_bytes, 5'000'000u);
    EXPECT_EQ(counters.writers[1].local_bytes, 3'000'000u);
    EXPECT_EQ(counters.writers[2].local_bytes, 2'000'000u);
    EXPECT_GT(counters.last_write_s, 0);
    EXPECT_LE(counters.last_write_s, counters.last_flush_s);
}

// Leader, follower or neither: who waits does not hear of a daemon that is back at once.
TEST(Flush, NobodyIsToldOfADaemonThatIsBackAtOnce) {
    for (NodeIndex victim : {1u, 2u}) {
        ClusterOptions options;
        options.ranks_per_node = {1, 1, 1};
        options.settings.leaders = 2;
        options.image_bytes = [](Rank, Version) { return 3'000'000; };
        options.model.persistent_rate = 1e6;
        Cluster cluster(options);
        ASSERT_TRUE(cluster.open_job().ok());
        ASSERT_TRUE(cluster.capture_all(1).ok());
        cluster.sim.run_until(cluster.sim.now() + second);
        cluster.kill_daemon(victim);
        cluster.sim.run_until(cluster.sim.now() + second / 2);
        cluster.start_daemon(victim);
        const auto told = [&] { return !cluster.state(0, 1).failure.ok(); };
        const auto ended = [&] { return told() || cluster.state(0, 1).final; };
        ASSERT_TRUE(cluster.sim.run_until(ended, cluster.sim.now() + 100 * second));
        EXPECT_FALSE(told()) << cluster.state(0, 1).failure.to_string();
        const Status whole = cluster.check_committed(cluster.key(1));
        EXPECT_TRUE(whole.ok()) << whole.to_string();
    }
}

TEST(Flush, FinishesAfterADaemonWasKilledAndStartedAgain) {
    for (NodeIndex victim : {0u, 1u}) {
        ClusterOptions options;
        options.files = 2;
        options.image_bytes = [](Rank, Version) { return 3'000'000; };
        options.model.persistent_rate = 1e6;  // slow enough to be in the middle of it
        Cluster cluster(options);
        ASSERT_TRUE(cluster.open_job().ok());
        ASSERT_TRUE(cluster.capture_all(1).ok());
        cluster.sim.run_until(cluster.sim.now() + second);
        cluster.kill_daemon(victim);
        cluster.sim.run_until(cluster.sim.now() + 5 * second);
        cluster.start_daemon(victim);
        ASSERT_TRUE(cluster.run_until_committed(1, 300 * second)) << cluster.state(1 - victim, 1).failure.to_string();
        const Status whole = cluster.check_committed(cluster.key(1));
        EXPECT_TRUE(whole.ok()) << whole.to_string();
    }
}

// A follower has nothing to say until it is asked: with few buffers its turn may come long after peer_wait.
TEST(Flush, AFollowerThatIsAskedLateIsNotTakenForSilent) {
    ClusterOptions options;
    options.ranks_per_node = {1, 1, 1};
    options.settings.placement = Placement::contiguous;  // asks one follower after the other
    options.settings.writers = 1;
    options.settings.buffers = 1;
    options.settings.buffer_bytes = 64 << 10;
    options.settings.heartbeat = 100 * millisecond;
    options.settings.peer_wait = 2 * second;
    // node 1 leads: to node 0, the coordinator, all nodes speak anyway
    options.image_bytes = [](Rank rank, Version) { return rank == 1 ? 2'000'000 : 1'000'000; };
    options.model.network_latency = 150 * millisecond;  // longer than a heartbeat: one falls between question and answer
    Cluster cluster(options);
    ASSERT_TRUE(cluster.open_job().ok());
    ASSERT_TRUE(cluster.capture_all(1).ok());
    ASSERT_TRUE(cluster.run_until_committed(1, 60 * second)) << cluster.state(0, 1).failure.to_string();
    for (const testing::Host& host : cluster.hosts) EXPECT_EQ(host.daemon->counters().attempts_failed, 0u);
}

// The first leader of a part may be done with all that it had to do when the answer to another one's share is found to be lost.
TEST(Flush, AShareWhoseAnswerWasLostIsAnsweredAgain) {
    ClusterOptions options;
    options.seed = 2;  // where so many messages are lost, one in twenty loses all that a leader says in peer_wait
    options.ranks_per_node = {1, 1, 1, 1};
    options.files = 1;
    options.settings.leaders = 4;
    options.image_bytes = [](Rank, Version) { return 1'000'000; };
    Cluster cluster(options);
    ASSERT_TRUE(cluster.open_job().ok());
    cluster.sim.faults().message_loss = 0.3;
    for (Version version = 1; version <= 8; ++version) {
        ASSERT_TRUE(cluster.capture_all(version).ok());
        ASSERT_TRUE(cluster.run_until_committed(version, options.settings.version_wait / 2)) << cluster.state(0, version).failure.to_string();
        EXPECT_TRUE(cluster.check_committed(cluster.key(version)).ok());
    }
    EXPECT_EQ(cluster.hosts[0].daemon->counters().attempts_failed, 0u);
}

TEST(Flush, ALeaderDoesNotWaitForEverForACoordinatorThatIsGone) {
    ClusterOptions options;
    options.ranks_per_node = {1, 1};
    options.files = 2;
    options.image_bytes = [](Rank, Version) { return 3'000'000; };
    options.model.persistent_rate = 1e6;
    Cluster cluster(options);
    ASSERT_TRUE(cluster.open_job().ok());
    ASSERT_TRUE(cluster.capture_all(1).ok());
    cluster.sim.run_until(cluster.sim.now() + second);
    cluster.crash_node(0);
    const auto parts = [&] {
        const auto entries = cluster.sim.persistent().list(cluster.layout.version(cluster.key(1)));
        return entries.ok() ? std::count_if(entries->begin(), entries->end(), [](const auto& e) { return e.name.starts_with("part-0001"); }) : 0;
    };
    cluster.sim.run_until(cluster.sim.now() + 60 * second);
    EXPECT_EQ(parts(), 1);  // it may come back
    cluster.sim.run_until(cluster.sim.now() + 2 * options.settings.version_wait);
    EXPECT_EQ(parts(), 0);
}

// Between link(2) and the removal of the first name, and a little later.
TEST(Flush, ACoordinatorKilledWhileItPublishesLeavesNothingBeside) {
    for (Nanos later : {0, 1, 2, 5, 10}) {
        Cluster cluster(ClusterOptions{});
        ASSERT_TRUE(cluster.open_job().ok());
        ASSERT_TRUE(cluster.capture_all(1).ok());
        const std::string manifest = cluster.layout.manifest(cluster.key(1));
        ASSERT_TRUE(cluster.sim.run_until([&] { return cluster.sim.persistent().find(manifest).ok(); }, cluster.sim.now() + 60 * second));
        cluster.sim.run_until(cluster.sim.now() + later * millisecond);
        cluster.kill_daemon(0);
        cluster.sim.run_until(cluster.sim.now() + second);
        cluster.start_daemon(0);
        ASSERT_TRUE(cluster.run_until_committed(1, 60 * second));
        cluster.sim.run_until(cluster.sim.now() + second);
        const auto entries = cluster.sim.persistent().list(cluster.layout.version(cluster.key(1)));
        ASSERT_TRUE(entries.ok());
        EXPECT_EQ(entries->size(), 2u) << entries->front().name;  // one part and the manifest
    }
}

// What the other leaders wrote in an attempt that failed must not take the room of the next one.
TEST(Flush, FailedAttemptsLeaveNoPartsBehind) {
    ClusterOptions options;
    options.files = 2;
    options.ranks_per_node = {1, 1};
    options.image_bytes = [](Rank rank, Version) { return rank == 0 ? 1'000'000 : 4'000'000; };
    options.model.persistent_bytes_max = 4'000'000;
    options.model.persistent_client_rate = 1e6;  // node 0 has reported long before node 1 finds it full
    Cluster cluster(options);
    ASSERT_TRUE(cluster.open_job().ok());
    ASSERT_TRUE(cluster.capture_all(1).ok());
    const auto tried = [&] { return cluster.hosts[0].daemon->counters().attempts_failed > 5; };
    ASSERT_TRUE(cluster.sim.run_until(tried, cluster.sim.now() + 300 * second));
    cluster.sim.model().persistent_bytes_max = 5'500'000;  // one attempt and no more
    ASSERT_TRUE(cluster.run_until_committed(1, 300 * second)) << cluster.state(0, 1).failure.to_string();
    const Status whole = cluster.check_committed(cluster.key(1));
    EXPECT_TRUE(whole.ok()) << whole.to_string();
}

// A daemon that was started for a job with small blocks is asked to flush large ones: no chunk would ever fill.
TEST(Flush, BlocksLargerThanABufferAreRefused) {
    ClusterOptions options;
    options.settings.buffer_bytes = 64 << 10;
    options.block_bytes = 1 << 20;
    Cluster cluster(options);
    ASSERT_TRUE(cluster.open_job().ok());
    const Status captured = cluster.capture_all(1);
    EXPECT_EQ(captured.code(), Code::invalid_argument);
    EXPECT_NE(captured.text().find("flush.buffer_bytes"), std::string::npos) << captured.to_string();
}

// The first one may be flushed already: the second must not be taken for it.
TEST(Flush, AnImageThatIsNotFilledIsRefused) {
    Cluster cluster({});
    ASSERT_TRUE(cluster.open_job().ok());
    LocalImage image;
    image.header.key = cluster.key(1);
    image.header.block_bytes = cluster.options.block_bytes;
    image.header.image.bytes = 100;
    image.data = sim::describe_once(1, 60);
    image.readable = Readable::once;
    const Status added = cluster.hosts[0].daemon->add_image(image);
    EXPECT_EQ(added.code(), Code::invalid_argument);
    EXPECT_NE(added.text().find("60 of its 100 bytes"), std::string::npos) << added.text();
}

// Sizes are told when images begin; what is sealed counts.
TEST(Flush, AVersionIsPlannedWhileItsImagesAreFilled) {
    for (const bool wrong : {false, true}) {
        ClusterOptions options;
        options.ranks_per_node = {1, 3, 2};
        options.files = 2;
        options.begins = [wrong](Rank rank, Version, std::uint64_t bytes) { return std::optional(wrong && rank == 4 ? 3 * bytes : bytes); };
        Cluster cluster(options);
        ASSERT_TRUE(cluster.open_job().ok());
        for (const Version version : {1u, 2u}) {
            ASSERT_TRUE(cluster.capture_all(version).ok());
            ASSERT_TRUE(cluster.run_until_committed(version, 60 * second)) << cluster.state(0, version).failure.to_string();
            EXPECT_TRUE(cluster.check_committed(cluster.key(version)).ok());
        }
        EXPECT_EQ(cluster.hosts[0].daemon->counters().planned_ahead, wrong ? 0u : 2u);
        EXPECT_EQ(cluster.hosts[0].daemon->counters().attempts_failed, 0u);
        for (const auto& host : cluster.hosts) EXPECT_EQ(host.daemon->filling(), 0u);
    }
}

// They lie in no slot: what is committed is all that there is of them.
TEST(Flush, ImagesThatCanBeReadOnceOnlyAreCommitted) {
    for (const Placement placement : {Placement::append, Placement::interleaved, Placement::contiguous}) {
        ClusterOptions options;
        options.ranks_per_node = {1, 3, 2};
        options.settings.placement = placement;
        options.settings.buffer_bytes = 64 << 10;
        options.once = [](Rank rank, Version) { return rank != 2; };
        options.image_bytes = [](Rank rank, Version) { return rank == 1 ? 0 : 150'000ull * (rank + 1); };
        Cluster cluster(options);
        ASSERT_TRUE(cluster.open_job().ok());
        ASSERT_TRUE(cluster.capture_all(1).ok());
        ASSERT_TRUE(cluster.run_until_committed(1, 60 * second)) << cluster.state(0, 1).failure.to_string();
        const Status whole = cluster.check_committed(cluster.key(1));
        EXPECT_TRUE(whole.ok()) << whole.to_string();
        EXPECT_EQ(cluster.hosts[0].daemon->counters().attempts_failed, 0u);
    }
}

// An attempt fails after it has read some: the version is given up by name, at once, and the next one is committed.
TEST(Flush, WhatAFailedAttemptHasReadOfThemIsUsedUp) {
    ClusterOptions options;
    options.settings.leaders = 1;
    options.settings.buffer_bytes = 2 * options.block_bytes;
    options.once = [](Rank rank, Version version) { return rank == 3 && version == 1; };
    Cluster cluster(options);
    bool fails = true;
    cluster.sim.set_observer([&](sim::Process&, const char* what, const std::string& path) {
        cluster.sim.faults().fsync_error = fails && what == std::string("fsync") && path.find("part-") != std::string::npos ? 1 : 0;
    });
    ASSERT_TRUE(cluster.open_job().ok());
    ASSERT_TRUE(cluster.capture_all(1).ok());
    const auto over = [&] { return cluster.state(0, 1).final && cluster.state(1, 1).final; };
    ASSERT_TRUE(cluster.sim.run_until(over, cluster.sim.now() + 60 * second));
    for (const NodeIndex node : {0u, 1u}) {
        const Status why = cluster.state(node, 1).failure;
        EXPECT_EQ(why.code(), Code::superseded);
        EXPECT_NE(why.text().find("given up: rank 3's image, which can be read once only"), std::string::npos) << why.text();
    }
    fails = false;
    ASSERT_TRUE(cluster.capture_all(2).ok());
    EXPECT_TRUE(cluster.run_until_committed(2, 60 * second)) << cluster.state(0, 2).failure.to_string();
}

// Their ranks have them still, and give them to the next attempt.
TEST(Flush, ImagesThatRanksGiveOutliveAnAttemptThatFails) {
    for (const FileLayout layout : {FileLayout::parts, FileLayout::ranks, FileLayout::nodes}) {
        ClusterOptions options;
        options.ranks_per_node = {1, 3, 2};
        options.layout = layout;
        options.settings.buffer_bytes = 2 * options.block_bytes;
        options.image_bytes = [](Rank rank, Version) { return rank == 1 ? 0 : 150'000ull * (rank + 1); };
        options.asked = [](Rank rank, Version) { return rank == 2 ? std::nullopt : std::optional(testing::GivingWay{rank, false, std::nullopt}); };
        Cluster cluster(options);
        int fails = 2;
        cluster.sim.set_observer([&](sim::Process&, const char* what, const std::string& path) {
            const bool is_of_a_part = what == std::string("fsync") && path.substr(path.rfind('/') + 1).find("-of-") != std::string::npos;
            cluster.sim.faults().fsync_error = is_of_a_part && fails > 0 ? 1 : 0;
            if (is_of_a_part) --fails;
        });
        ASSERT_TRUE(cluster.open_job().ok());
        ASSERT_TRUE(cluster.capture_all(1).ok());
        ASSERT_TRUE(cluster.run_until_committed(1, 60 * second)) << cluster.state(0, 1).failure.to_string();
        const Status whole = cluster.check_committed(cluster.key(1));
        EXPECT_TRUE(whole.ok()) << whole.to_string();
        EXPECT_GE(cluster.hosts[0].daemon->counters().attempts_failed, 1u);
        bool any_again = false;
        for (const auto& [whose, giving] : cluster.giving) any_again |= giving->was_asked_again;
        EXPECT_TRUE(any_again);
    }
}

TEST(Flush, ARankThatLeavesWhileItGivesEndsItsVersionByName) {
    ClusterOptions options;
    options.settings.buffer_bytes = 2 * options.block_bytes;
    options.asked = [](Rank rank, Version version) { return std::optional(testing::GivingWay{rank, false, rank == 3 && version == 1 ? std::optional<std::uint64_t>(3) : std::nullopt}); };
    Cluster cluster(options);
    ASSERT_TRUE(cluster.open_job().ok());
    ASSERT_TRUE(cluster.capture_all(1).ok());
    const auto over = [&] { return cluster.state(0, 1).final && cluster.state(1, 1).final; };
    ASSERT_TRUE(cluster.sim.run_until(over, cluster.sim.now() + 60 * second));
    for (const NodeIndex node : {0u, 1u}) {
        const Status why = cluster.state(node, 1).failure;
        EXPECT_EQ(why.code(), Code::superseded);
        EXPECT_NE(why.text().find("given up: rank 3's image, which its process gives when it is asked"), std::string::npos) << why.text();
    }
    ASSERT_TRUE(cluster.capture_all(2).ok());
    EXPECT_TRUE(cluster.run_until_committed(2, 60 * second)) << cluster.state(0, 2).failure.to_string();
}

TEST(Flush, AnotherImageOfTheSameVersionIsRefused) {
    Cluster cluster(ClusterOptions{});
    ASSERT_TRUE(cluster.open_job().ok());
    ASSERT_TRUE(cluster.capture_all(1).ok());
    const Status again = cluster.capture_all(1);  // into other slots
    EXPECT_EQ(again.code(), Code::already_exists) << again.to_string();
    ASSERT_TRUE(cluster.run_until_committed(1, 60 * second));
    EXPECT_TRUE(cluster.check_committed(cluster.key(1)).ok());
}

TEST(Flush, NamesTheRanksOfANodeThatIsLost) {
    ClusterOptions options;
    options.ranks_per_node = {1, 1, 1};
    options.image_bytes = [](Rank, Version) { return 3'000'000; };
    options.model.persistent_rate = 1e6;
    Cluster cluster(options);
    ASSERT_TRUE(cluster.open_job().ok());
    ASSERT_TRUE(cluster.capture_all(1).ok());
    ASSERT_TRUE(cluster.run_until_committed(1, 60 * second));
    ASSERT_TRUE(cluster.capture_all(2).ok());
    cluster.sim.run_until(cluster.sim.now() + second);
    cluster.crash_node(2);
    const auto told = [&] { return !cluster.state(0, 2).failure.ok() && !cluster.state(1, 2).failure.ok(); };
    ASSERT_TRUE(cluster.sim.run_until(told, cluster.sim.now() + 120 * second));
    EXPECT_NE(cluster.state(0, 2).failure.text().find("rank 2"), std::string::npos) << cluster.state(0, 2).failure.to_string();
    const auto newest = cluster.newest_committed();
    ASSERT_TRUE(newest.ok() && newest->has_value());
    EXPECT_EQ((*newest)->key.version, 1u);
    EXPECT_TRUE(cluster.check_committed(cluster.key(1)).ok());
}

}  // namespace
}  // namespace cairn
