// Dedicated I/O nodes on the simulated cluster: they write everything while they are there, and nobody misses them when they are not. What one does by itself
// is in engine/io_node/io_node_test.cpp.
#include <gtest/gtest.h>

#include "format/message.hpp"
#include "proof/cluster.hpp"

namespace cairn {
namespace {

using testing::Cluster;
using testing::ClusterOptions;

class IoNode : public ::testing::Test {
  protected:
    static ClusterOptions options_of(std::vector<std::uint32_t> ranks_per_node) {
        ClusterOptions options;
        options.ranks_per_node = std::move(ranks_per_node);
        options.files = 2;
        options.settings.attempts_max = 1;  // whoever waits hears of the first failure that is not kept from him
        options.image_bytes = [](Rank rank, Version) { return 400'000ull * (rank + 1); };
        return options;
    }
    void make(std::vector<std::uint32_t> ranks_per_node, double persistent_rate = 1e9) {
        ClusterOptions options = options_of(std::move(ranks_per_node));
        options.model.persistent_rate = persistent_rate;
        cluster = std::make_unique<Cluster>(std::move(options));
        ASSERT_TRUE(cluster->open_job().ok());
    }
    void commit(Version version) {
        ASSERT_TRUE(cluster->capture_all(version).ok());
        finish(version);
    }
    void finish(Version version) {
        bool told = false;
        cluster->sim.run_until(
            [&] {
                told |= !cluster->state(0, version).failure.ok();
                return cluster->state(0, version).final;
            },
            cluster->sim.now() + 120 * second);
        EXPECT_FALSE(told) << cluster->state(0, version).failure.to_string();
        ASSERT_TRUE(cluster->run_until_committed(version, 60 * second)) << cluster->state(0, version).failure.to_string();
        const Status whole = cluster->check_committed(cluster->key(version));
        EXPECT_TRUE(whole.ok()) << whole.to_string();
    }
    std::uint64_t written(NodeIndex node) const { return cluster->hosts[node].daemon->counters().written_bytes; }
    // One message to the I/O node `node`, as node 0 of the job would send it.
    void say(NodeIndex node, Id128 secret, Id128 incarnation) {
        sim::Process& process = cluster->hosts[0].node->start_process("speaker");
        VersionKey key{cluster->roster.name, 1, incarnation};
        const message::Message message{secret, std::move(key), 0, cluster->hosts[0].process->address(), message::Noted{{0}}};
        const auto task = [](World w, Address to, Bytes bytes) -> Task<void> {
            const Status ignored = co_await w.network.send(std::move(to), std::move(bytes), w.clock.in(second));
            (void)ignored;
        };
        (void)cluster->sim.run(task(process.world(), cluster->hosts[node].process->address(), encode(message)), cluster->sim.now() + second);
        process.kill();
        cluster->sim.run_until(cluster->sim.now() + 5 * second);
    }

    std::unique_ptr<Cluster> cluster;
};

TEST_F(IoNode, WritesEverything) {
    make({2, 2, 0});
    for (Version version = 1; version <= 3; ++version) commit(version);
    EXPECT_EQ(written(0), 0u);
    EXPECT_EQ(written(1), 0u);
    EXPECT_GE(written(2), 3u * 4'000'000);
    const auto newest = cluster->newest_committed();
    ASSERT_TRUE(newest.ok() && newest->has_value());
    EXPECT_EQ((*newest)->nodes, 2u) << "of the application";
}

// It remembers no version for long. A request to lead that comes once more, and late, is none all the same: the names of its parts were used.
TEST_F(IoNode, LeadsAnAttemptOnce) {
    ClusterOptions options = options_of({1, 1, 0});
    options.settings.limits.versions = 1;
    options.faults.message_repeat = 1;
    options.faults.message_delay = 0.1;
    options.faults.message_delay_max = 3 * second;
    cluster = std::make_unique<Cluster>(std::move(options));
    ASSERT_TRUE(cluster->open_job().ok());
    std::map<std::string, int> made;
    cluster->sim.set_observer([&](sim::Process&, const char* what, const std::string& path) {
        if (what == std::string("create") && path.find("/part-") != std::string::npos) ++made[path];
    });
    for (Version version = 1; version <= 40; ++version) {
        ASSERT_TRUE(cluster->capture_all(version).ok());
        ASSERT_TRUE(cluster->run_until_committed(version, 120 * second)) << cluster->state(0, version).failure.to_string();
    }
    cluster->sim.run_until(cluster->sim.now() + 10 * second);
    EXPECT_GE(made.size(), 80u);
    for (const auto& [path, times] : made) EXPECT_EQ(times, 1) << path;
}

TEST_F(IoNode, SeveralShareTheWork) {
    make({1, 1, 1, 0, 0});
    commit(1);
    EXPECT_EQ(written(0) + written(1) + written(2), 0u);
    EXPECT_GT(written(3), 0u);
    EXPECT_GT(written(4), 0u);
}

// Slow storage: it dies in the middle. The others go on, and nobody is told.
TEST_F(IoNode, ThatDiesWhileItLeadsIsNotMissed) {
    make({2, 2, 0}, 1e6);
    ASSERT_TRUE(cluster->capture_all(1).ok());
    ASSERT_TRUE(cluster->sim.run_until([&] { return written(2) > 0; }, cluster->sim.now() + 60 * second));
    cluster->kill_daemon(2);
    finish(1);
    EXPECT_GE(written(0) + written(1), 4'000'000u);
    EXPECT_EQ(cluster->hosts[0].daemon->counters().attempts_failed, 1u);
    commit(2);
    EXPECT_EQ(cluster->hosts[0].daemon->counters().attempts_failed, 1u);
}

// Started with other settings than the job's: it says so instead of receiving what does not fit.
TEST_F(IoNode, WithBuffersSmallerThanABlockLeadsNothing) {
    ClusterOptions options = options_of({2, 2, 0});
    options.io_node_buffer_bytes = options.block_bytes / 2;
    cluster = std::make_unique<Cluster>(std::move(options));
    ASSERT_TRUE(cluster->open_job().ok());
    commit(1);
    EXPECT_EQ(written(2), 0u);
    EXPECT_EQ(cluster->hosts[0].daemon->counters().attempts_failed, 1u);
    commit(2);
    EXPECT_EQ(cluster->hosts[0].daemon->counters().attempts_failed, 1u) << "it is not asked again at once";
}

// One with nothing more to begin hears nothing for longer than version_wait while another goes on writing: that is no silence.
TEST_F(IoNode, IdleForLongIsNotAlone) {
    ClusterOptions options = options_of({1, 1, 0, 0});
    options.settings.placement = Placement::contiguous;  // no work changes hands
    options.settings.version_wait = 5 * second;
    options.model.persistent_client_rates[2] = 50'000;
    options.image_bytes = [](Rank, Version) { return 1'200'000ull; };
    cluster = std::make_unique<Cluster>(std::move(options));
    ASSERT_TRUE(cluster->open_job().ok());
    ASSERT_TRUE(cluster->capture_all(1).ok());
    const Nanos begun = cluster->sim.now();
    finish(1);
    EXPECT_GT(cluster->sim.now() - begun, 10 * second);
    EXPECT_EQ(cluster->hosts[0].daemon->counters().attempts_failed, 0u);
}

TEST_F(IoNode, AllThatDieAtOnceCostOneAttempt) {
    make({2, 2, 0, 0, 0}, 1e6);
    ASSERT_TRUE(cluster->capture_all(1).ok());
    ASSERT_TRUE(cluster->sim.run_until([&] { return written(2) > 0 && written(3) > 0 && written(4) > 0; }, cluster->sim.now() + 60 * second));
    for (NodeIndex node : {2u, 3u, 4u}) cluster->kill_daemon(node);
    finish(1);
    EXPECT_LE(cluster->hosts[0].daemon->counters().attempts_failed, 2u);
}

// Dead before the first version: a heartbeat is waited for it, once, and no attempt fails.
TEST_F(IoNode, ThatDoesNotAnswerCostsNoAttempt) {
    make({2, 2, 0});
    cluster->kill_daemon(2);
    for (Version version = 1; version <= 2; ++version) {
        ASSERT_TRUE(cluster->capture_all(version).ok());
        const Nanos sealed = cluster->sim.now();
        ASSERT_TRUE(cluster->run_until_committed(version, 60 * second));
        const Nanos heartbeat = cluster->options.settings.heartbeat;
        const Nanos committed_by = sealed + (version == 1 ? 2 * heartbeat : heartbeat / 2);  // virtual time
        EXPECT_LT(cluster->sim.now(), committed_by);
    }
    EXPECT_EQ(cluster->hosts[0].daemon->counters().attempts_failed, 0u);
    // Started again, at another address and knowing nothing, it is found, and takes part in the version after at the latest.
    cluster->start_daemon(2);
    ASSERT_TRUE(cluster->sim.run_until([&] { return cluster->hosts[2].booted; }, cluster->sim.now() + 10 * second));
    commit(3);
    commit(4);
    EXPECT_GT(written(2), 0u);
}

// One with as many jobs as it may have forgets none that it is writing for when another one calls, and one that it is done with.
TEST_F(IoNode, ForgetsNoJobThatItLeadsFor) {
    ClusterOptions options = options_of({2, 2, 0});
    options.model.persistent_rate = 1e6;
    options.settings.limits.guests = 1;
    cluster = std::make_unique<Cluster>(std::move(options));
    ASSERT_TRUE(cluster->open_job().ok());
    const Id128 first = cluster->roster.incarnation;
    ASSERT_TRUE(cluster->capture_all(1).ok());
    ASSERT_TRUE(cluster->sim.run_until([&] { return written(2) > 0; }, cluster->sim.now() + 60 * second));
    ASSERT_TRUE(cluster->open_job().ok());
    const Id128 second_job = cluster->roster.incarnation;
    say(2, cluster->roster.secret, second_job);
    EXPECT_FALSE(cluster->hosts[2].daemon->knows(second_job));
    EXPECT_TRUE(cluster->hosts[2].daemon->knows(first));
    const NodeCounters& counters = cluster->hosts[0].daemon->counters();
    ASSERT_TRUE(cluster->sim.run_until([&] { return counters.versions_committed > 0; }, cluster->sim.now() + 120 * second));
    EXPECT_EQ(counters.attempts_failed, 0u);
    say(2, cluster->roster.secret, second_job);
    EXPECT_TRUE(cluster->hosts[2].daemon->knows(second_job));
    EXPECT_FALSE(cluster->hosts[2].daemon->knows(first));
}

// Its stop waits for what it leads.
TEST_F(IoNode, FinishesWhatItLeadsBeforeItEnds) {
    make({2, 2, 0}, 1e6);
    ASSERT_TRUE(cluster->capture_all(1).ok());
    ASSERT_TRUE(cluster->sim.run_until([&] { return written(2) > 0; }, cluster->sim.now() + 60 * second));
    bool stopped = false;
    const auto stop = [](Node* node, Clock& clock, bool* done) -> Task<void> {
        const std::vector<VersionKey> left = co_await node->stop(clock.in(120 * second));
        *done = left.empty();
    };
    World world = cluster->hosts[2].process->world();
    Task<void> stopping = stop(cluster->hosts[2].daemon.get(), world.clock, &stopped);
    stopping.start();
    finish(1);
    EXPECT_TRUE(cluster->sim.run_until([&] { return stopped; }, cluster->sim.now() + 10 * second));
    EXPECT_GE(written(2), 4'000'000u);
    EXPECT_EQ(cluster->hosts[0].daemon->counters().attempts_failed, 0u);
}

}  // namespace
}  // namespace cairn
