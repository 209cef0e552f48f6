// The publisher alone: one manifest for a version, in an order that no crash can turn into half a commit, and only where the job's own record is to be seen.
#include "engine/coordinator/publisher.hpp"

#include "engine/role_testing.hpp"
#include "format/manifest.hpp"
#include "model/coverage.hpp"

namespace cairn::engine {
namespace {

using testing::Alone;
using testing::role_block;

// Node 0 coordinates an attempt of one part, which its leader, node 1, has written and reported.
struct PublisherTest : ::testing::Test {
    static constexpr std::uint64_t image_bytes = 3 * role_block;
    static constexpr Id128 attempt_id{7, 5};

    explicit PublisherTest(const testing::RoleOptions& options = {}) : node(options) {
        node.flight->coordinator = std::make_shared<CoordinatorSide>(node.flight->since);
        Contest contest;
        contest.attempt_id = attempt_id;
        contest.block_bytes = role_block;
        LeaderTrack& track = contest.leaders[1];
        track.lead.attempt_id = attempt_id;
        track.lead.block_bytes = role_block;
        track.lead.parts_total = 1;
        track.lead.parts = {{0, "", 0, {{1, 0, 9 * role_block, {}}}}};
        contest.plan = track.lead.parts;
        track.done.emplace();
        for (const Rank rank : {0u, 1u, 2u}) {
            side().sealed[rank] = {{testing::role_image(rank, image_bytes)}, role_block};
            track.done->coverage += coverage(rank, 0, image_bytes);
        }
        track.done->parts = {{part_file_name(0, 1, attempt_id), part_bytes, 9 * role_block, 1, {0, 1, 2}}};
        side().contest = std::move(contest);
        write(part_path(attempt_id), Bytes(part_bytes));
    }
    CoordinatorSide& side() { return *node.flight->coordinator; }
    Contest& contest() { return *side().contest; }
    std::string part_path(Id128 of) const { return node.layout.part(node.flight->key, 0, 1, of); }
    std::string manifest_path() const { return node.layout.manifest(node.flight->key); }
    std::string temporary_path() const { return node.layout.temporary(node.flight->key, attempt_id); }
    std::string directory() const { return node.layout.version(node.flight->key); }
    void write(const std::string& path, Bytes bytes) {
        const Status wrote = node.result_of(write_file(node.world.storage, path, std::move(bytes), 0644, node.world.clock.in(second)));
        ASSERT_TRUE(wrote.ok()) << wrote.to_string();
    }
    // Another's, in the place of this version's.
    void stands(Id128 of, bool abandoned) {
        Manifest manifest;
        manifest.key = node.flight->key;
        manifest.epoch = node.job->roster->epoch;
        manifest.attempt_id = of;
        manifest.abandoned = abandoned;
        manifest.ranks = 3;
        manifest.nodes = 3;
        if (!abandoned) {
            manifest.block_bytes = role_block;
            manifest.image_bytes = 3 * image_bytes;
            manifest.parts = {{part_file_name(0, 1, of), part_bytes, 9 * role_block, 1, {0, 1, 2}}};
        }
        ASSERT_TRUE(abandoned || check_manifest(manifest).ok()) << check_manifest(manifest).to_string();
        write(manifest_path(), encode_manifest(manifest));
    }
    Status commit() { return node.result_of(node.subject.commit(node.flight)); }
    Status look() { return node.result_of(node.subject.look(node.flight)); }
    Status give_up() { return node.result_of(node.subject.give_up(node.flight)); }
    std::optional<Manifest> standing() {
        const std::optional<Bytes> bytes = node.read(manifest_path());
        if (!bytes) return std::nullopt;
        Result<Manifest> manifest = decode_manifest(*bytes);
        EXPECT_TRUE(manifest.ok()) << manifest.status().to_string();
        return manifest.ok() ? std::optional(std::move(manifest).value()) : std::nullopt;
    }
    bool is_there(const std::string& path) const { return node.sim.persistent().find(path).ok(); }

    static constexpr std::uint64_t part_bytes = 10 * role_block;
    Alone<Publisher> node;
};

TEST_F(PublisherTest, TheManifestIsDurableBeforeItsNameAndTheNameBeforeTheWord) {
    const std::vector<std::string>& operations = node.watch_operations();
    ASSERT_TRUE(commit().ok());
    const auto place = [&](const std::string& what) {
        const auto found = std::find(operations.begin(), operations.end(), what);
        EXPECT_NE(found, operations.end()) << what;
        return found - operations.begin();
    };
    EXPECT_LT(place("write " + temporary_path()), place("fsync " + temporary_path()));
    EXPECT_LT(place("fsync " + temporary_path()), place("publish " + manifest_path()));
    EXPECT_LT(place("publish " + manifest_path()), place("fsync_directory " + directory()));
    ASSERT_TRUE(node.durable(manifest_path()).has_value());
    const Result<Manifest> manifest = decode_manifest(*node.durable(manifest_path()));
    ASSERT_TRUE(manifest.ok()) << manifest.status().to_string();
    EXPECT_EQ(manifest->key, node.flight->key);
    EXPECT_EQ(manifest->attempt_id, attempt_id);
    EXPECT_EQ(manifest->epoch, node.job->roster->epoch);
    EXPECT_EQ(manifest->ranks, 3u);
    EXPECT_EQ(manifest->nodes, 3u);
    EXPECT_EQ(manifest->image_bytes, 3 * image_bytes);
    EXPECT_EQ(manifest->parts, contest().leaders.at(1).done->parts);
    EXPECT_FALSE(is_there(temporary_path()));
    EXPECT_TRUE(contest().may_be_published);
}

TEST_F(PublisherTest, AKillBeforeThePublicationLeavesNoCommit) {
    bool killed = false;
    node.sim.set_before([&](sim::Process& process, const char* what, const std::string&) {
        if (what == std::string("publish") && !std::exchange(killed, true)) node.sim.at(node.sim.now(), [&process] { process.node().crash(); });
    });
    node.sim.faults().unsynced = sim::Faults::Unsynced::lost;
    node.sim.faults().left = sim::Faults::Left::nothing;
    std::optional<Status> ended;
    const auto keep = [](Task<Status> task, std::optional<Status>* out) -> Task<void> {
        Status status = co_await task;
        *out = std::move(status);
    };
    node.gate.spawn(keep(node.subject.commit(node.flight), &ended));
    node.run(10 * second);
    EXPECT_TRUE(killed);
    EXPECT_FALSE(ended.has_value());
    EXPECT_FALSE(node.durable(manifest_path()).has_value());
}

TEST_F(PublisherTest, AStandingTombstoneIsSuperseded) {
    stands({7, 9}, true);
    const Status status = commit();
    EXPECT_EQ(status.code(), Code::superseded) << status.to_string();
    EXPECT_TRUE(standing()->abandoned) << "it is never replaced";
    EXPECT_EQ(look().code(), Code::superseded);
    EXPECT_FALSE(is_there(part_path(attempt_id))) << "no manifest can name it any more";
    EXPECT_FALSE(is_there(temporary_path()));
}

// Some data of it can not be decoded without an older version, which is named, and must be there.
TEST_F(PublisherTest, WhatItDependsOnIsNamedAndMustStand) {
    VersionKey base = node.flight->key;
    node.flight->key.version = base.version + 4;
    ASSERT_TRUE(node.result_of(make_directories(node.world.storage, node.layout.persistent, directory(), node.world.clock.in(second))).ok());
    write(part_path(attempt_id), Bytes(part_bytes));
    contest().leaders.at(1).lead.base = base.version;
    contest().leaders.at(1).done->needs_base = true;
    const Status without = commit();
    EXPECT_EQ(without.code(), Code::unavailable) << without.to_string();
    EXPECT_NE(without.text().find("version 1"), std::string::npos) << without.to_string();
    EXPECT_FALSE(standing());
    EXPECT_FALSE(node.read(temporary_path())) << "a removal would take it for one that is about to stand";
    Manifest whole;
    whole.key = base;
    whole.epoch = node.job->roster->epoch;
    whole.attempt_id = {7, 4};
    whole.ranks = whole.nodes = 3;
    whole.block_bytes = role_block;
    whole.image_bytes = 3 * image_bytes;
    whole.parts = {{part_file_name(0, 1, whole.attempt_id), part_bytes, 9 * role_block, 1, {0, 1, 2}}};
    write(node.layout.manifest(base), encode_manifest(whole));
    LeaderTrack& other = contest().leaders[2];  // whose data stand alone
    other.lead = contest().leaders.at(1).lead;
    other.done.emplace();
    const std::vector<std::string>& operations = node.watch_operations();
    const Status published = commit();
    ASSERT_TRUE(published.ok()) << published.to_string();
    EXPECT_EQ(standing()->bases, (std::vector<BaseVersion>{{base.version, base.incarnation}}));
    const auto said = std::find(operations.begin(), operations.end(), "fsync " + temporary_path());
    EXPECT_NE(std::find(said, operations.end(), "open " + node.layout.manifest(base)), operations.end()) << "who removes it looks for what depends on it, and then takes it away: one of both looks last";
}

// A late publisher of another attempt: what stands is the commit, and its parts stay.
TEST_F(PublisherTest, AStandingManifestOfAnotherAttemptIsTheCommit) {
    const Id128 other{7, 9};
    write(part_path(other), Bytes(part_bytes));
    stands(other, false);
    ASSERT_TRUE(commit().ok()) << "the version is committed, whoever did it";
    EXPECT_EQ(standing()->attempt_id, other);
    EXPECT_TRUE(is_there(part_path(other)));
    EXPECT_FALSE(is_there(part_path(attempt_id)));
    const Status given_up = give_up();
    EXPECT_EQ(given_up.code(), Code::already_exists) << given_up.to_string();
    EXPECT_EQ(standing()->attempt_id, other);
    EXPECT_TRUE(is_there(part_path(other)));
}

// An older life of this coordinator published, and died before it heard so.
TEST_F(PublisherTest, AManifestOfTheSameAttemptIsSuccess) {
    stands(attempt_id, false);
    EXPECT_TRUE(commit().ok());
    EXPECT_EQ(standing()->attempt_id, attempt_id);
    EXPECT_TRUE(is_there(part_path(attempt_id)));
    ASSERT_TRUE(node.durable(manifest_path()).has_value()) << "whoever published may have died before the name was durable";
}

TEST_F(PublisherTest, ALookMakesWhatStandsDurable) {
    EXPECT_EQ(look().code(), Code::not_found);
    stands(attempt_id, false);
    EXPECT_FALSE(node.durable(manifest_path()).has_value());
    EXPECT_TRUE(look().ok());
    EXPECT_TRUE(node.durable(manifest_path()).has_value());
}

// Another file system is mounted where the job's was.
TEST_F(PublisherTest, WithoutTheJobsOwnRecordNothingIsDecided) {
    const std::string record = node.layout.lineage_open("series", node.job->roster->epoch);
    ASSERT_TRUE(node.sim.persistent().lose(record).ok());
    const Status status = commit();
    EXPECT_EQ(status.code(), Code::unavailable);
    EXPECT_NE(status.text().find(record), std::string::npos) << status.text();
    EXPECT_EQ(give_up().code(), Code::unavailable);
    EXPECT_EQ(look().code(), Code::unavailable);
    EXPECT_FALSE(standing().has_value());
    EXPECT_FALSE(contest().may_be_published);
    stands({7, 9}, false);
    EXPECT_EQ(look().code(), Code::unavailable) << "nor believed";
}

// It went away while the manifest was published: that counts for nothing.
TEST_F(PublisherTest, TheRecordIsLookedForOnceMoreAfterThePublication) {
    const std::string record = node.layout.lineage_open("series", node.job->roster->epoch);
    node.sim.set_observer([&](sim::Process&, const char* what, const std::string&) {
        if (what == std::string("published")) node.sim.at(node.sim.now(), [&] { (void)node.sim.persistent().lose(record); });
    });
    EXPECT_EQ(commit().code(), Code::unavailable);
}

// The name may be lost with the next power failure: nobody may hear that the version is committed.
TEST_F(PublisherTest, ANameThatIsNotDurableIsNoCommit) {
    node.sim.set_observer([&](sim::Process&, const char* what, const std::string&) {
        node.sim.faults().metadata_error = node.sim.faults().fsync_error = what == std::string("fsync_directory") ? 1 : 0;
    });
    node.sim.faults().error_done = 0;
    const Status status = commit();
    EXPECT_EQ(status.code(), Code::io_error) << status.to_string();
    EXPECT_TRUE(contest().may_be_published) << "its parts stay: it may stand";
    EXPECT_NE(look().code(), Code::ok);
    node.sim.set_observer({});
    node.sim.faults() = {};
    EXPECT_TRUE(look().ok());
}

TEST_F(PublisherTest, PartsMustHoldEveryBlockOnce) {
    contest().leaders.at(1).done->coverage -= coverage(2, role_block, role_block);
    EXPECT_EQ(commit().code(), Code::internal);
    EXPECT_FALSE(standing().has_value());
}

TEST_F(PublisherTest, APartThatIsNotToBeSeenIsNotCommitted) {
    ASSERT_TRUE(node.sim.persistent().lose(part_path(attempt_id)).ok());
    const Status missing = commit();
    EXPECT_EQ(missing.code(), Code::unavailable);
    EXPECT_NE(missing.text().find(part_path(attempt_id)), std::string::npos) << missing.text();
    write(part_path(attempt_id), Bytes(part_bytes - 1));
    EXPECT_EQ(commit().code(), Code::unavailable) << "of another size";
    EXPECT_FALSE(standing().has_value());
}

TEST_F(PublisherTest, ALeaderThatReportsOtherPartsThanItsOwnIsNotBelieved) {
    message::PartsDone& done = *contest().leaders.at(1).done;
    done.parts.push_back(done.parts.front());
    EXPECT_EQ(commit().code(), Code::internal);
    done.parts.clear();
    EXPECT_EQ(commit().code(), Code::internal);
    EXPECT_FALSE(standing().has_value());
}

TEST_F(PublisherTest, GivingUpLeavesATombstoneAndNothingElse) {
    write(temporary_path(), Bytes(10));
    const Id128 foreign{6, 1};  // of another incarnation's attempt
    write(part_path(foreign), Bytes(10));
    ASSERT_TRUE(give_up().ok());
    ASSERT_TRUE(standing().has_value());
    EXPECT_TRUE(standing()->abandoned);
    EXPECT_TRUE(node.durable(manifest_path()).has_value());
    EXPECT_FALSE(is_there(part_path(attempt_id)));
    EXPECT_FALSE(is_there(temporary_path())) << "what hung in the file system comes to nothing";
    EXPECT_TRUE(is_there(part_path(foreign)));
    EXPECT_EQ(give_up().code(), Code::superseded) << "another one stands";
    write(part_path(attempt_id), Bytes(part_bytes));  // a leader that wakes up late
    EXPECT_EQ(commit().code(), Code::superseded);
}

// The part lies below the first of three roots.
struct PublisherRootsTest : PublisherTest {
    static testing::RoleOptions options() {
        testing::RoleOptions o;
        o.roots = {"/persistent/.a", "/persistent/.b", "/persistent/.c"};
        return o;
    }
    PublisherRootsTest() : PublisherTest(options()) {
        contest().leaders.at(1).lead.parts.front().target = root(0);
        contest().leaders.at(1).done->parts.front().root = 1;
        write(Layout::part_below(root(0), node.flight->key, {0, 1, attempt_id}), Bytes(part_bytes));
    }
    const std::string& root(std::size_t place) const { return node.job->roots[place]; }
    void make(sim::Faults::Below trouble, const std::string& below) {
        node.sim.faults().below = below;
        node.sim.faults().below_is = trouble;
    }
    bool is_avoided(const std::string& root) const { return node.job->experience && node.job->experience->avoided.count(root) != 0; }
    const Nanos io_wait = FlushSettings().io_wait;
};
using Below = sim::Faults::Below;

TEST_F(PublisherRootsTest, ARootThatFailsAtTheCommitIsLeftOutOfTheNextAttempt) {
    for (const Below trouble : {Below::fails, Below::away, Below::hangs}) {
        make(trouble, root(0));
        EXPECT_FALSE(commit().ok());
        EXPECT_TRUE(is_avoided(root(0)));
        EXPECT_FALSE(is_avoided(root(1)));
        node.job->experience.reset();
    }
    make(Below::fails, "");
    ASSERT_TRUE(node.sim.persistent().lose(Layout::part_below(root(0), node.flight->key, {0, 1, attempt_id})).ok());
    EXPECT_EQ(commit().code(), Code::unavailable);
    EXPECT_TRUE(is_avoided(root(0))) << "its part is not to be seen";
}

TEST_F(PublisherRootsTest, ATombstoneNamesRootsOfWhichNobodyCanTell) {
    make(Below::hangs, root(1));
    ASSERT_TRUE(give_up().ok());
    EXPECT_EQ(standing()->roots, node.job->roots);
}

TEST_F(PublisherRootsTest, ATombstoneNamesNoRootThatIsNotMounted) {
    make(Below::away, root(2));
    ASSERT_TRUE(give_up().ok());
    EXPECT_EQ(standing()->roots, (std::vector<std::string>{root(0), root(1)}));
}

TEST_F(PublisherRootsTest, ATombstoneNamesARootThatGotFilesAndWentAway) {
    side().made_below = {root(2)};
    make(Below::away, root(2));
    ASSERT_TRUE(give_up().ok());
    EXPECT_EQ(standing()->roots, node.job->roots);
}

// Each is looked at, and cleaned up, while others hang.
TEST_F(PublisherRootsTest, RootsThatHangTakeTheTimeOfOne) {
    make(Below::hangs, "/persistent/.");
    const Nanos begun = node.sim.now();
    ASSERT_TRUE(give_up().ok());
    EXPECT_LT(node.sim.now() - begun, 2 * io_wait + second) << "a look, and the removal of what attempts left";
}

// Before anything was published only this coordinator knew what was reported; what was not is its leaders'.
TEST_F(PublisherTest, AFailedAttemptsReportedPartsGo) {
    const auto remove = [&] {
        const auto task = [](Publisher* publisher, FlightPtr flight, const Contest* contest) -> Task<Status> {
            co_await publisher->remove_attempt(std::move(flight), *contest);
            co_return Status();
        };
        (void)node.result_of(task(&node.subject, node.flight, &contest()));
    };
    std::optional<message::PartsDone> done;
    std::swap(done, contest().leaders.at(1).done);
    remove();
    EXPECT_TRUE(is_there(part_path(attempt_id)));
    std::swap(done, contest().leaders.at(1).done);
    remove();
    EXPECT_FALSE(is_there(part_path(attempt_id)));
}

}  // namespace
}  // namespace cairn::engine
