// Another file system is seen where persistent was, on all nodes or on one: whatever is called committed is found when the job's own is back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proof/cluster.hpp"

namespace cairn {
namespace {

using ::testing::HasSubstr;
using testing::Cluster;
using testing::ClusterOptions;

struct Elsewhere : ::testing::Test {
    static ClusterOptions options() {
        ClusterOptions o;
        o.ranks_per_node = {1, 1};
        o.files = 2;
        o.settings.leaders = 2;
        o.settings.attempts_max = 1;
        o.settings.retry_wait = second;
        return o;
    }
    Cluster cluster{options()};

    void SetUp() override {
        ASSERT_TRUE(cluster.open_job().ok());
        ASSERT_TRUE(cluster.capture_all(1).ok());
        ASSERT_TRUE(cluster.run_until_committed(1, 60 * second));
    }
    void cover(bool covered) {
        for (testing::Host& host : cluster.hosts) host.node->cover(covered);
    }
    // The other tree has the directories, as an old copy would: what is written there does not fail by itself.
    void copy_directories() {
        sim::FileSystem& other = cluster.sim.other_persistent();
        EXPECT_TRUE(other.make_directory(cluster.layout.series("series"), 0).ok());
        EXPECT_TRUE(other.make_directory(cluster.layout.version(cluster.key(2)), 0).ok());
    }
    void expect_found(Version version) {
        EXPECT_TRUE(cluster.run_until_committed(version, 120 * second)) << cluster.state(0, version).failure.to_string();
        const Status whole = cluster.check_committed(cluster.key(version));
        EXPECT_TRUE(whole.ok()) << whole.to_string();
        const auto newest = cluster.newest_committed();
        ASSERT_TRUE(newest.ok() && newest->has_value());
        EXPECT_EQ((*newest)->key, cluster.key(version));
    }
    // At the given operation of a daemon whose path has `mark` in it, from then on.
    void cover_at(const std::string& operation, const std::string& mark) {
        cluster.sim.set_observer([this, operation, mark](sim::Process&, const char* what, const std::string& detail) {
            if (operation == what && detail.find(mark) != std::string::npos) cover(true);
        });
    }
};

TEST_F(Elsewhere, NothingIsCommittedWhereTheJobIsNotOnRecord) {
    copy_directories();
    cover(true);
    ASSERT_TRUE(cluster.capture_all(2).ok());
    EXPECT_FALSE(cluster.run_until_committed(2, 20 * second));
    const VersionState state = cluster.state(1, 2);
    EXPECT_EQ(state.failure.code(), Code::unavailable);
    EXPECT_THAT(state.failure.text(), HasSubstr(cluster.layout.lineage_open("series", cluster.roster.epoch)));
    EXPECT_THAT(state.failure.text(), HasSubstr("stays in scratch"));
    EXPECT_FALSE(state.final);
    const auto entries = cluster.sim.other_persistent().list(cluster.layout.version(cluster.key(2)));
    EXPECT_TRUE(entries.ok() && entries->empty()) << "nor is anything left there";
    cover(false);
    expect_found(2);
}

// Between the look for the record and the manifest: it is published over there, and that counts for nothing.
TEST_F(Elsewhere, AManifestThatWentThereCountsForNothing) {
    copy_directories();
    cover_at("list", "/series/2");
    ASSERT_TRUE(cluster.capture_all(2).ok());
    EXPECT_FALSE(cluster.run_until_committed(2, 20 * second));
    EXPECT_TRUE(cluster.sim.other_persistent().find(cluster.layout.manifest(cluster.key(2))).ok()) << "what this is about";
    EXPECT_EQ(cluster.state(0, 2).failure.code(), Code::unavailable);
    cluster.kill_daemon(1);  // one that finds the manifest over there does not believe it either
    cluster.start_daemon(1);
    EXPECT_FALSE(cluster.run_until_committed(2, 20 * second));
    EXPECT_NE(cluster.state(1, 2).level, Level::committed);
    cluster.sim.set_observer({});
    cover(false);
    expect_found(2);
}

// One node sees another tree, and so its part goes there.
TEST_F(Elsewhere, APartThatWentThereIsMissed) {
    copy_directories();
    cluster.hosts[1].node->cover(true);
    ASSERT_TRUE(cluster.capture_all(2).ok());
    EXPECT_FALSE(cluster.run_until_committed(2, 20 * second));
    EXPECT_THAT(cluster.state(0, 2).failure.text(), HasSubstr("not to be seen from node 0"));
    cluster.hosts[1].node->cover(false);
    expect_found(2);
}

// All of them do for a while, from when parts are created until they are written.
TEST_F(Elsewhere, PartsThatWentThereAreMissed) {
    copy_directories();
    cover_at("create", "/2/part-");
    ASSERT_TRUE(cluster.capture_all(2).ok());
    cluster.sim.run_until([&] { return cluster.hosts[0].node->covered(); }, cluster.sim.now() + 20 * second);
    cluster.sim.set_observer([this](sim::Process&, const char* what, const std::string&) {
        if (std::string(what) == "fsync") cover(false);
    });
    expect_found(2);
}

TEST_F(Elsewhere, NothingIsGivenUpThereEither) {
    copy_directories();
    cluster.hosts[1].daemon.reset();  // its images are wanted
    cluster.kill_daemon(1);
    ASSERT_TRUE(cluster.capture_all(2).ok());
    cluster.sim.run_until(cluster.sim.now() + second);
    cover(true);
    Status answer;
    const auto cancel = [](Node* daemon, VersionKey key, Nanos deadline, Status& out) -> Task<void> {
        Status status = co_await daemon->cancel(key, deadline);
        out = std::move(status);
    };
    Node* const daemon = cluster.hosts[0].daemon.get();
    EXPECT_TRUE(cluster.sim.run(cancel(daemon, cluster.key(2), cluster.sim.now() + 10 * second, answer), cluster.sim.now() + 20 * second));
    EXPECT_EQ(answer.code(), Code::deadline);
    EXPECT_FALSE(cluster.sim.other_persistent().find(cluster.layout.manifest(cluster.key(2))).ok());
    cover(false);
    cluster.sim.run_until([&] { return cluster.state(0, 2).final; }, cluster.sim.now() + 20 * second);
    EXPECT_EQ(cluster.state(0, 2).failure.code(), Code::cancelled);
    EXPECT_TRUE(cluster.sim.persistent().find(cluster.layout.manifest(cluster.key(2))).ok());
}

// A daemon of the test that is started meanwhile, and can not tell whose tree it is, writes nothing there, as the real one: else the others would never learn
// where it is.
TEST_F(Elsewhere, AnAddressIsToldWhereTheJobIsOnRecord) {
    cover(true);
    bool fails = true;
    cluster.sim.set_observer([&](sim::Process&, const char* what, const std::string& path) {
        cluster.sim.faults().metadata_error = fails && what == std::string("open") && path.find("/lineage/") != std::string::npos ? 1 : 0;
    });
    cluster.kill_daemon(0);
    cluster.start_daemon(0);
    cluster.sim.run_until(cluster.sim.now() + 10 * second);
    EXPECT_FALSE(cluster.sim.other_persistent().find(cluster.layout.job_node(cluster.roster.incarnation, 0)).ok());
    cover(false);
    fails = false;
    cluster.sim.run_until(cluster.sim.now() + 10 * second);
    cluster.kill_daemon(1);  // the next one asks the record where node 0's is
    cluster.start_daemon(1);
    ASSERT_TRUE(cluster.capture_all(2).ok());
    expect_found(2);
}

// That a record can not be read says nothing about where it lies.
TEST_F(Elsewhere, ADamagedRecordIsOnRecord) {
    World world = cluster.hosts[0].process->world();
    const auto check = [](World w, const Cluster& c, Status& out) -> Task<void> {
        Status status = co_await check_on_record(w, c.layout, "series", c.roster.epoch, c.roster.incarnation, w.clock.in(second));
        out = std::move(status);
    };
    Status whole, damaged, others, lost;
    const std::string path = cluster.layout.lineage_open("series", cluster.roster.epoch);
    (void)cluster.sim.run(check(world, cluster, whole), cluster.sim.now() + second);
    EXPECT_TRUE(whole.ok()) << whole.to_string();
    const Id128 own = std::exchange(cluster.roster.incarnation, Id128{1, 1});
    (void)cluster.sim.run(check(world, cluster, others), cluster.sim.now() + second);
    EXPECT_EQ(others.code(), Code::unavailable) << "the same name in another tree";
    cluster.roster.incarnation = own;
    ASSERT_TRUE(cluster.sim.persistent().flip_bit(path, 60, 1).ok());
    (void)cluster.sim.run(check(world, cluster, damaged), cluster.sim.now() + second);
    EXPECT_TRUE(damaged.ok()) << damaged.to_string();
    ASSERT_TRUE(cluster.sim.persistent().lose(path).ok());
    (void)cluster.sim.run(check(world, cluster, lost), cluster.sim.now() + second);
    EXPECT_EQ(lost.code(), Code::unavailable);
}

// Somebody removed the whole series; what an older job still held in scratch is not wanted when a newer one has committed, and till then it may be.
TEST_F(Elsewhere, ASeriesThatWasRemovedAndBegunAgainLetsTheOldJobGo) {
    cover(true);
    ASSERT_TRUE(cluster.capture_all(2).ok());
    const VersionKey old = cluster.key(2);
    cluster.sim.run_until(cluster.sim.now() + 5 * second);
    ASSERT_TRUE(cluster.sim.persistent().lose(cluster.layout.series("series")).ok());
    cover(false);
    cluster.sim.run_until(cluster.sim.now() + 5 * second);
    EXPECT_FALSE(cluster.hosts[0].daemon->state(old).final);
    const std::uint64_t epoch = cluster.roster.epoch;
    cluster.options.model.wall_time_s += 100;
    do ASSERT_TRUE(cluster.open_job().ok());
    while (cluster.roster.epoch <= epoch);  // as an open that knows of scratch
    ASSERT_TRUE(cluster.capture_all(1).ok());
    ASSERT_TRUE(cluster.run_until_committed(1, 60 * second)) << cluster.state(0, 1).failure.to_string();
    cluster.sim.run_until([&] { return cluster.hosts[0].daemon->state(old).final; }, cluster.sim.now() + 200 * second);
    EXPECT_EQ(cluster.hosts[0].daemon->state(old).failure.code(), Code::superseded);
    EXPECT_THAT(cluster.hosts[0].daemon->state(old).failure.text(), HasSubstr("begun it again"));
}

}  // namespace
}  // namespace cairn
