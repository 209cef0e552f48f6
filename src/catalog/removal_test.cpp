// Removing a version, ended at every moment by a kill or a power loss: it is whole or not there, nothing that was removed comes back, and
// whoever publishes late comes too late.
#include "catalog/removal.hpp"

#include <gtest/gtest.h>

#include "proof/cluster.hpp"
#include "catalog/reserve.hpp"
#include "format/names.hpp"

namespace cairn {
namespace {

using testing::Cluster;
using testing::ClusterOptions;

constexpr Nanos io_wait = 10 * second;
enum class End { kill, power_loss };

Status run_status(Cluster& cluster, Task<Status> task) {
    Status status(Code::deadline, "not done");
    const auto keep = [](Task<Status> t, Status& out) -> Task<void> {
        Status result = co_await t;
        out = std::move(result);
    };
    (void)cluster.sim.run(keep(std::move(task), status), cluster.sim.now() + 60 * second);
    return status;
}

// A cluster with version 1 committed, its images still in scratch, and a node of its own for whoever removes it.
class Removal {
  public:
    explicit Removal(bool commit = true) : cluster(options()), bystander(cluster.sim.add_node()) {
        CAIRN_CHECK(cluster.open_job().ok());
        CAIRN_CHECK(cluster.capture_all(1).ok());
        if (commit) CAIRN_CHECK(cluster.run_until_committed(1, 60 * second));
    }
    static ClusterOptions options() {
        ClusterOptions o;
        o.files = 2;
        o.image_bytes = [](Rank, Version) { return 50'000; };
        return o;
    }
    Manifest tombstone() const { return tombstone_of(cluster.key(1), cluster.roster.epoch, {}, cluster.roster.ranks); }
    World world() {
        if (!process || !process->alive()) process = &bystander.start_process("rm");
        return process->world();
    }
    Status remove(Fence fence) {
        World own = world();
        return run_status(cluster, remove_version(own, cluster.layout, tombstone(), fence, io_wait));
    }
    Result<Manifest> standing() {
        Result<Manifest> result(deadline_passed("reading"));
        World own = world();
        const auto read = [](World w, Layout l, VersionKey k, Result<Manifest>& out) -> Task<void> {
            Result<Manifest> manifest = co_await read_manifest(w, l, k, w.clock.in(io_wait));
            out = std::move(manifest);
        };
        (void)cluster.sim.run(read(own, cluster.layout, cluster.key(1), result), cluster.sim.now() + 60 * second);
        return result;
    }
    bool committed() {
        const Result<Manifest> manifest = standing();
        return manifest.ok() && !manifest->abandoned;
    }
    std::size_t files_of_attempts() {
        const auto entries = cluster.sim.persistent().list(cluster.layout.version(cluster.key(1)));
        std::size_t count = 0;
        if (entries.ok())
            for (const DirectoryEntry& entry : *entries) count += parse_attempt_of(entry.name).has_value();
        return count;
    }
    // Daemons that know nothing but what is in scratch and on persistent.
    void start_daemons_anew() {
        for (NodeIndex node = 0; node < cluster.hosts.size(); ++node) {
            cluster.kill_daemon(node);
            cluster.start_daemon(node);
        }
        cluster.sim.run_until(cluster.sim.now() + 30 * second);
    }
    // From now on no byte fits that does not take another's place.
    void fill() { cluster.sim.model().persistent_bytes_max = 1; }
    std::uint64_t reserve_left() {
        const auto file = cluster.sim.persistent().find(cluster.layout.reserve());
        return file.ok() ? (*file)->content->size() : 0;
    }
    void end(End how) {
        if (how == End::kill) process->kill();
        else bystander.crash(), bystander.restart();
    }

    Cluster cluster;
    sim::SimNode& bystander;
    sim::Process* process = nullptr;
};

// Lets the removal run for `span`, ends it, and says what became of the version. True when it had finished by itself.
bool end_after(Nanos span, Fence fence, End how, bool full) {
    Removal r;
    if (full) r.fill();
    World own = r.world();
    Task<Status> removing = remove_version(own, r.cluster.layout, r.tombstone(), fence, io_wait);
    removing.start();
    r.cluster.sim.run_until(r.cluster.sim.now() + span);
    const bool finished = removing.done();
    r.end(how);
    const Result<Manifest> left = r.standing();
    const bool whole = left.ok() && !left->abandoned;
    EXPECT_TRUE(left.ok() || left.code() == Code::not_found) << left.status().to_string();
    EXPECT_FALSE(finished && whole) << "said to be removed, and there";
    if (left.code() == Code::not_found && !(full && !finished)) {
        EXPECT_EQ(fence, Fence::lift);
        EXPECT_EQ(r.files_of_attempts(), 0u) << "the fence is gone, and parts are not";
    }
    r.cluster.sim.model().persistent_bytes_max = UINT64_MAX;
    r.start_daemons_anew();
    if (r.committed()) {
        // (A tombstone that was being lifted may go a moment after the kill.)
        const bool was_fenced = left.ok() && left->abandoned;
        EXPECT_TRUE(!was_fenced || fence == Fence::lift) << "a version came back through a tombstone";
        const Status read = r.cluster.check_committed(r.cluster.key(1));
        EXPECT_TRUE(read.ok()) << read.to_string();
    } else {
        EXPECT_EQ(r.cluster.state(0, 1).failure.code(), Code::superseded);
    }
    const Status again = r.remove(Fence::keep);
    EXPECT_TRUE(again.ok()) << again.to_string();
    EXPECT_EQ(r.files_of_attempts(), 0u);
    r.start_daemons_anew();
    EXPECT_FALSE(r.committed());
    return finished;
}

void end_at_every_moment(Fence fence, End how, bool full = false) {
    const Nanos step = sim::Model{}.persistent_latency / 2;
    int moments = 0;
    for (bool finished = false; !finished && !::testing::Test::HasFailure(); ++moments) {
        SCOPED_TRACE("ended after " + std::to_string(moments) + " steps");
        finished = end_after(moments * step, fence, how, full);
    }
    EXPECT_GT(moments, 10) << "the steps are too long to see anything";
}

TEST(Removal, KilledAtAnyMoment) { end_at_every_moment(Fence::keep, End::kill); }
TEST(Removal, KilledAtAnyMomentWhileTheFenceIsLifted) { end_at_every_moment(Fence::lift, End::kill); }
TEST(Removal, PowerLossAtAnyMoment) { end_at_every_moment(Fence::keep, End::power_loss); }
TEST(Removal, PowerLossAtAnyMomentWhileTheFenceIsLifted) { end_at_every_moment(Fence::lift, End::power_loss); }

TEST(Removal, KilledAtAnyMomentWhereThereIsNoRoom) { end_at_every_moment(Fence::keep, End::kill, true); }
TEST(Removal, PowerLossAtAnyMomentWhereThereIsNoRoom) { end_at_every_moment(Fence::keep, End::power_loss, true); }
TEST(Removal, PowerLossAtAnyMomentWhereThereIsNoRoomWhileTheFenceIsLifted) { end_at_every_moment(Fence::lift, End::power_loss, true); }

TEST(Removal, DaemonsStartedAgainDoNotCommitItAgain) {
    Removal r;
    ASSERT_TRUE(r.remove(Fence::keep).ok());
    r.start_daemons_anew();
    EXPECT_FALSE(r.committed());
    for (NodeIndex node = 0; node < 2; ++node) {
        EXPECT_TRUE(r.cluster.state(node, 1).final);
        EXPECT_EQ(r.cluster.state(node, 1).failure.code(), Code::superseded);
    }
    ASSERT_TRUE(r.cluster.capture_all(2).ok());
    EXPECT_TRUE(r.cluster.run_until_committed(2, 60 * second)) << "the next one is not hindered";
}

// The coordinator is stopped at every moment of its flush; meanwhile the version is removed, or given up when it is not committed yet.
TEST(Removal, ACoordinatorPausedAtAnyMomentComesTooLate) {
    int given_up = 0, removed = 0;
    for (Nanos span = 0; removed < 3 && !HasFailure(); span += 200 * microsecond) {
        SCOPED_TRACE("paused after " + std::to_string(span) + " ns");
        Removal r(false);
        r.cluster.sim.run_until(r.cluster.sim.now() + span);
        r.cluster.hosts[0].process->pause();
        r.cluster.sim.run_until(r.cluster.sim.now() + second);
        World own = r.world();
        const std::string directory = r.cluster.layout.version(r.cluster.key(1));
        if (!r.cluster.sim.persistent().find(directory).ok()) continue;  // nothing there to remove yet
        Status fenced = run_status(r.cluster, give_up_version(own, r.cluster.layout, r.tombstone(), io_wait));
        if (fenced.code() == Code::already_exists) {
            ++removed;
            fenced = r.remove(Fence::keep);
        } else {
            ++given_up;
            ASSERT_TRUE(fenced.ok()) << fenced.to_string();
            World again = r.world();
            fenced = run_status(r.cluster, clear_version(again, r.cluster.layout, r.tombstone(), Fence::keep, io_wait));
        }
        ASSERT_TRUE(fenced.ok()) << fenced.to_string();
        r.cluster.hosts[0].process->resume();
        r.cluster.sim.run_until(r.cluster.sim.now() + 60 * second);
        EXPECT_FALSE(r.committed());
        r.start_daemons_anew();
        EXPECT_FALSE(r.committed());
    }
    EXPECT_GT(given_up, 3);
}

TEST(Removal, APublicationUnderWayComesToNothingWithoutItsTemporaryName) {
    Removal r;
    const VersionKey key = r.cluster.key(1);
    const Id128 attempt{key.incarnation.high, 99};
    const std::string temporary = r.cluster.layout.temporary(key, attempt);
    const std::string foreign = r.cluster.layout.version(key) + "/" + temporary_file_name({key.incarnation.high + 1, 1});
    for (const std::string& path : {temporary, foreign}) ASSERT_TRUE(r.cluster.sim.persistent().create(path, 0).ok());
    ASSERT_TRUE(r.remove(Fence::lift).ok());
    EXPECT_EQ(r.standing().code(), Code::not_found) << "the fence is lifted";
    EXPECT_TRUE(r.cluster.sim.persistent().find(foreign).ok()) << "another incarnation's";
    const Status late = r.cluster.sim.persistent().publish(temporary, r.cluster.layout.manifest(key), false, 0);
    EXPECT_EQ(late.code(), Code::not_found) << late.to_string();
}

void two_at_once(bool full, Fence fence) {
    Removal r;
    if (full) r.cluster.sim.model().persistent_bytes_max = r.cluster.sim.persistent().used_bytes();  // what they remove gives room
    sim::Process& other = r.cluster.hosts[1].node->start_process("rm too");
    World own = r.world(), its = other.world();
    Task<Status> one = remove_version(own, r.cluster.layout, r.tombstone(), fence, io_wait);
    Task<Status> two = remove_version(its, r.cluster.layout, r.tombstone(), fence, io_wait);
    one.start();
    two.start();
    ASSERT_TRUE(r.cluster.sim.run_until([&] { return one.done() && two.done(); }, r.cluster.sim.now() + 60 * second));
    EXPECT_FALSE(r.committed());
    EXPECT_EQ(r.files_of_attempts(), 0u);
    if (fence == Fence::keep) {
        EXPECT_TRUE(r.standing().ok()) << "the tombstone";
    }
    other.kill();
}

TEST(Removal, TwoAtOnce) { two_at_once(false, Fence::lift); }
TEST(Removal, TwoAtOnceWhereThereIsNoRoom) {
    two_at_once(true, Fence::lift);
    two_at_once(true, Fence::keep);
}

// The file system opens another file of the manifest's name for writing: what is there is the manifest still, and nothing that it names may go.
TEST(Removal, WhereThereIsNoRoomTheTombstoneMustBeWhereItWasWritten) {
    Removal r;
    for (NodeIndex node = 0; node < 2; ++node) r.cluster.kill_daemon(node);
    const std::size_t files = r.files_of_attempts();
    r.cluster.sim.model().persistent_bytes_max = r.cluster.sim.persistent().used_bytes();
    r.cluster.sim.faults().twin_open = 1;
    const Status removed = r.remove(Fence::keep);
    EXPECT_EQ(removed.code(), Code::io_error) << removed.to_string();
    EXPECT_NE(removed.text().find("does not hold what was written to it"), std::string::npos) << removed.to_string();
    EXPECT_EQ(r.files_of_attempts(), files + 1) << "its parts, and the manifest under another name";
}

TEST(Removal, ATombstoneTakesItsRoomOutOfTheReserve) {
    Removal r;
    World own = r.world();
    ASSERT_TRUE(run_status(r.cluster, keep_reserve(own, r.cluster.layout, own.clock.in(io_wait))).ok());
    EXPECT_EQ(r.reserve_left(), reserve_bytes);
    r.cluster.sim.model().persistent_bytes_max = r.cluster.sim.persistent().used_bytes();
    std::vector<std::string> moved;
    r.cluster.sim.set_observer([&](sim::Process&, const char* what, const std::string& path) {
        if (what == std::string("replace")) moved.push_back(path);
    });
    ASSERT_TRUE(r.remove(Fence::keep).ok());
    EXPECT_FALSE(r.committed());
    EXPECT_EQ(r.reserve_left(), reserve_bytes - reserve_piece_bytes);
    EXPECT_EQ(moved.size(), 1u) << "in one step, as where there is room";
    ASSERT_TRUE(run_status(r.cluster, keep_reserve(own, r.cluster.layout, own.clock.in(io_wait))).ok());
    EXPECT_EQ(r.reserve_left(), reserve_bytes) << "whole again, since parts went";
}

TEST(Removal, AnOpenIsRecordedInTheReservesRoom) {
    Removal r;
    World own = r.world();
    ASSERT_TRUE(run_status(r.cluster, keep_reserve(own, r.cluster.layout, own.clock.in(io_wait))).ok());
    r.cluster.sim.model().persistent_bytes_max = r.cluster.sim.persistent().used_bytes();
    const std::string path = r.cluster.layout.jobs() + "/record";
    Bytes record(300);
    ASSERT_TRUE(run_status(r.cluster, publish_small_file(own, r.cluster.layout, path, record, 0644, own.clock.in(io_wait))).ok());
    EXPECT_TRUE(r.cluster.sim.persistent().find(path).ok());
    r.cluster.sim.model().persistent_bytes_max = 1;
    ASSERT_TRUE(r.cluster.sim.persistent().lose(r.cluster.layout.reserve()).ok());
    const Status none = run_status(r.cluster, publish_small_file(own, r.cluster.layout, path + "2", record, 0644, own.clock.in(io_wait)));
    EXPECT_EQ(none.code(), Code::out_of_space);
    const auto entries = r.cluster.sim.persistent().list(r.cluster.layout.jobs());
    ASSERT_TRUE(entries.ok());
    for (const DirectoryEntry& entry : *entries) EXPECT_FALSE(parse_temporary_file_name(entry.name)) << "what failed is left: " << entry.name;
}

// Killed between the manifest's move and the tombstone, it leaves parts and an unpublished manifest, whose room serves again.
TEST(Removal, WhatHasNoManifestIsGivenUpInTheRoomOfWhatIsNotPublished) {
    Removal r;
    const VersionKey key = r.cluster.key(1);
    for (NodeIndex node = 0; node < 2; ++node) r.cluster.kill_daemon(node);
    ASSERT_TRUE(r.cluster.sim.persistent().replace(r.cluster.layout.manifest(key), r.cluster.layout.temporary(key, {key.incarnation.high, 7}), 0).ok());
    r.cluster.sim.model().persistent_bytes_max = r.cluster.sim.persistent().used_bytes();
    World own = r.world();
    ASSERT_TRUE(run_status(r.cluster, give_up_version(own, r.cluster.layout, r.tombstone(), io_wait)).ok());
    const Result<Manifest> left = r.standing();
    EXPECT_TRUE(left.ok() && left->abandoned);
}

TEST(Removal, WhatARetentionRuleLetsGo) {
    using Indices = std::vector<std::size_t>;
    EXPECT_EQ(beyond_retention({1, 2, 3, 4}, 2, 0), (Indices{0, 1}));
    EXPECT_EQ(beyond_retention({1, 2}, 2, 0), Indices());
    EXPECT_EQ(beyond_retention({10, 11, 20, 21, 22}, 1, 10), (Indices{1, 3}));
    EXPECT_EQ(beyond_retention({1, 2, 3}, 0, 0), Indices());
}

TEST(Removal, OfWhatIsNotThere) {
    Removal r;
    ASSERT_TRUE(r.remove(Fence::lift).ok());
    EXPECT_FALSE(r.cluster.sim.persistent().find(r.cluster.layout.version(r.cluster.key(1))).ok());
    EXPECT_TRUE(r.remove(Fence::keep).ok()) << "gone is gone";
}

}  // namespace
}  // namespace cairn
