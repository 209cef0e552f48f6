// Versions that some ranks never seal: they end by name when a later one is committed, and leave nothing behind.
#include <gtest/gtest.h>

#include "proof/cluster.hpp"

namespace cairn {
namespace {

using testing::Cluster;
using testing::ClusterOptions;

// Every rank but one.
void capture_without(Cluster& cluster, Rank skipping, Version version) {
    for (Rank rank = 0; rank < cluster.ranks(); ++rank) {
        if (rank == skipping) continue;
        sim::Process& client = cluster.hosts[cluster.node_of(rank)].node->start_process("rank" + std::to_string(rank));
        Status captured = deadline_passed("capturing");
        const auto capture = [](Cluster& c, sim::Process& p, Rank r, Version v, Status& out) -> Task<void> {
            Status status = co_await c.capture(p, r, v);
            out = std::move(status);
        };
        EXPECT_TRUE(cluster.sim.run(capture(cluster, client, rank, version, captured), cluster.sim.now() + 60 * second));
        EXPECT_TRUE(captured.ok()) << captured.to_string();
        client.kill();
    }
}

bool ended_everywhere(const Cluster& cluster, Version version) {
    for (NodeIndex node = 0; node < cluster.hosts.size(); ++node)
        if (!cluster.state(node, version).final) return false;
    return true;
}

// While `fails`, no byte is written into parts of version 1: newer ones commit before it.
void fail_parts_of_first(Cluster& cluster, const bool& fails) {
    cluster.sim.set_observer([&](sim::Process&, const char* what, const std::string& path) {
        const bool of_first = path.find(cluster.layout.version(cluster.key(1)) + "/part-") != std::string::npos;
        cluster.sim.faults().write_error = fails && of_first && what == std::string("write") ? 1 : 0;
    });
}

TEST(Skipped, AVersionThatANodeWentPastIsGivenUpByName) {
    for (Rank skipping : {0u, 1u}) {  // the coordinator's; another's
        ClusterOptions options;
        options.ranks_per_node = {1, 1, 1};
        Cluster cluster(options);
        ASSERT_TRUE(cluster.open_job().ok());
        capture_without(cluster, skipping, 1);
        cluster.sim.run_until(cluster.sim.now() + 60 * second);
        EXPECT_FALSE(ended_everywhere(cluster, 1));  // it may come yet
        const std::string unsealed = cluster.hosts[2].daemon->unsealed_by(cluster.key(1));
        EXPECT_EQ(unsealed.find("node " + std::to_string(skipping) + " ("), 0u) << unsealed;
        ASSERT_TRUE(cluster.capture_all(2).ok());
        ASSERT_TRUE(cluster.run_until_committed(2, 60 * second)) << cluster.state(0, 2).failure.to_string();
        ASSERT_TRUE(cluster.sim.run_until([&] { return ended_everywhere(cluster, 1); }, cluster.sim.now() + 60 * second));
        const VersionState state = cluster.state(2, 1);
        EXPECT_EQ(state.failure.code(), Code::superseded);
        const std::string why = state.failure.to_string(), missing = "not sealed by node " + std::to_string(skipping);
        EXPECT_NE(why.find(missing), std::string::npos) << why;
        EXPECT_TRUE(cluster.hosts[2].daemon->drop_image(cluster.key(1), 2).ok());
        EXPECT_EQ(cluster.check_committed(cluster.key(1)).code(), Code::not_found);
        ASSERT_TRUE(cluster.capture_all(3).ok());
        ASSERT_TRUE(cluster.run_until_committed(3, 60 * second)) << cluster.state(0, 3).failure.to_string();
    }
}

// What ranks went past is told by the newest version that was committed, not by the last one: an older one may be late.
TEST(Skipped, AnOlderVersionThatCommitsLateHidesNoNewerOne) {
    ClusterOptions options;
    options.ranks_per_node = {1, 1, 1};
    options.settings.retry_wait = second;
    Cluster cluster(options);
    ASSERT_TRUE(cluster.open_job().ok());
    bool fails = true;
    fail_parts_of_first(cluster, fails);
    ASSERT_TRUE(cluster.capture_all(1).ok());
    capture_without(cluster, 1, 2);
    ASSERT_TRUE(cluster.capture_all(3).ok());
    ASSERT_TRUE(cluster.run_until_committed(3, 60 * second)) << cluster.state(0, 3).failure.to_string();
    fails = false;
    ASSERT_TRUE(cluster.run_until_committed(1, 60 * second)) << cluster.state(0, 1).failure.to_string();
    EXPECT_FALSE(ended_everywhere(cluster, 2)) << "not before the other";
    EXPECT_TRUE(cluster.sim.run_until([&] { return ended_everywhere(cluster, 2); }, cluster.sim.now() + 120 * second));
}

// A node whose daemon is away had sealed it: its ranks did not go past it, and it commits when the daemon is back.
TEST(Skipped, AVersionOfANodeThatIsAwayIsNotGivenUp) {
    ClusterOptions options;
    options.ranks_per_node = {1, 1, 1};
    Cluster cluster(options);
    ASSERT_TRUE(cluster.open_job().ok());
    bool fails = true;
    fail_parts_of_first(cluster, fails);
    ASSERT_TRUE(cluster.capture_all(1).ok());
    ASSERT_TRUE(cluster.capture_all(2).ok());
    ASSERT_TRUE(cluster.run_until_committed(2, 120 * second)) << cluster.state(0, 2).failure.to_string();
    cluster.kill_daemon(2);
    cluster.sim.run_until(cluster.sim.now() + 120 * second);
    EXPECT_FALSE(cluster.state(0, 1).final);
    fails = false;
    cluster.start_daemon(2);
    ASSERT_TRUE(cluster.run_until_committed(1, 200 * second)) << cluster.state(0, 1).failure.to_string();
}

// Nor when nobody remembers that it had sealed it: a coordinator that was started again waits for those that it has not heard of, until they say themselves.
TEST(Skipped, AVersionOfANodeThatWasNotHeardOfIsNotGivenUp) {
    ClusterOptions options;
    options.ranks_per_node = {1, 1, 1};
    Cluster cluster(options);
    ASSERT_TRUE(cluster.open_job().ok());
    bool fails = true;
    fail_parts_of_first(cluster, fails);
    ASSERT_TRUE(cluster.capture_all(1).ok());
    ASSERT_TRUE(cluster.capture_all(2).ok());
    ASSERT_TRUE(cluster.run_until_committed(2, 120 * second)) << cluster.state(0, 2).failure.to_string();
    cluster.kill_daemon(2);
    cluster.kill_daemon(0);
    cluster.start_daemon(0);
    cluster.sim.run_until(cluster.sim.now() + 120 * second);
    EXPECT_EQ(cluster.state(0, 2).level, Level::committed);
    EXPECT_FALSE(cluster.state(0, 1).final) << cluster.state(0, 1).failure.to_string();
    fails = false;
    cluster.start_daemon(2);
    ASSERT_TRUE(cluster.run_until_committed(1, 200 * second)) << cluster.state(0, 1).failure.to_string();
}

// Nor while a node has not gone through its scratch: what it does not know yet it does not lack.
TEST(Skipped, AVersionThatANodeMayHoldUnseenIsNotGivenUp) {
    for (Rank skipping : {0u, 1u}) {  // the coordinator's; another's
        ClusterOptions options;
        options.ranks_per_node = {1, 1, 1};
        Cluster cluster(options);
        ASSERT_TRUE(cluster.open_job().ok());
        cluster.hosts[skipping].unseen->all = true;
        capture_without(cluster, skipping, 1);
        ASSERT_TRUE(cluster.capture_all(2).ok());
        ASSERT_TRUE(cluster.run_until_committed(2, 60 * second)) << cluster.state(0, 2).failure.to_string();
        cluster.sim.run_until(cluster.sim.now() + 120 * second);
        EXPECT_FALSE(ended_everywhere(cluster, 1)) << cluster.state(0, 1).failure.to_string();
        cluster.hosts[skipping].unseen->all = false;
        EXPECT_TRUE(cluster.sim.run_until([&] { return ended_everywhere(cluster, 1); }, cluster.sim.now() + 60 * second));
    }
}

// A coordinator's daemon that stood still has a successor, which the others speak to: that nobody speaks to the first any more says nothing.
TEST(Skipped, AFormerCoordinatorGivesNothingUpThatItsSuccessorMayHold) {
    ClusterOptions options;
    options.ranks_per_node = {1, 1};
    options.settings.version_wait = 60 * second;
    Cluster cluster(options);
    ASSERT_TRUE(cluster.open_job().ok());
    bool fails = true;
    fail_parts_of_first(cluster, fails);
    capture_without(cluster, 0, 1);
    cluster.succeed_daemon(0);
    capture_without(cluster, 1, 1);
    const auto follows = [&] { return cluster.state(1, 1).level == Level::sealed; };
    ASSERT_TRUE(cluster.sim.run_until(follows, cluster.sim.now() + 60 * second));
    cluster.hosts[0].formers[0].process->resume();
    cluster.sim.run_until(cluster.sim.now() + 300 * second);
    EXPECT_FALSE(cluster.hosts[0].formers[0].daemon->state(cluster.key(1)).final) << cluster.hosts[0].formers[0].daemon->state(cluster.key(1)).failure.to_string();
    EXPECT_FALSE(ended_everywhere(cluster, 1)) << cluster.state(0, 1).failure.to_string();
    fails = false;
    EXPECT_TRUE(cluster.run_until_committed(1, 200 * second)) << cluster.state(0, 1).failure.to_string();
}

// A batch system suspends all daemons for longer than anybody waits, before the last rank has sealed: that is no silence.
TEST(Skipped, AJobThatIsSuspendedAsAWholeLosesNoVersion) {
    ClusterOptions options;
    options.ranks_per_node = {1, 1};
    options.settings.version_wait = 60 * second;
    Cluster cluster(options);
    ASSERT_TRUE(cluster.open_job().ok());
    capture_without(cluster, 0, 1);
    cluster.sim.run_until(cluster.sim.now() + 5 * second);
    for (const testing::Host& host : cluster.hosts) host.process->pause();
    cluster.sim.run_until(cluster.sim.now() + 600 * second);
    for (const testing::Host& host : cluster.hosts) host.process->resume();
    cluster.sim.run_until(cluster.sim.now() + 5 * second);
    EXPECT_FALSE(ended_everywhere(cluster, 1)) << cluster.state(0, 1).failure.to_string();
    ASSERT_TRUE(cluster.capture_all(1).ok() || cluster.state(0, 1).level != Level::none);
    EXPECT_TRUE(cluster.run_until_committed(1, 120 * second)) << cluster.state(0, 1).failure.to_string();
}

// It may be tried again as long as its images are there; who needs room need not wait for that.
TEST(Skipped, AVersionThatFailedHoldsNoScratch) {
    ClusterOptions options;
    options.ranks_per_node = {1, 1};
    options.settings.version_wait = 10 * second;
    Cluster cluster(options);
    ASSERT_TRUE(cluster.open_job().ok());
    capture_without(cluster, 0, 1);
    EXPECT_EQ(cluster.hosts[1].daemon->drop_image(cluster.key(1), 1).code(), Code::already_exists);
    ASSERT_TRUE(cluster.sim.run_until([&] { return !cluster.state(1, 1).failure.ok(); }, cluster.sim.now() + 60 * second));
    EXPECT_FALSE(cluster.state(1, 1).final);
    const Status dropped = cluster.hosts[1].daemon->drop_image(cluster.key(1), 1);
    EXPECT_TRUE(dropped.ok()) << dropped.to_string();
}

// Its coordinator does not come back, or has forgotten the job: the others find out by themselves that nobody will say how it ends, and need not keep it.
TEST(Skipped, AVersionWhoseCoordinatorIsSilentForLongHoldsNoScratch) {
    ClusterOptions options;
    options.ranks_per_node = {1, 1};
    options.settings.version_wait = 60 * second;
    Cluster cluster(options);
    ASSERT_TRUE(cluster.open_job().ok());
    bool fails = true;
    fail_parts_of_first(cluster, fails);
    ASSERT_TRUE(cluster.capture_all(1).ok());
    cluster.kill_daemon(0);
    const auto told = [&](Code code) { return [&, code] { return cluster.state(1, 1).failure.code() == code; }; };
    ASSERT_TRUE(cluster.sim.run_until(told(Code::unavailable), cluster.sim.now() + 30 * second));
    cluster.sim.run_until(cluster.sim.now() + 20 * second);
    cluster.hosts[1].process->pause();  // that it hears nobody meanwhile is its own doing
    cluster.sim.run_until(cluster.sim.now() + 600 * second);
    cluster.hosts[1].process->resume();
    cluster.sim.run_until(cluster.sim.now() + 10 * second);
    EXPECT_EQ(cluster.state(1, 1).failure.code(), Code::unavailable) << cluster.state(1, 1).failure.to_string();
    EXPECT_TRUE(cluster.sim.run_until(told(Code::deadline), cluster.sim.now() + 60 * second)) << cluster.state(1, 1).failure.to_string();
    EXPECT_FALSE(cluster.state(1, 1).final);
    fails = false;  // it may come yet
    cluster.start_daemon(0);
    EXPECT_TRUE(cluster.run_until_committed(1, 120 * second)) << cluster.state(1, 1).failure.to_string();
}

// A node has lost its scratch: the attempt fails by its silence, and nothing better comes.
TEST(Skipped, AVersionThatCanNotBeCompleteAnyMoreHoldsNoScratch) {
    ClusterOptions options;
    options.ranks_per_node = {1, 1, 1};
    options.settings.version_wait = 60 * second;
    Cluster cluster(options);
    ASSERT_TRUE(cluster.open_job().ok());
    bool fails = true;
    fail_parts_of_first(cluster, fails);
    ASSERT_TRUE(cluster.capture_all(1).ok());
    cluster.crash_node(2);
    const auto told = [&](Code code) { return [&, code] { return cluster.state(1, 1).failure.code() == code; }; };
    ASSERT_TRUE(cluster.sim.run_until([&] { return !cluster.state(1, 1).failure.ok(); }, cluster.sim.now() + 60 * second));
    cluster.restart_node(2);
    cluster.start_daemon(2);
    EXPECT_TRUE(cluster.sim.run_until(told(Code::deadline), cluster.sim.now() + 200 * second)) << cluster.state(1, 1).failure.to_string();
}

// Of a version that failed one node's images leave scratch. There it has ended, and is forgotten; its coordinator goes on while others hold theirs, and tells of it
// again. It ends everywhere when the coordinator's own images leave, too.
TEST(Skipped, AVersionThatLeftOneNodeIsToldOfAgainUntilItsCoordinatorEndsIt) {
    ClusterOptions options;
    options.ranks_per_node = {1, 1, 1};
    options.settings.limits.versions = 1;
    Cluster cluster(options);
    ASSERT_TRUE(cluster.open_job().ok());
    bool fails = true;
    fail_parts_of_first(cluster, fails);
    ASSERT_TRUE(cluster.capture_all(1).ok());
    ASSERT_TRUE(cluster.sim.run_until([&] { return cluster.hosts[1].daemon->drop_image(cluster.key(1), 1).ok(); }, cluster.sim.now() + 60 * second));
    const Node& node = *cluster.hosts[1].daemon;
    EXPECT_TRUE(node.state(cluster.key(1)).final);
    bool was_forgotten = false;
    for (Version version : {2, 3}) {
        ASSERT_TRUE(cluster.capture_all(version).ok());
        was_forgotten |= node.state(cluster.key(1)).level == Level::none;
        ASSERT_TRUE(cluster.run_until_committed(version, 120 * second)) << cluster.state(0, version).failure.to_string();
    }
    EXPECT_TRUE(was_forgotten);
    cluster.sim.run_until(cluster.sim.now() + 60 * second);
    EXPECT_EQ(node.versions().back(), cluster.key(1)) << "anew";
    EXPECT_FALSE(node.state(cluster.key(1)).final || cluster.state(0, 1).final);
    EXPECT_TRUE(cluster.sim.run_until([&] { return cluster.hosts[0].daemon->drop_image(cluster.key(1), 0).ok(); }, cluster.sim.now() + 120 * second));
    EXPECT_TRUE(cluster.sim.run_until([&] { return ended_everywhere(cluster, 1); }, cluster.sim.now() + 60 * second));
}

// The last version of a job, of which nobody holds anything any more.
TEST(Skipped, AVersionThatNobodyHoldsAnyMoreIsForgotten) {
    ClusterOptions options;
    options.ranks_per_node = {1, 1};
    options.settings.version_wait = 60 * second;
    Cluster cluster(options);
    ASSERT_TRUE(cluster.open_job().ok());
    capture_without(cluster, 0, 1);
    const auto told = [&] { return !cluster.state(1, 1).failure.ok(); };
    ASSERT_TRUE(cluster.sim.run_until(told, cluster.sim.now() + 120 * second));
    cluster.crash_node(1);
    EXPECT_FALSE(cluster.state(0, 1).final);
    ASSERT_TRUE(cluster.sim.run_until([&] { return cluster.state(0, 1).final; }, cluster.sim.now() + 120 * second));
    const std::string why = cluster.state(0, 1).failure.to_string();
    EXPECT_NE(why.find("not sealed by node 0"), std::string::npos) << why;
}

// Weeks of versions of which every second one lacks node 0.
TEST(Skipped, TheirNumberDoesNotFillTheMemory) {
    ClusterOptions options;
    options.ranks_per_node = {1, 1};
    options.image_bytes = [](Rank, Version) { return 10'000; };
    options.settings.peer_wait = 2 * second;
    Cluster cluster(options);
    ASSERT_TRUE(cluster.open_job().ok());
    for (Version version = 1; version < 200; version += 2) {
        capture_without(cluster, 0, version);
        ASSERT_TRUE(cluster.capture_all(version + 1).ok());
        ASSERT_TRUE(cluster.run_until_committed(version + 1, 60 * second));
        ASSERT_TRUE(cluster.sim.run_until([&] { return ended_everywhere(cluster, version); }, cluster.sim.now() + 60 * second));
        for (NodeIndex node : {0u, 1u})
            for (Version done : {version, version + 1}) EXPECT_TRUE(cluster.hosts[node].daemon->drop_image(cluster.key(done), node).ok());
    }
    for (const testing::Host& host : cluster.hosts) EXPECT_LE(host.daemon->versions().size(), 70u);
}

}  // namespace
}  // namespace cairn
