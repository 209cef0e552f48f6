// The coordinator alone: the test plays its nodes and leaders. What it answers to whom and when, and which words of an attempt it hears at all.
#include "engine/coordinator/coordinator.hpp"

#include "engine/role_testing.hpp"
#include "format/manifest.hpp"
#include "format/names.hpp"
#include "model/coverage.hpp"

namespace cairn::engine {
namespace {

using testing::Alone;
using testing::role_block;
using testing::RoleOptions;

// Node 0 coordinates, node 1 has most bytes, and is asked to lead.
struct CoordinatorTest : ::testing::Test {
    static RoleOptions options() {
        RoleOptions options;
        options.ranks = {{0}, {1}};
        options.settings.leaders = 1;
        return options;
    }
    explicit CoordinatorTest(const RoleOptions& options = CoordinatorTest::options()) : node(options) {}
    static std::uint64_t bytes_of(NodeIndex from) { return (from + 1) * 4 * role_block; }
    void hear(NodeIndex from, message::ForCoordinator body) {
        node.note_heard(from);
        node.subject.hear(node.flight, from, std::move(body));
    }
    void sealed(NodeIndex from) { hear(from, message::Sealed{{testing::role_image(from, bytes_of(from))}, role_block}); }
    message::Lead begin() {
        sealed(0);
        sealed(1);
        return node.next<message::Lead>(1);
    }
    void progress(const message::Lead& lead, std::uint64_t sequence, std::uint64_t unstarted) {
        hear(1, message::Progress{lead.attempt_id, sequence, 0, {{0, unstarted, 0, 1000}}, 0});
    }
    // As its leader, whose part is durable.
    message::PartsDone done_of(const message::Lead& lead) {
        const std::string name = part_file_name(0, 1, lead.attempt_id);
        const Status wrote = node.result_of(write_file(node.world.storage, node.layout.version(node.flight->key) + "/" + name, Bytes(20 * role_block), 0644, node.world.clock.in(second)));
        EXPECT_TRUE(wrote.ok()) << wrote.to_string();
        message::PartsDone done;
        done.attempt_id = lead.attempt_id;
        done.parts = {{name, 20 * role_block, 12 * role_block, 1, {0, 1}}};
        for (const NodeIndex from : {0u, 1u}) done.coverage += coverage(from, 0, bytes_of(from));
        return done;
    }
    static message::PartsDone failed(const message::Lead& lead) {
        message::PartsDone done;
        done.attempt_id = lead.attempt_id;
        done.code = Code::io_error;
        done.text = "a disk";
        return done;
    }

    Alone<Coordinator> node;
};

TEST_F(CoordinatorTest, FromSealedToTheEnd) {
    const message::Lead lead = begin();
    EXPECT_EQ(lead.attempt, 1u);
    EXPECT_EQ(lead.attempt_id.high, node.flight->key.incarnation.high);
    EXPECT_TRUE(node.heard<message::Lead>(0).empty());
    progress(lead, 1, 0);
    EXPECT_EQ(node.next<message::Complete>(1).attempt_id, lead.attempt_id);
    const message::PartsDone done = done_of(lead);
    EXPECT_FALSE(node.read(node.layout.manifest(node.flight->key)).has_value());
    hear(1, done);
    EXPECT_EQ(node.next<message::Acknowledged>(1).attempt_id, lead.attempt_id);
    const message::Ended ended = node.next<message::Ended>(1);
    EXPECT_EQ(ended, (message::Ended{Code::ok, "", true}));
    EXPECT_TRUE(node.durable(node.layout.manifest(node.flight->key)).has_value()) << "when anybody hears of it";
    EXPECT_EQ(node.next<message::Ended>(0), ended);
    EXPECT_EQ(node.common.counters.attempts_failed, 0u);
}

// Another file system may have lain over persistent when the directory was made.
TEST_F(CoordinatorTest, TheVersionsNameIsSyncedAgainOnceTheRecordWasSeen) {
    const std::vector<std::string>& operations = node.watch_operations();
    begin();
    node.run(second);
    const std::string series = node.layout.version(node.flight->key).substr(0, node.layout.version(node.flight->key).rfind('/'));
    const auto record = std::find(operations.begin(), operations.end(), "read " + node.layout.lineage_open("series", node.job->roster->epoch));
    ASSERT_NE(record, operations.end());
    EXPECT_NE(std::find(record, operations.end(), "fsync_directory " + series), operations.end());
}

// It may be lost with the next power failure, and all that was written below it: that attempt is no commit, and the next one is.
TEST_F(CoordinatorTest, AnAttemptWhoseDirectoryIsNotDurableFails) {
    const std::string version = node.layout.version(node.flight->key), series = version.substr(0, version.rfind('/'));
    const std::string record = "read " + node.layout.lineage_open("series", node.job->roster->epoch);
    bool is_seen = false, has_failed = false;
    node.sim.set_observer([&](sim::Process&, const char* what, const std::string& path) {
        is_seen = (is_seen || what + (" " + path) == record) && what + (" " + path) != "mkdir " + version;  // since it was made
        const bool fails = is_seen && !has_failed && what == std::string("fsync_directory") && path == series;
        has_failed |= fails;
        node.sim.faults().metadata_error = node.sim.faults().fsync_error = fails ? 1 : 0;
    });
    node.sim.faults().error_done = 0;
    const message::Lead lead = begin();
    ASSERT_TRUE(has_failed);
    hear(1, done_of(lead));
    const message::Lead second_try = node.next<message::Lead>(1);
    EXPECT_NE(second_try.attempt_id, lead.attempt_id);
    EXPECT_EQ(node.common.counters.attempts_failed, 1u);
    EXPECT_FALSE(node.read(node.layout.manifest(node.flight->key)).has_value());
    EXPECT_TRUE(node.heard<message::Ended>(1).empty());
    hear(1, done_of(second_try));
    EXPECT_EQ(node.next<message::Ended>(1), (message::Ended{Code::ok, "", true}));
    EXPECT_TRUE(node.durable(node.layout.manifest(node.flight->key)).has_value());
}

TEST_F(CoordinatorTest, SealedIsAnsweredHoweverOftenItComes) {
    sealed(1);
    EXPECT_EQ(node.next<message::Noted>(1).missing, std::vector<NodeIndex>{0});
    sealed(1);
    EXPECT_EQ(node.next<message::Noted>(1).missing, std::vector<NodeIndex>{0});
    EXPECT_TRUE(node.subject.is_coordinating(*node.flight));
    EXPECT_FALSE(node.subject.has_all(*node.flight));
    const message::Lead lead = begin();
    EXPECT_TRUE(node.subject.has_all(*node.flight));
    node.heard<message::Noted>(1);
    sealed(1);
    EXPECT_TRUE(node.next<message::Noted>(1).missing.empty()) << "all are there";
    node.run(second);
    for (const message::Lead& again : node.heard<message::Lead>(1)) EXPECT_EQ(again.attempt_id, lead.attempt_id) << "no second attempt";
}

TEST_F(CoordinatorTest, AfterTheEndTheEndIsRepeated) {
    const message::Lead lead = begin();
    const message::PartsDone done = done_of(lead);
    hear(1, done);
    const message::Ended ended = node.next<message::Ended>(1);
    node.run(60 * second);
    node.heard<message::Lead>(1);
    sealed(1);
    EXPECT_EQ(node.next<message::Ended>(1), ended);
    EXPECT_TRUE(node.flight->coordinator->sealed.empty()) << "the region tables of all ranks are not kept again";
    hear(1, message::Cancel{});
    EXPECT_EQ(node.next<message::Ended>(1), ended) << "committed before it could be cancelled";
    progress(lead, 9, 0);
    EXPECT_EQ(node.next<message::Ended>(1), ended) << "a leader that missed it";
    hear(1, done);
    EXPECT_EQ(node.next<message::Acknowledged>(1).attempt_id, lead.attempt_id);
    node.run(60 * second);
    EXPECT_TRUE(node.heard<message::Lead>(1).empty());
}

TEST_F(CoordinatorTest, LeadIsRepeatedUntilTheLeaderSpeaks) {
    const message::Lead lead = begin();
    EXPECT_EQ(node.next<message::Lead>(1), lead);
    EXPECT_EQ(node.next<message::Lead>(1), lead);
    progress(lead, 1, role_block);
    node.run(millisecond);
    node.heard<message::Lead>(1);
    node.run(5 * second);
    EXPECT_TRUE(node.heard<message::Lead>(1).empty());
}

TEST_F(CoordinatorTest, WordsOfAnAttemptThatItDoesNotRunEndIt) {
    const message::Lead lead = begin();
    message::Lead older = lead;
    older.attempt_id.low ^= 1;
    progress(older, 1, 0);
    EXPECT_EQ(node.next<message::Leave>(1).attempt_id, older.attempt_id);
    hear(1, failed(older));
    EXPECT_EQ(node.next<message::Acknowledged>(1).attempt_id, older.attempt_id) << "it need not say so again";
    hear(0, failed(lead));  // from who does not lead
    node.run(second);
    EXPECT_EQ(node.common.counters.attempts_failed, 0u);
}

// What a leader said later, but arrived before, stands.
TEST_F(CoordinatorTest, ProgressThatComesLateIsDropped) {
    const message::Lead lead = begin();
    progress(lead, 5, role_block);
    progress(lead, 4, 0);
    node.run(2 * second);
    EXPECT_TRUE(node.heard<message::Complete>(1).empty()) << "there is something to begin";
    progress(lead, 6, 0);
    EXPECT_EQ(node.next<message::Complete>(1).attempt_id, lead.attempt_id);
}

TEST_F(CoordinatorTest, AFailedAttemptIsLeftAndTheNextHasOtherNames) {
    const message::Lead lead = begin();
    hear(1, failed(lead));
    EXPECT_EQ(node.next<message::Leave>(1).attempt_id, lead.attempt_id);
    std::vector<message::Lead> leads;
    ASSERT_TRUE(node.run_until([&] {
        for (const NodeIndex each : {0u, 1u})
            for (const message::Lead& again : node.heard<message::Lead>(each))
                if (again.attempt_id != lead.attempt_id) leads.push_back(again);
        return !leads.empty();
    }));
    EXPECT_EQ(leads.front().attempt, 2u);
    EXPECT_TRUE(node.heard<message::Ended>(1).empty()) << "nobody need hear of the first failure";
    EXPECT_EQ(node.common.counters.attempts_failed, 1u);
}

TEST_F(CoordinatorTest, FailuresInARowAreToldAndItIsTriedAgain) {
    std::size_t attempts = 0;
    std::optional<message::Ended> told;
    Id128 last;
    sealed(0);
    sealed(1);
    ASSERT_TRUE(node.run_until([&] {
        for (const NodeIndex each : {0u, 1u})
            for (const message::Lead& lead : node.heard<message::Lead>(each)) {
                if (std::exchange(last, lead.attempt_id) == lead.attempt_id) continue;
                ++attempts;
                hear(each, failed(lead));
            }
        for (const message::Ended& ended : node.heard<message::Ended>(1)) told = ended;
        return attempts > node.common.settings.attempts_max;
    }));
    EXPECT_EQ(attempts, node.common.settings.attempts_max + 1) << "after a pause";
    ASSERT_TRUE(told.has_value());
    EXPECT_EQ(told->code, Code::io_error);
    EXPECT_FALSE(told->final);
    EXPECT_NE(told->text.find("a disk"), std::string::npos) << told->text;
}

// Its images are not to be had: it has to seal again.
TEST_F(CoordinatorTest, ASilentLeaderEndsTheAttemptAndIsWaitedFor) {
    const message::Lead lead = begin();
    progress(lead, 1, role_block);
    ASSERT_TRUE(node.run_until([&] { return node.common.counters.attempts_failed == 1; }, 3 * node.common.settings.peer_wait));
    EXPECT_FALSE(node.subject.has_all(*node.flight));
    node.heard<message::Lead>(1);
    node.run(second);
    EXPECT_TRUE(node.heard<message::Lead>(1).empty());
    sealed(1);
    const message::Lead next = node.next<message::Lead>(1);
    EXPECT_NE(next.attempt_id, lead.attempt_id);
}

// What it was asked for is forgotten, and what it wrote under those names may still be on its way.
TEST_F(CoordinatorTest, ADaemonThatWasStartedAgainIsNotAskedUnderTheSameNames) {
    const message::Lead lead = begin();
    progress(lead, 1, role_block);
    node.job->addresses.set(1, "elsewhere");  // as the router notes it
    sealed(1);
    ASSERT_TRUE(node.run_until([&] { return node.common.counters.attempts_failed == 1; }, second));
    node.job->addresses.set(1, node.process(1).address());
    EXPECT_NE(node.next<message::Lead>(1).attempt_id, lead.attempt_id);
}

TEST_F(CoordinatorTest, CancelPublishesATombstoneAndTellsAll) {
    const message::Lead lead = begin();
    hear(1, message::Cancel{});
    const message::Ended ended = node.next<message::Ended>(1);
    EXPECT_EQ(ended.code, Code::cancelled);
    EXPECT_TRUE(ended.final);
    EXPECT_EQ(node.next<message::Ended>(0), ended);
    EXPECT_EQ(node.next<message::Leave>(1).attempt_id, lead.attempt_id);
    const std::optional<Bytes> bytes = node.durable(node.layout.manifest(node.flight->key));
    ASSERT_TRUE(bytes.has_value());
    EXPECT_TRUE(decode_manifest(*bytes)->abandoned);
    hear(1, done_of(lead));  // too late
    node.run(10 * second);
    EXPECT_TRUE(decode_manifest(*node.read(node.layout.manifest(node.flight->key)))->abandoned);
}

// By the engine, because what could be read once only is used up: it says why, and the first word counts.
TEST_F(CoordinatorTest, AVersionThatIsUsedUpIsGivenUpAndSaysWhy) {
    const message::Lead lead = begin();
    hear(1, message::Cancel{"rank 1's image can be read once only", lead.attempt_id});
    hear(1, message::Cancel{});
    const message::Ended ended = node.next<message::Ended>(1);
    EXPECT_EQ(ended.code, Code::superseded);
    EXPECT_TRUE(ended.final);
    EXPECT_NE(ended.text.find("given up: rank 1's image can be read once only"), std::string::npos) << ended.text;
    EXPECT_TRUE(decode_manifest(*node.durable(node.layout.manifest(node.flight->key)))->abandoned);
}

// One that was left may be late: what it says is used up, this one has in hand.
TEST_F(CoordinatorTest, AnotherAttemptsWordOnWhatIsUsedUpIsNone) {
    const message::Lead lead = begin();
    hear(1, message::Cancel{"rank 1's image can be read once only", {7, 99}});
    EXPECT_EQ(node.next<message::Leave>(1).attempt_id, (Id128{7, 99}));
    hear(1, done_of(lead));
    EXPECT_EQ(node.next<message::Ended>(1).code, Code::ok);
}

TEST_F(CoordinatorTest, WhoDoesNotCoordinateHearsNothing) {
    RoleOptions other = options();
    other.self = 1;
    Alone<Coordinator> bystander(other);
    bystander.subject.hear(bystander.flight, 0, message::Sealed{{testing::role_image(0, role_block)}, role_block});
    bystander.subject.hear(bystander.flight, 0, message::Noted{});
    bystander.subject.hear(bystander.flight, 0, message::PartsDone{});
    bystander.subject.hear(bystander.flight, 0, message::Cancel{});
    bystander.run(10 * second);
    EXPECT_FALSE(bystander.subject.is_coordinating(*bystander.flight));
    EXPECT_TRUE(bystander.heard<message::Noted>(0).empty());
    EXPECT_TRUE(bystander.heard<message::Acknowledged>(0).empty());
}

// Of three versions one is whole.
struct CoordinatorBaseTest : CoordinatorTest {
    static RoleOptions options() {
        RoleOptions options = CoordinatorTest::options();
        options.settings.codec = Codec::planes;
        options.settings.full_every = 3;
        return options;
    }
    CoordinatorBaseTest() : CoordinatorTest(options()) {}
    message::Lead begin(Version version) {
        node.flight = std::make_shared<Flight>(node.world, VersionKey{"series", version, node.flight->key.incarnation}, node.job);
        return CoordinatorTest::begin();
    }
};

// Perhaps the base was removed: who waits for it waits for ever.
TEST_F(CoordinatorBaseTest, AfterAFailureAVersionStandsAlone) {
    hear(1, done_of(begin(1)));
    EXPECT_EQ(node.next<message::Ended>(1).base, 1u);
    const message::Lead lead = begin(2);
    EXPECT_EQ(lead.base, 1u);
    hear(1, failed(lead));
    std::optional<message::Lead> again;
    ASSERT_TRUE(node.run_until([&] {
        for (const NodeIndex each : {0u, 1u})
            for (const message::Lead& next : node.heard<message::Lead>(each))
                if (next.attempt_id != lead.attempt_id) again = next;
        return again.has_value();
    }));
    EXPECT_EQ(again->base, 0u);
}

// An earlier attempt's manifest gets its name late, and that version is stored as what changed since another.
TEST_F(CoordinatorBaseTest, WhatAnotherAttemptPublishedIsNoBase) {
    const message::Lead lead = begin(5);
    Manifest other;
    other.key = node.flight->key;
    other.epoch = node.job->roster->epoch;
    other.attempt_id = {7, 9};
    other.ranks = other.nodes = 2;
    other.block_bytes = role_block;
    other.image_bytes = 12 * role_block;
    other.parts = {{part_file_name(0, 1, other.attempt_id), 20 * role_block, 12 * role_block, 1, {0, 1}}};
    other.bases = {{3, other.key.incarnation}};
    const Status wrote = node.result_of(write_file(node.world.storage, node.layout.manifest(other.key), encode_manifest(other), 0644, node.world.clock.in(second)));
    ASSERT_TRUE(wrote.ok()) << wrote.to_string();
    hear(1, done_of(lead));
    EXPECT_EQ(node.next<message::Ended>(1).base, 0u);
    EXPECT_EQ(begin(6).base, 0u) << "or it would depend on one that depends on another";
}

}  // namespace
}  // namespace cairn::engine
