// How flushes end that do not simply commit: what failed attempts and given-up versions leave, and what a daemon that is stopping still does.
#include <gtest/gtest.h>

#include "proof/cluster.hpp"

namespace cairn {
namespace {

using testing::Cluster;
using testing::ClusterOptions;

std::size_t files_of(Cluster& cluster, Version version) {
    const auto entries = cluster.sim.persistent().list(cluster.layout.version(cluster.key(version)));
    return entries.ok() ? entries->size() : 0;
}

// No room for the manifest's temporary file, for as long as `full`.
void fill_for_manifests(Cluster& cluster, const bool& full) {
    cluster.sim.set_observer([&cluster, &full](sim::Process&, const char* what, const std::string& path) {
        const bool writes_manifest = what == std::string("create") && path.find("/.tmp-") != std::string::npos;
        cluster.sim.faults().out_of_space = full && writes_manifest ? 1 : 0;
    });
}

// Before its publication nothing can name the parts of an attempt: the next one must not need their room, too.
TEST(Ending, AManifestThatCanNotBeWrittenLeavesNoParts) {
    ClusterOptions options;
    options.files = 2;
    Cluster cluster(options);
    ASSERT_TRUE(cluster.open_job().ok());
    bool full = true;
    fill_for_manifests(cluster, full);
    ASSERT_TRUE(cluster.capture_all(1).ok());
    const auto tried = [&] { return cluster.hosts[0].daemon->counters().attempts_failed > 4; };
    ASSERT_TRUE(cluster.sim.run_until(tried, cluster.sim.now() + 300 * second));
    EXPECT_LE(files_of(cluster, 1), 2u);  // of the attempt under way
    full = false;
    ASSERT_TRUE(cluster.run_until_committed(1, 300 * second));
    EXPECT_TRUE(cluster.check_committed(cluster.key(1)).ok());
}

// A leader of two parts has one of them durable when another leader fails: nobody was told of it.
TEST(Ending, APartThatWasCompleteInAFailedAttemptGoesToo) {
    ClusterOptions options;
    options.files = 4;
    options.ranks_per_node = {2, 2};
    options.image_bytes = [](Rank, Version) { return 500'000; };
    options.settings.placement = Placement::interleaved;  // each part keeps its data
    options.model.target_rates = {1e9, 1e6, 1e6, 1e6};
    Cluster cluster(options);
    bool full = true, synced = false;
    cluster.sim.set_observer([&](sim::Process&, const char* what, const std::string& path) {
        const auto of = [&](const char* operation, const char* part) { return what == std::string(operation) && path.find(part) != std::string::npos; };
        if (of("create", "/part-0000")) synced = false;
        cluster.sim.faults().out_of_space = full && synced && of("write", "/part-0002") ? 1 : 0;
        if (of("fsync", "/part-0000")) synced = true;
    });
    ASSERT_TRUE(cluster.open_job().ok());
    ASSERT_TRUE(cluster.capture_all(1).ok());
    const auto tried = [&] { return cluster.hosts[0].daemon->counters().attempts_failed > 4; };
    ASSERT_TRUE(cluster.sim.run_until(tried, cluster.sim.now() + 300 * second));
    EXPECT_LE(files_of(cluster, 1), 4u);  // of the attempt under way
    full = false;
    ASSERT_TRUE(cluster.run_until_committed(1, 300 * second)) << cluster.state(0, 1).failure.to_string();
    EXPECT_TRUE(cluster.check_committed(cluster.key(1)).ok());
}

// GlusterFS takes the name of a target that it does not know as part of the file's own: nothing may be committed that is not there by its name.
TEST(Ending, APartOfATargetThatWasTakenAwayGoesElsewhere) {
    for (std::uint32_t leaders : {1u, 2u}) {
        ClusterOptions options;
        options.files = 1;
        options.settings.leaders = leaders;
        options.placed = true;
        options.model.target_rates = {1e9, 1e9, 1e9};
        options.model.targets_gone = {1};
        Cluster cluster(options);
        ASSERT_TRUE(cluster.open_job().ok());
        for (Version version = 1; version <= 4; ++version) {  // the targets take turns
            ASSERT_TRUE(cluster.capture_all(version).ok());
            ASSERT_TRUE(cluster.run_until_committed(version, 60 * second)) << cluster.state(0, version).failure.to_string();
            const Status whole = cluster.check_committed(cluster.key(version));
            EXPECT_TRUE(whole.ok()) << whole.to_string();
            EXPECT_EQ(files_of(cluster, version), 2u);  // and nothing under a name that nobody knows
        }
        EXPECT_EQ(cluster.hosts[0].daemon->counters().attempts_failed, 0u) << "its part alone is written again";
    }
}

// A file system in trouble gives a leader another file of the same name: its data are durable, and not in the part that will be read. Of large
// images its leader sends a sample, of small ones a block is compared. What is committed in the end was written by one leader.
TEST(Ending, APartWhoseLeadersWroteTwoFilesIsNotCommitted) {
    for (std::uint32_t ranks : {2u, 100u}) {
        ClusterOptions options;
        options.ranks_per_node = {ranks, ranks};
        options.image_bytes = [ranks](Rank, Version) { return 200'000 / ranks; };
        options.settings.leaders = 2;
        options.settings.attempts_max = 1;  // each failure is told
        options.faults.twin_open = 1;
        Cluster cluster(options);
        ASSERT_TRUE(cluster.open_job().ok());
        ASSERT_TRUE(cluster.capture_all(1).ok());
        const auto told = [&] { return !cluster.state(0, 1).failure.ok(); };
        ASSERT_TRUE(cluster.sim.run_until(told, cluster.sim.now() + 300 * second)) << ranks << " ranks a node";
        const std::string failure = cluster.state(0, 1).failure.to_string();
        EXPECT_NE(failure.find("two files of one name"), std::string::npos) << failure;
        ASSERT_TRUE(cluster.run_until_committed(1, 300 * second));
        const Status whole = cluster.check_committed(cluster.key(1));
        EXPECT_TRUE(whole.ok()) << whole.to_string();
    }
}

// The coordinator dies between the publication and its word on it, and nobody starts it again.
TEST(Ending, ACommitIsLearntWithoutTheCoordinator) {
    Cluster cluster{ClusterOptions()};
    ASSERT_TRUE(cluster.open_job().ok());
    ASSERT_TRUE(cluster.capture_all(1).ok());
    const std::string manifest = cluster.layout.manifest(cluster.key(1));
    ASSERT_TRUE(cluster.sim.run_until([&] { return cluster.sim.persistent().find(manifest).ok(); }, cluster.sim.now() + 60 * second));
    cluster.kill_daemon(0);
    ASSERT_NE(cluster.state(1, 1).level, Level::committed);
    EXPECT_TRUE(cluster.sim.run_until([&] { return cluster.state(1, 1).final; }, cluster.sim.now() + 120 * second));
    EXPECT_EQ(cluster.state(1, 1).level, Level::committed) << cluster.state(1, 1).failure.to_string();
}

// Nothing goes while something of the job may still end; then all of it, and what comes late is of nobody.
TEST(Ending, AJobThatHasEndedIsForgotten) {
    Cluster cluster{ClusterOptions()};
    ASSERT_TRUE(cluster.open_job().ok());
    Node& coordinator = *cluster.hosts[0].daemon;
    const Id128 incarnation = cluster.roster.incarnation;
    ASSERT_TRUE(cluster.capture_all(1).ok());
    const std::string manifest = cluster.layout.manifest(cluster.key(1));
    while (!cluster.sim.persistent().find(manifest).ok()) {
        ASSERT_FALSE(coordinator.forget(incarnation));
        ASSERT_NE(coordinator.state(cluster.key(1)).level, Level::none);
        cluster.sim.run_until(cluster.sim.now() + millisecond);
    }
    cluster.sim.faults().message_loss = 1;  // no other node hears the end
    ASSERT_TRUE(cluster.sim.run_until([&] { return coordinator.forget(incarnation); }, cluster.sim.now() + 60 * second));
    EXPECT_FALSE(coordinator.knows(incarnation));
    EXPECT_TRUE(coordinator.versions().empty());
    EXPECT_EQ(coordinator.image(cluster.key(1), 0), nullptr);
    EXPECT_TRUE(coordinator.drop_image(cluster.key(1), 0).ok());
    cluster.sim.faults().message_loss = 0;
    EXPECT_TRUE(cluster.sim.run_until([&] { return cluster.state(1, 1).level == Level::committed; }, cluster.sim.now() + 120 * second));
    EXPECT_FALSE(coordinator.knows(incarnation));  // it was asked, and does not know
    // The same job again, as by a rank whose connection was lost.
    ASSERT_TRUE(coordinator.join(std::make_shared<const Roster>(cluster.roster), 0).ok());
    ASSERT_TRUE(cluster.capture_all(2).ok());
    ASSERT_TRUE(cluster.run_until_committed(2, 60 * second)) << cluster.state(0, 2).failure.to_string();
    EXPECT_TRUE(cluster.check_committed(cluster.key(2)).ok());
}

TEST(Ending, AVersionThatCanNotBeGivenUpYetIsTriedAgainNowAndThen) {
    ClusterOptions options;
    options.files = 2;
    options.model.persistent_rate = 1e5;
    options.image_bytes = [](Rank, Version) { return 1'000'000; };
    Cluster cluster(options);
    ASSERT_TRUE(cluster.open_job().ok());
    bool full = true;
    fill_for_manifests(cluster, full);
    ASSERT_TRUE(cluster.capture_all(1).ok());
    cluster.sim.run_until(cluster.sim.now() + second);
    const auto cancel = [](Node* node, VersionKey key, Clock& clock) -> Task<void> {
        const Status cancelled = co_await node->cancel(key, clock.in(600 * second));
        EXPECT_TRUE(cancelled.ok()) << cancelled.to_string();
    };
    World world = cluster.hosts[0].process->world();
    Task<void> cancelling = cancel(cluster.hosts[0].daemon.get(), cluster.key(1), world.clock);
    cancelling.start();
    cluster.sim.run_until(cluster.sim.now() + 60 * second);
    EXPECT_LT(cluster.hosts[0].daemon->counters().attempts_failed, 30u);
    full = false;
    ASSERT_TRUE(cluster.sim.run_until([&] { return cluster.state(0, 1).final; }, cluster.sim.now() + 300 * second));
    EXPECT_EQ(cluster.state(0, 1).failure.code(), Code::cancelled);
    cluster.sim.run_until(cluster.sim.now() + 5 * second);
    EXPECT_EQ(files_of(cluster, 1), 1u);  // the tombstone
}

constexpr std::size_t not_stopped = 99;
Task<void> stop_daemon(Node* node, Clock& clock, Nanos wait, std::size_t* left) {
    const std::vector<VersionKey> unfinished = co_await node->stop(clock.in(wait));
    *left = unfinished.size();
}

// How many versions each daemon leaves; `within` is how long all of them may take, and `meanwhile` happens when they have begun.
std::vector<std::size_t> stop_all(Cluster& cluster, Nanos wait, Nanos within, const std::function<void()>& meanwhile = [] {}) {
    std::vector<std::size_t> left(cluster.hosts.size(), not_stopped);
    std::deque<World> worlds;
    std::vector<Task<void>> stopping;
    for (std::size_t i = 0; i < cluster.hosts.size(); ++i) {
        if (!cluster.hosts[i].daemon) continue;
        worlds.push_back(cluster.hosts[i].process->world());
        stopping.push_back(stop_daemon(cluster.hosts[i].daemon.get(), worlds.back().clock, wait, &left[i]));
        stopping.back().start();
    }
    meanwhile();
    const auto all_stopped = [&] {
        for (std::size_t i = 0; i < left.size(); ++i)
            if (cluster.hosts[i].daemon && left[i] == not_stopped) return false;
        return true;
    };
    EXPECT_TRUE(cluster.sim.run_until(all_stopped, cluster.sim.now() + within));
    return left;
}

// Stopped everywhere while one version is written and the next one waits for its turn: both are what `cairn stop --wait` waits for.
TEST(Ending, DaemonsThatAreStoppingFinishWhatIsSealed) {
    ClusterOptions options;
    options.files = 2;
    options.model.persistent_rate = 1e6;
    options.image_bytes = [](Rank, Version) { return 1'000'000; };
    Cluster cluster(options);
    ASSERT_TRUE(cluster.open_job().ok());
    ASSERT_TRUE(cluster.capture_all(1).ok());
    ASSERT_TRUE(cluster.capture_all(2).ok());
    ASSERT_NE(cluster.state(0, 1).level, Level::committed);
    const std::vector<std::size_t> left = stop_all(cluster, 300 * second, 300 * second);
    for (const std::size_t n : left) EXPECT_EQ(n, 0u);
    EXPECT_EQ(cluster.state(0, 2).level, Level::committed);
}

// What failed a while ago is tried seldom; whoever stops has less time than that. It is tried at once, and again while there is time.
TEST(Ending, DaemonsThatAreStoppingTryAgainWhatFailed) {
    for (const Nanos full_for : {Nanos(0), 10 * second}) {
        Cluster cluster{ClusterOptions()};
        bool full = true;
        ASSERT_TRUE(cluster.open_job().ok());
        fill_for_manifests(cluster, full);
        ASSERT_TRUE(cluster.capture_all(1).ok());
        const auto tried_for_long = [&] { return cluster.hosts[0].daemon->counters().attempts_failed >= 24 && !cluster.state(0, 1).failure.ok(); };
        ASSERT_TRUE(cluster.sim.run_until(tried_for_long, cluster.sim.now() + 3600 * second));
        const auto room_is_made = [&] {
            if (full_for != 0) (void)cluster.sim.run_until([] { return false; }, cluster.sim.now() + full_for);
            full = false;
        };
        const std::vector<std::size_t> left = stop_all(cluster, 30 * second, 30 * second, room_is_made);
        for (const std::size_t n : left) EXPECT_EQ(n, 0u) << full_for / second << " s";
        EXPECT_EQ(cluster.state(0, 1).level, Level::committed);
    }
}

// It has its whole wait, and no more.
TEST(Ending, DaemonsThatAreStoppingTryWhatFailsUntilTheirTimeIsOver) {
    Cluster cluster{ClusterOptions()};
    bool full = true;
    ASSERT_TRUE(cluster.open_job().ok());
    fill_for_manifests(cluster, full);
    ASSERT_TRUE(cluster.capture_all(1).ok());
    ASSERT_TRUE(cluster.sim.run_until([&] { return !cluster.state(0, 1).failure.ok(); }, cluster.sim.now() + 300 * second));
    const Nanos begun = cluster.sim.now();
    const std::vector<std::size_t> left = stop_all(cluster, 100 * second, 101 * second);
    EXPECT_GE(cluster.sim.now() - begun, 100 * second);
    for (const std::size_t n : left) EXPECT_EQ(n, 1u);
}

// What can not commit any more costs nobody his time: a rank never sealed it, or a node that it needs is gone.
TEST(Ending, DaemonsThatAreStoppingDoNotWaitForWhatStaysIncomplete) {
    for (const bool was_sealed : {false, true}) {
        ClusterOptions options;
        options.ranks_per_node = {1, 1};
        options.settings.version_wait = 60 * second;
        Cluster cluster(options);
        bool full = true;
        ASSERT_TRUE(cluster.open_job().ok());
        fill_for_manifests(cluster, full);
        if (was_sealed) {
            ASSERT_TRUE(cluster.capture_all(1).ok());
        } else {
            sim::Process& client = cluster.hosts[0].node->start_process("rank0");
            const auto capture = [](Cluster& c, sim::Process& p) -> Task<void> {
                const Status captured = co_await c.capture(p, 0, 1);
                EXPECT_TRUE(captured.ok()) << captured.to_string();
            };
            ASSERT_TRUE(cluster.sim.run(capture(cluster, client), cluster.sim.now() + 60 * second));
        }
        const NodeIndex last = static_cast<NodeIndex>(cluster.hosts.size() - 1);
        const auto failed = [&] { return !cluster.state(0, 1).failure.ok(); };
        ASSERT_TRUE(cluster.sim.run_until(failed, cluster.sim.now() + 300 * second));
        if (was_sealed) {
            cluster.kill_daemon(last);
            const auto noticed = [&] { return cluster.state(0, 1).failure.text().find("silent") != std::string::npos; };
            (void)cluster.sim.run_until(noticed, cluster.sim.now() + 300 * second);
        }
        const Nanos begun = cluster.sim.now();
        const std::vector<std::size_t> left = stop_all(cluster, 600 * second, 600 * second);
        EXPECT_LE(cluster.sim.now() - begun, was_sealed ? 60 * second : second) << was_sealed;
        EXPECT_EQ(left[0], 1u);
    }
}

// A daemon dies in the middle of an attempt, and the next one is told to cancel: nobody else knows of the parts.
TEST(Ending, WhatADaemonThatDiedLeftGoesWithItsVersion) {
    ClusterOptions options;
    options.ranks_per_node = {2};
    options.image_bytes = [](Rank, Version) { return 2'000'000; };
    options.model.persistent_rate = 1e6;
    Cluster cluster(options);
    ASSERT_TRUE(cluster.open_job().ok());
    ASSERT_TRUE(cluster.capture_all(1).ok());
    ASSERT_TRUE(cluster.sim.run_until([&] { return cluster.hosts[0].daemon->counters().written_bytes > 0; }, cluster.sim.now() + 60 * second));
    cluster.kill_daemon(0);
    EXPECT_EQ(files_of(cluster, 1), 1u);
    cluster.start_daemon(0);
    ASSERT_TRUE(cluster.sim.run_until([&] { return cluster.hosts[0].booted; }, cluster.sim.now() + 60 * second));
    const auto cancel = [](Node* daemon, VersionKey key, Nanos deadline) -> Task<void> {
        const Status cancelled = co_await daemon->cancel(std::move(key), deadline);
        EXPECT_TRUE(cancelled.ok()) << cancelled.to_string();
    };
    const Nanos deadline = cluster.sim.now() + 60 * second;
    ASSERT_TRUE(cluster.sim.run(cancel(cluster.hosts[0].daemon.get(), cluster.key(1), deadline), deadline + second));
    cluster.sim.run_until(cluster.sim.now() + 20 * second);
    EXPECT_EQ(files_of(cluster, 1), 1u) << "the tombstone";
}

// A server that is away while attempts fail and one commits: what they left there is removed once it is back.
TEST(Ending, PartsThatCouldNotBeRemovedAreRemovedLater) {
    ClusterOptions options;
    options.files = 2;
    options.ranks_per_node = {1, 1};
    options.image_bytes = [](Rank, Version) { return 2'000'000; };
    options.model.persistent_bytes_max = 3'000'000;
    options.faults.error_done = 0;  // what fails is not done
    Cluster cluster(options);
    bool away = true;
    cluster.sim.set_observer([&](sim::Process&, const char* what, const std::string& path) {
        const bool removes_part = what == std::string("remove") && path.find("/part-") != std::string::npos;
        cluster.sim.faults().metadata_error = away && removes_part ? 1 : 0;
    });
    ASSERT_TRUE(cluster.open_job().ok());
    ASSERT_TRUE(cluster.capture_all(1).ok());
    const auto tried = [&] { return cluster.hosts[0].daemon->counters().attempts_failed > 2; };
    ASSERT_TRUE(cluster.sim.run_until(tried, cluster.sim.now() + 300 * second));
    cluster.sim.model().persistent_bytes_max = 100'000'000;
    ASSERT_TRUE(cluster.run_until_committed(1, 300 * second)) << cluster.state(0, 1).failure.to_string();
    cluster.sim.run_until(cluster.sim.now() + second);
    EXPECT_GT(files_of(cluster, 1), 3u);
    away = false;
    cluster.sim.run_until(cluster.sim.now() + 30 * second);
    EXPECT_EQ(files_of(cluster, 1), 3u);  // two parts and the manifest
}

}  // namespace
}  // namespace cairn
