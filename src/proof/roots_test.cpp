// Roots: parts below several, one of them away, damaged or unknown to persistent, on a simulated cluster.
#include "catalog/roots.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>

#include "catalog/removal.hpp"
#include "copies/restore.hpp"
#include "proof/cluster.hpp"

namespace cairn {
namespace {

using testing::Cluster;
using testing::ClusterOptions;
using ::testing::HasSubstr;
using Below = sim::Faults::Below;

constexpr Nanos root_wait = 4 * second;

// Version 1 is committed, a part below each of two roots; a third one got none.
struct RootsTest : ::testing::Test {
    static ClusterOptions options() {
        ClusterOptions o;
        o.ranks_per_node = {2, 2};
        o.files = 2;
        o.image_bytes = [](Rank, Version) { return 50'000; };
        o.roots = {"/persistent/.roots/a", "/persistent/.roots/b", "/persistent/.roots/c"};
        return o;
    }
    void SetUp() override {
        ASSERT_TRUE(cluster.open_job().ok());
        ASSERT_TRUE(cluster.capture_all(1).ok());
        ASSERT_TRUE(cluster.run_until_committed(1, 60 * second));
        manifest = *cluster.newest_committed().value();
        used = roots_with_parts(manifest);
        ASSERT_EQ(used.size(), 2u);
        for (const std::string& root : cluster.options.roots)
            if (std::find(used.begin(), used.end(), root) == used.end()) idle = root;
        process = &cluster.hosts[0].node->start_process("rm");
    }
    template <class T>
    T run(Task<T> task) {
        std::optional<T> result;
        const auto keep = [](Task<T> inner, std::optional<T>& out) -> Task<void> {
            T value = co_await std::move(inner);
            out = std::move(value);
        };
        (void)cluster.sim.run(keep(std::move(task), result), cluster.sim.now() + 600 * second);
        return std::move(result).value();
    }
    void make_away(const std::string& root) {
        cluster.sim.faults().below = root;
        cluster.sim.faults().below_is = Below::away;
    }
    Status remove(Fence fence) {
        World world = process->world();
        const Manifest tombstone = tombstone_of(manifest.key, manifest.epoch, {}, manifest.ranks, roots_with_parts(manifest));
        return run(remove_version(world, {"/persistent"}, tombstone, fence, root_wait));
    }
    std::size_t files_below(const std::string& root) {
        const auto entries = cluster.sim.persistent().list(Layout::version_below(root, manifest.key));
        return entries.ok() ? entries->size() : 0;
    }
    Result<Manifest> standing() {
        World world = process->world();
        return run(read_manifest(world, cluster.layout, manifest.key, world.clock.in(root_wait)));
    }
    Result<OpenVersion> opened() {
        World world = process->world();
        RestoreSettings settings;
        settings.io_wait = root_wait;
        return run(open_version(world, {"/persistent"}, manifest, every_rank, settings));
    }

    Cluster cluster{options()};
    Manifest manifest;
    std::vector<std::string> used;
    std::string idle;
    sim::Process* process = nullptr;
};

TEST_F(RootsTest, AreReadWhereTheManifestSaysWithoutAnySetting) {
    EXPECT_EQ(manifest.roots, cluster.options.roots);
    EXPECT_EQ(files_below("/persistent"), 1u) << "the manifest alone";
    EXPECT_TRUE(opened().ok());
}

TEST_F(RootsTest, OneThatIsAwayIsNotDamage) {
    make_away(used[1]);
    const auto away = opened();
    EXPECT_EQ(away.code(), Code::unavailable);
    EXPECT_THAT(away.status().text(), HasSubstr(used[1] + "/series/1/part-"));
    EXPECT_THAT(away.status().text(), HasSubstr("holds part"));
    cluster.sim.faults() = {};
    const std::size_t lost = manifest.parts[0].root == 0 ? 1 : 0;
    ASSERT_TRUE(cluster.sim.persistent().lose(cluster.layout.part(manifest, lost)).ok());
    const auto damaged = opened();
    EXPECT_EQ(damaged.code(), Code::corrupt);
    EXPECT_THAT(damaged.status().text(), HasSubstr("the part is missing"));
}

TEST_F(RootsTest, OneThatIsAwayIsNotDamageWhereItsMountPointIsThere) {
    ASSERT_TRUE(cluster.sim.persistent().lose(used[0]).ok());
    ASSERT_TRUE(cluster.sim.persistent().make_directory(used[0], 0).ok());
    EXPECT_EQ(opened().code(), Code::unavailable);
}

TEST_F(RootsTest, ARemovalTakesWhatLiesBelowAnyOfThem) {
    EXPECT_TRUE(remove(Fence::lift).ok());
    EXPECT_EQ(standing().code(), Code::not_found);
    for (const std::string& root : cluster.options.roots) EXPECT_EQ(cluster.sim.persistent().list(Layout::version_below(root, manifest.key)).code(), Code::not_found);
}

TEST_F(RootsTest, ARemovalNeedsNoRootThatHoldsNothing) {
    make_away(idle);
    EXPECT_TRUE(remove(Fence::lift).ok());
    EXPECT_EQ(standing().code(), Code::not_found);
}

TEST_F(RootsTest, ATombstoneStaysUntilARootIsBack) {
    make_away(used[0]);
    const Status removed = remove(Fence::lift);
    EXPECT_EQ(removed.code(), Code::unavailable);
    EXPECT_THAT(removed.text(), HasSubstr("`cairn gc` takes the rest"));
    EXPECT_EQ(files_below(used[1]), 0u) << "of a root that is there";
    const Result<Manifest> tombstone = standing();
    ASSERT_TRUE(tombstone.ok());
    EXPECT_TRUE(tombstone->abandoned);
    EXPECT_EQ(tombstone->roots, used);
    cluster.sim.faults() = {};
    EXPECT_GT(files_below(used[0]), 0u);
    World world = process->world();
    EXPECT_TRUE(run(clear_version(world, {"/persistent"}, *tombstone, Fence::lift, root_wait)).ok());
    EXPECT_EQ(files_below(used[0]), 0u);
    EXPECT_EQ(standing().code(), Code::not_found);
}

TEST_F(RootsTest, WhatPersistentDoesNotKnowIsFound) {
    World world = process->world();
    VersionKey other = manifest.key;
    other.version = 9;
    ASSERT_TRUE(run(make_version_below(world, idle, other, world.clock.in(root_wait))).ok());
    ASSERT_TRUE(run(write_file(world.storage, Layout::part_below(idle, other, {0, 2, {other.incarnation.high, 5}}), Bytes(10), 0644, world.clock.in(root_wait))).ok());
    make_away(used[0]);
    std::vector<CatalogEntry> entries = run(list_versions(world, cluster.layout, "series", world.clock.in(root_wait))).value();
    const auto look = [](World w, Layout l, std::vector<CatalogEntry>& all) -> Task<Status> {
        co_await look_elsewhere(w, l, "series", all, root_wait);
        co_return Status();
    };
    ASSERT_TRUE(run(look(world, {"/persistent", {idle}}, entries)).ok());
    ASSERT_EQ(entries.size(), 2u);
    ASSERT_EQ(entries[0].elsewhere.size(), 1u);
    EXPECT_EQ(entries[0].elsewhere[0].root, used[1]);
    ASSERT_EQ(entries[0].away.size(), 1u);
    EXPECT_THAT(entries[0].away[0].text(), HasSubstr(used[0]));
    EXPECT_EQ(entries[1].key, (VersionKey{"series", 9, {other.incarnation.high, 0}}));
    EXPECT_EQ(entries[1].elsewhere.size(), 1u);
    EXPECT_EQ(roots_of(entries[1]), std::vector<std::string>{idle});
}

// It stays number 0: `ls` tells its bytes once, and a removal finds there the room that its parts take.
TEST(PersistentAmongRoots, IsNoFurtherRoot) {
    ClusterOptions options = RootsTest::options();
    options.roots.resize(1);
    options.persistent_too = true;
    Cluster cluster(std::move(options));
    ASSERT_TRUE(cluster.open_job().ok());
    ASSERT_TRUE(cluster.capture_all(1).ok());
    ASSERT_TRUE(cluster.run_until_committed(1, 60 * second));
    const Manifest manifest = *cluster.newest_committed().value();
    EXPECT_EQ(manifest.roots, cluster.options.roots);
    std::set<std::uint32_t> used;
    for (const PartInfo& part : manifest.parts) used.insert(part.root);
    EXPECT_EQ(used, (std::set<std::uint32_t>{0, 1}));
    const auto files = cluster.sim.persistent().list(cluster.layout.version(manifest.key));
    EXPECT_EQ(files->size(), 2u) << "the manifest and a part";
    EXPECT_EQ(roots_besides("/persistent", {"/a", "/persistent", "/persistent2"}), (std::vector<std::string>{"/a", "/persistent2"}));
}

class LeftOut : public ::testing::TestWithParam<Below> {};

TEST_P(LeftOut, ARootInTroubleGetsNoPart) {
    ClusterOptions options = RootsTest::options();
    options.roots.pop_back();  // as many as parts: none has a turn without one
    options.settings.io_wait = root_wait;
    Cluster cluster(std::move(options));
    const std::string& spoiled = cluster.options.roots[1];
    cluster.sim.faults().below = spoiled;
    cluster.sim.faults().below_is = GetParam();
    ASSERT_TRUE(cluster.open_job().ok());
    for (Version version = 1; version <= 3; ++version) {  // its turn comes
        ASSERT_TRUE(cluster.capture_all(version).ok());
        ASSERT_TRUE(cluster.run_until_committed(version, 60 * second));
        const Manifest manifest = *cluster.newest_committed().value();
        for (const PartInfo& part : manifest.parts) EXPECT_NE(cluster.layout.root(manifest.roots, part.root), spoiled);
    }
}

std::string trouble_name(const ::testing::TestParamInfo<Below>& info) {
    return info.param == Below::fails ? "Fails" : info.param == Below::full ? "IsFull" : info.param == Below::away ? "IsAway" : "Hangs";
}
INSTANTIATE_TEST_SUITE_P(Roots, LeftOut, ::testing::Values(Below::fails, Below::full, Below::away, Below::hangs), trouble_name);

}  // namespace
}  // namespace cairn
