// A daemon's look for dead images, beside somebody who takes hold of them at each moment of it, and what goes under persistent.
#include <gtest/gtest.h>

#include <functional>

#include "catalog/roots.hpp"
#include "proof/cluster.hpp"
#include "engine/router/dead_images.hpp"
#include "format/names.hpp"

namespace cairn {
namespace {

using testing::Cluster;
using testing::ClusterOptions;

constexpr Nanos io_wait = 10 * second;

// The images of one node, and who holds them.
class HeldScratch final : public DeadImages::Scratch {
  public:
    explicit HeldScratch(Node& node) : node_(node) {}
    std::vector<Held> undecided() override {
        std::vector<Held> all;
        for (Undecided& each : node_.undecided()) all.push_back({std::move(each), holders > 0, taken});
        if (++asked == take_after) take();
        if (asked == release_after) --holders;
        return all;
    }
    void let_go(const VersionKey& key) override {
        gone.push_back(key);
        if (before_it_goes) before_it_goes();
        for (Rank rank = 0; rank < 2; ++rank) EXPECT_TRUE(node_.drop_image(key, rank).ok());
    }
    void take() {
        ++holders;
        ++taken;
    }

    std::uint32_t holders = 0, asked = 0, take_after = 0, release_after = 0;  // after so many questions
    std::uint64_t taken = 0;
    std::vector<VersionKey> gone;
    std::function<void()> before_it_goes;

  private:
    Node& node_;
};

// Version 1 is committed; of version 2 the second node alone has its image; a newer job went on from version 1.
class DeadLook : public ::testing::Test {
  protected:
    DeadLook() : cluster_(options()), node_(*cluster_.hosts[1].daemon), scratch_(node_), dead_(world(), cluster_.layout, node_, scratch_, io_wait) {
        CAIRN_CHECK(cluster_.open_job().ok() && cluster_.capture_all(1).ok() && cluster_.run_until_committed(1, 60 * second));
        key_ = cluster_.key(2);
        committed_ = cluster_.key(1);
        sim::Process& rank = cluster_.hosts[1].node->start_process("rank1");
        CAIRN_CHECK(run(cluster_.capture(rank, 1, 2)).ok());
        rank.kill();
        const Parent parent{cluster_.roster.incarnation, 1};
        CAIRN_CHECK(cluster_.open_job().ok());
        World own = world();
        const FromRecord from{cluster_.roster.incarnation, parent, true, {}};
        CAIRN_CHECK(run(record_parent(own, cluster_.layout, "series", cluster_.roster.epoch, from, never)).ok());
        CAIRN_CHECK(node_.image(key_, 1) && !node_.state(key_).final);
    }
    static ClusterOptions options() {
        ClusterOptions o;
        o.ranks_per_node = {1, 1};
        return o;
    }
    World world() { return cluster_.hosts[1].process->world(); }
    Status run(Task<Status> task) {
        Status status(Code::deadline, "not done");
        const auto keep = [](Task<Status> t, Status& out) -> Task<void> {
            Status result = co_await t;
            out = std::move(result);
        };
        (void)cluster_.sim.run(keep(std::move(task), status), cluster_.sim.now() + 60 * second);
        return status;
    }
    // Whether nothing is left that the next look may find dead.
    bool look() {
        bool done = false;
        const auto keep = [](DeadImages& dead, Nanos deadline, bool& out) -> Task<void> {
            const bool all = co_await dead.look(deadline);
            out = all;
        };
        EXPECT_TRUE(cluster_.sim.run(keep(dead_, cluster_.sim.now() + io_wait, done), cluster_.sim.now() + 60 * second));
        return done;
    }
    // The name is there, and would not be after a loss of power.
    void make_undurable(const std::string& path) {
        sim::FileSystem& files = cluster_.sim.persistent();
        const auto node = cluster_.hosts[1].node->id();
        CAIRN_CHECK(files.replace(path, path + ".x", node).ok() && files.fsync_directory(path.substr(0, path.rfind('/'))).ok() && files.replace(path + ".x", path, node).ok());
        CAIRN_CHECK(files.find(path).ok() && !files.find_kept(path).ok());
    }
    void expect_gone(bool gone) {
        EXPECT_EQ(node_.image(key_, 1) == nullptr, gone);
        EXPECT_EQ(node_.state(key_).final, gone);
        EXPECT_EQ(scratch_.gone.size(), gone ? 1u : 0u);
    }
    std::string part(const VersionKey& key) {
        const std::string directory = cluster_.layout.version(key);
        (void)cluster_.sim.persistent().make_directory(directory, cluster_.hosts[1].node->id()).ok();
        return directory + "/" + part_file_name(0, 1, {key.incarnation.high, 7});
    }

    Cluster cluster_;
    Node& node_;
    HeldScratch scratch_;
    DeadImages dead_;
    VersionKey key_, committed_;  // of the older job: version 2, and version 1
};

TEST_F(DeadLook, WhatIsDeadEnds) {
    EXPECT_TRUE(look());
    expect_gone(true);
    EXPECT_EQ(node_.state(key_).failure.code(), Code::superseded);
    EXPECT_TRUE(look()) << "nothing is left";
}

TEST_F(DeadLook, WhatIsHeldStaysUntilItIsReleased) {
    scratch_.take();
    EXPECT_FALSE(look());
    expect_gone(false);
    --scratch_.holders;
    EXPECT_TRUE(look());
    expect_gone(true);
}

// A restart chose it meanwhile, and this look may have read the lineage before that was on record.
TEST_F(DeadLook, WhatIsTakenWhileItLooksStays) {
    scratch_.take_after = 2;  // look() asks for the names, look_at() for what is held
    EXPECT_FALSE(look());
    expect_gone(false);
}

TEST_F(DeadLook, WhatWasHeldWhenItBeganStaysThoughItIsReleasedMeanwhile) {
    scratch_.take();
    scratch_.release_after = 2;
    EXPECT_FALSE(look());
    expect_gone(false);
    EXPECT_TRUE(look());
    expect_gone(true);
}

TEST_F(DeadLook, WhatIsTakenAndReleasedWhileItLooksStays) {
    scratch_.take_after = scratch_.release_after = 2;
    EXPECT_FALSE(look());
    expect_gone(false);
    EXPECT_TRUE(look());
    expect_gone(true);
}

TEST_F(DeadLook, WhereTheLineageIsInDoubtNothingGoes) {
    ASSERT_TRUE(cluster_.sim.persistent().flip_bit(cluster_.layout.lineage_from("series", cluster_.roster.epoch), 60, 3).ok());
    look();
    expect_gone(false);
}

// Without them an older lineage would be the current one, and a restart would look for what has gone.
TEST_F(DeadLook, WhatDecidesIsDurableFirst) {
    const std::string from = cluster_.layout.lineage_from("series", cluster_.roster.epoch), commit = cluster_.layout.manifest(cluster_.key(2));
    ASSERT_TRUE(cluster_.capture_all(2).ok() && cluster_.run_until_committed(2, 60 * second));
    for (const std::string& path : {from, commit}) make_undurable(path);
    scratch_.before_it_goes = [&] {
        for (const std::string& path : {from, commit}) EXPECT_TRUE(cluster_.sim.persistent().find_kept(path).ok()) << path;
    };
    EXPECT_TRUE(look());
    expect_gone(true);
}

TEST_F(DeadLook, WhereThatCanNotBeMadeDurableNothingGoes) {
    const std::string lineage = cluster_.layout.lineage("series");
    bool fails = true;
    cluster_.sim.set_observer([&](sim::Process&, const char* what, const std::string& path) {
        cluster_.sim.faults().fsync_error = fails && what == std::string("fsync_directory") && path == lineage ? 1 : 0;
    });
    EXPECT_FALSE(look());
    expect_gone(false);
    fails = false;
    EXPECT_TRUE(look());
    expect_gone(true);
}

TEST_F(DeadLook, WhatAttemptsLeftGoesBehindATombstone) {
    const std::string left = part(key_);
    ASSERT_TRUE(cluster_.sim.persistent().create(left, cluster_.hosts[1].node->id()).ok());
    World own = world();
    const Undecided dead{key_, 1, {}, 2};
    ASSERT_TRUE(run(clear_dead(own, cluster_.layout, dead, io_wait)).ok());
    EXPECT_FALSE(cluster_.sim.persistent().find(left).ok());
    EXPECT_TRUE(cluster_.sim.persistent().find(cluster_.layout.manifest(key_)).ok()) << "no daemon that comes late may commit it";
}

// Nobody can tell what lies there; the tombstone does until somebody can.
TEST_F(DeadLook, ARootThatHangsIsNamedByTheTombstone) {
    Layout layout = cluster_.layout;
    layout.roots = {"/persistent/.x"};
    const std::string left = Layout::part_below(layout.roots[0], key_, {0, 1, {key_.incarnation.high, 5}});
    World own = world();
    ASSERT_TRUE(cluster_.sim.persistent().make_directory(layout.roots[0], 0).ok());
    ASSERT_TRUE(run(make_version_below(own, layout.roots[0], key_, never)).ok());
    ASSERT_TRUE(run(make_directories(own.storage, layout.persistent, layout.version(key_), never)).ok());
    ASSERT_TRUE(cluster_.sim.persistent().create(left, cluster_.hosts[1].node->id()).ok());
    const Undecided dead{key_, 1, {}, 2};
    cluster_.sim.faults().below = layout.roots[0];
    cluster_.sim.faults().below_is = sim::Faults::Below::hangs;
    EXPECT_EQ(run(clear_dead(own, layout, dead, io_wait)).code(), Code::deadline);
    EXPECT_TRUE(cluster_.sim.persistent().find(cluster_.layout.manifest(key_)).ok());
    cluster_.sim.faults() = {};
    EXPECT_TRUE(run(clear_dead(own, layout, dead, io_wait)).ok());
    EXPECT_FALSE(cluster_.sim.persistent().find(left).ok());
}

// Every node that held an image clears what is left, at about the same time; who has a tombstone there takes all else, the other's unpublished one, too.
TEST_F(DeadLook, WhatAttemptsLeftIsClearedByTwoNodesAtOnce) {
    for (Version version = 2; version < 202; ++version) {
        const VersionKey key = cluster_.key(version);
        const std::string left = part(key);
        ASSERT_TRUE(cluster_.sim.persistent().create(left, cluster_.hosts[1].node->id()).ok());
        const auto clear = [](World own, Layout layout, Undecided dead, Status* out) -> Task<void> {
            Status cleared = co_await clear_dead(own, layout, std::move(dead), io_wait);
            *out = std::move(cleared);
        };
        const Undecided dead{key, 1, {}, 2};
        Status statuses[2];
        Task<void> one = clear(cluster_.hosts[0].process->world(), cluster_.layout, dead, &statuses[0]);
        Task<void> other = clear(world(), cluster_.layout, dead, &statuses[1]);
        one.start();
        cluster_.sim.run_until(cluster_.sim.now() + (version - 2) * 25 * microsecond);
        other.start();
        ASSERT_TRUE(cluster_.sim.run_until([&] { return one.done() && other.done(); }, cluster_.sim.now() + 60 * second));
        for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.to_string();
        EXPECT_FALSE(cluster_.sim.persistent().find(left).ok());
        EXPECT_TRUE(cluster_.sim.persistent().find(cluster_.layout.manifest(key)).ok());
    }
}

TEST_F(DeadLook, WhereNothingIsLeftNoTombstoneIsWritten) {
    World own = world();
    const Undecided dead{key_, 1, {}, 2};
    ASSERT_TRUE(run(clear_dead(own, cluster_.layout, dead, io_wait)).ok());
    EXPECT_FALSE(cluster_.sim.persistent().find(cluster_.layout.manifest(key_)).ok());
}

TEST_F(DeadLook, BesideWhatAnotherJobLeftNoTombstoneIsWritten) {
    const std::string another = part(cluster_.key(2));
    ASSERT_TRUE(cluster_.sim.persistent().create(another, cluster_.hosts[1].node->id()).ok());
    World own = world();
    const Undecided dead{key_, 1, {}, 2};
    ASSERT_TRUE(run(clear_dead(own, cluster_.layout, dead, io_wait)).ok());
    EXPECT_FALSE(cluster_.sim.persistent().find(cluster_.layout.manifest(key_)).ok());
    EXPECT_TRUE(cluster_.sim.persistent().find(another).ok());
}

TEST_F(DeadLook, WhatWasCommittedAfterAllKeepsItsParts) {
    World own = world();
    const Undecided dead{committed_, 1, {}, 2};
    ASSERT_TRUE(run(clear_dead(own, cluster_.layout, dead, io_wait)).ok());
    EXPECT_TRUE(cluster_.check_committed(committed_).ok());
}

}  // namespace
}  // namespace cairn
