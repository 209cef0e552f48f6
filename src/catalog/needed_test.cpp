// What depends on what, and that a removal sees a dependent, also one that comes while it is under way.
#include "catalog/needed.hpp"

#include <gtest/gtest.h>

#include "catalog/removal.hpp"
#include "format/names.hpp"
#include "proof/cluster.hpp"
#include "proof/dependents.hpp"

namespace cairn {
namespace {

using testing::Cluster;
using testing::ClusterOptions;

constexpr Nanos needed_wait = 10 * second;
const Id128 job{7, 7}, other{8, 8};

Dependent dependent(Version version, std::vector<BaseVersion> bases, bool is_told = true) { return {{"melt", version, job}, std::move(bases), is_told}; }
VersionKey key_of(Version version, Id128 incarnation = job) { return {"melt", version, incarnation}; }

TEST(Needed, ByWhoNamesIt) {
    const std::vector<Dependent> dependents = {dependent(4, {{2, job}, {3, other}}), dependent(6, {{2, job}})};
    const Dependent* by = needed_by(dependents, key_of(2));
    ASSERT_NE(by, nullptr);
    EXPECT_EQ(by->key.version, 4u);
    EXPECT_EQ(needed_text(*by), "version 4 depends on it");
    EXPECT_EQ(needed_by(dependents, key_of(2, other)), nullptr) << "of another incarnation";
    EXPECT_EQ(needed_by(dependents, key_of(3)), nullptr);
    EXPECT_NE(needed_by(dependents, key_of(3, other)), nullptr);
    EXPECT_EQ(needed_by(dependents, key_of(2), {key_of(4)})->key.version, 6u);
    EXPECT_EQ(needed_by(dependents, key_of(2), {key_of(4), key_of(6)}), nullptr) << "all that depend on it are gone";
}

TEST(Needed, ByWhoMay) {
    const std::vector<Dependent> dependents = {dependent(4, {}, false)};
    ASSERT_NE(needed_by(dependents, key_of(3)), nullptr);
    EXPECT_EQ(needed_by(dependents, key_of(5)), nullptr) << "nothing depends on what is newer";
    EXPECT_NE(needed_text(dependents[0]).find("can not be read"), std::string::npos);
}

TEST(Needed, OfAnEntry) {
    CatalogEntry entry;
    entry.key = key_of(4);
    entry.manifest.emplace();
    EXPECT_FALSE(dependent_of(entry));
    entry.manifest->bases = {{2, job}};
    EXPECT_EQ(dependent_of(entry)->bases, entry.manifest->bases);
    entry.manifest.reset();
    entry.damage = corrupt("a bit turned");
    EXPECT_FALSE(dependent_of(entry)) << "nobody can restore it";
    entry.damage = Status(Code::io_error, "no answer");
    EXPECT_FALSE(dependent_of(entry)->is_told);
    entry.damage = Status(Code::unsupported, "of a newer Cairn");
    EXPECT_FALSE(dependent_of(entry)->is_told);
}

// Version 1 committed, and version 5, which has all of its parts.
struct Based {
    Based() {
        CAIRN_CHECK(cluster.open_job().ok());
        CAIRN_CHECK(cluster.capture_all(1).ok());
        CAIRN_CHECK(cluster.run_until_committed(1, 60 * second));
        process = &cluster.sim.add_node().start_process("operator");
    }
    static ClusterOptions options() {
        ClusterOptions o;
        o.files = 2;
        o.image_bytes = [](Rank, Version) { return 50'000; };
        return o;
    }
    template <class T>
    T run(Task<T> task) {
        std::optional<T> result;
        const auto keep = [](Task<T> t, std::optional<T>& out) -> Task<void> {
            T value = co_await t;
            out.emplace(std::move(value));
        };
        CAIRN_CHECK(cluster.sim.run(keep(std::move(task), result), cluster.sim.now() + 60 * second));
        return std::move(*result);
    }
    World& world() { return *(worlds.empty() ? &worlds.emplace_back(process->world()) : &worlds.back()); }
    VersionKey newer() const { return {cluster.key(1).name, 5, cluster.key(1).incarnation}; }
    Status depend() { return run(testing::publish_dependent(world(), cluster.layout, cluster.key(1), newer(), needed_wait)); }
    Status remove(const VersionKey& key) { return run(remove_version(world(), cluster.layout, tombstone_of(key, cluster.roster.epoch, {}, cluster.roster.ranks), Fence::keep, needed_wait)); }
    Status restore(const VersionKey& key) { return run(cluster.restore(world(), key, cluster.key(1))); }

    Cluster cluster{options()};
    sim::Process* process = nullptr;
    std::vector<World> worlds;
};

struct Bases : ::testing::Test, Based {};

TEST_F(Bases, StayAsLongAsTheirDependents) {
    ASSERT_TRUE(depend().ok());
    const Status refused = remove(cluster.key(1));
    EXPECT_EQ(refused.code(), Code::permission);
    EXPECT_NE(refused.text().find("version 5 depends on it"), std::string::npos) << refused.text();
    EXPECT_TRUE(restore(cluster.key(1)).ok()) << "it was not touched";
    EXPECT_TRUE(restore(newer()).ok()) << restore(newer()).to_string();
    EXPECT_TRUE(remove(newer()).ok());
    EXPECT_EQ(restore(newer()).code(), Code::not_found);
    EXPECT_TRUE(restore(cluster.key(1)).ok()) << "parts of a base are not the dependent's to remove";
    EXPECT_TRUE(remove(cluster.key(1)).ok());
    EXPECT_EQ(restore(cluster.key(1)).code(), Code::not_found);
}

// Where disks are full, too: what said that it would go does not lie about any more, and others may depend on it.
TEST_F(Bases, ARefusedRemovalLeavesThemAsTheyWere) {
    ASSERT_TRUE(depend().ok());
    for (const bool full : {false, true}) {
        const std::uint64_t before = std::exchange(cluster.sim.model().persistent_bytes_max, full ? 1 : cluster.sim.model().persistent_bytes_max);
        EXPECT_EQ(remove(cluster.key(1)).code(), Code::permission);
        cluster.sim.model().persistent_bytes_max = before;
        EXPECT_TRUE(restore(cluster.key(1)).ok());
        const VersionKey another(newer().name, full ? 7 : 6, newer().incarnation);
        const Status published = run(testing::publish_dependent(world(), cluster.layout, cluster.key(1), another, needed_wait));
        EXPECT_TRUE(published.ok()) << published.to_string();
    }
}

// A tombstone that is about to take its place, or what a kill left; not another job's.
TEST_F(Bases, AreNoneWhereSomethingUnpublishedOfTheirsLies) {
    const VersionKey key = cluster.key(1);
    const auto lies = [&](Id128 attempt) {
        const std::string path = cluster.layout.temporary(key, attempt);
        EXPECT_TRUE(run(write_file(world().storage, path, Bytes(), 0644, world().clock.in(needed_wait))).ok());
        const Status published = depend();
        EXPECT_TRUE(run(world().storage.remove(path, world().clock.in(needed_wait))).ok());
        return published;
    };
    EXPECT_EQ(lies({key.incarnation.high, 9}).code(), Code::superseded);
    EXPECT_EQ(restore(newer()).code(), Code::not_found);
    EXPECT_TRUE(lies({key.incarnation.high + 1, 9}).ok());
}

TEST_F(Bases, MayBeOfTheJobThatThisOneWentOnFrom) {
    const VersionKey of_another(newer().name, 5, {newer().incarnation.high + 1, 3});
    const Status published = run(testing::publish_dependent(world(), cluster.layout, cluster.key(1), of_another, needed_wait));
    EXPECT_TRUE(published.ok()) << published.to_string();
    EXPECT_TRUE(restore(of_another).ok()) << restore(of_another).to_string();
}

// Of a directory that can not be listed now nobody knows what it needs.
TEST_F(Bases, StayWhereADependentsDirectoryCanNotBeListed) {
    ASSERT_TRUE(depend().ok());
    for (const sim::Faults::Below trouble : {sim::Faults::Below::fails, sim::Faults::Below::hangs}) {
        cluster.sim.faults().below = cluster.layout.version(newer());
        cluster.sim.faults().below_is = trouble;
        EXPECT_FALSE(remove(cluster.key(1)).ok());
        cluster.sim.faults().below = {};
        EXPECT_TRUE(restore(newer()).ok()) << restore(newer()).to_string();
    }
}

// Between a list and a read a manifest gets its name.
TEST_F(Bases, AreNeededByAManifestThatIsNamedWhileItIsLookedFor) {
    ASSERT_TRUE(depend().ok());
    const std::string path = cluster.layout.manifest(newer()), temporary = cluster.layout.temporary(newer(), {newer().incarnation.high, 9});
    ASSERT_TRUE(cluster.sim.persistent().replace(path, temporary, 0).ok());
    bool named = false;
    cluster.sim.set_observer([&](sim::Process&, const char* what, const std::string& file) {
        if (named || what != std::string("open") || file != temporary) return;
        named = true;
        CAIRN_CHECK(cluster.sim.persistent().replace(temporary, path, 0).ok());
    });
    EXPECT_EQ(remove(cluster.key(1)).code(), Code::permission);
    EXPECT_TRUE(named);
    EXPECT_TRUE(restore(cluster.key(1)).ok()) << "no tombstone took its place: " << restore(cluster.key(1)).to_string();
    EXPECT_TRUE(restore(newer()).ok()) << restore(newer()).to_string();
}

// A dependent is published behind the removal's first look, and before its tombstone is there under any name.
TEST_F(Bases, AreLookedForBehindTheMarkOfWhoRemovesThem) {
    ASSERT_TRUE(depend().ok());
    const std::string path = cluster.layout.manifest(newer()), hidden = cluster.layout.version(newer()) + "/hidden", beside = cluster.layout.version(cluster.key(1)) + "/";
    ASSERT_TRUE(cluster.sim.persistent().replace(path, hidden, 0).ok());
    bool shown = false;
    cluster.sim.set_observer([&](sim::Process&, const char* what, const std::string& file) {
        if (shown || what != std::string("create") || file.rfind(beside, 0) != 0) return;
        shown = true;
        CAIRN_CHECK(cluster.sim.persistent().replace(hidden, path, 0).ok());
    });
    EXPECT_EQ(remove(cluster.key(1)).code(), Code::permission);
    EXPECT_TRUE(shown);
    EXPECT_TRUE(restore(cluster.key(1)).ok()) << "no tombstone took its place: " << restore(cluster.key(1)).to_string();
}

// Whatever the order of publication and tombstone, a dependent that was published for good can be restored.
TEST(Needed, ByADependentThatComesMeanwhile) {
    int dependents = 0, refused = 0;
    for (int at = -100; at < 100; ++at) {
        Based run;
        Status published = deadline_passed("publishing"), removed = deadline_passed("removing");
        World publishers = run.cluster.sim.add_node().start_process("publisher").world();
        const auto keep = [](Task<Status> t, Status& out) -> Task<void> {
            Status value = co_await t;
            out = std::move(value);
        };
        Task<void> publish = keep(testing::publish_dependent(publishers, run.cluster.layout, run.cluster.key(1), run.newer(), needed_wait), published);
        Task<void> remove = keep(remove_version(run.world(), run.cluster.layout, tombstone_of(run.cluster.key(1), run.cluster.roster.epoch, {}, 1), Fence::keep, needed_wait), removed);
        (at < 0 ? publish : remove).start();
        run.cluster.sim.run_until(run.cluster.sim.now() + std::abs(at) * 100 * microsecond);
        (at < 0 ? remove : publish).start();
        run.cluster.sim.run_until(run.cluster.sim.now() + 60 * second);
        const Status restored = run.restore(run.newer());
        EXPECT_TRUE(!published.ok() || run.restore(run.cluster.key(1)).ok()) << "at " << at << ": the base has lost its manifest, and what is stored as what changed since it is lost";
        EXPECT_EQ(restored.ok(), published.ok()) << "at " << at << ": " << restored.to_string() << "; published: " << published.to_string() << "; removed: " << removed.to_string();
        dependents += published.ok();
        refused += removed.code() == Code::permission;
    }
    EXPECT_GT(dependents, 0) << "none was published beside a removal";
    EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace cairn
