// The gatherer alone: a version is complete when every node with ranks has said that it sealed it, is called off by name when one does not, and is given up
// only when nobody can have what is missing.
#include "engine/coordinator/gatherer.hpp"

#include "engine/role_testing.hpp"
#include "format/roster.hpp"

namespace cairn::engine {
namespace {

using testing::Alone;
using testing::role_block;
using testing::RoleOptions;

// Node 0 coordinates.
struct GathererTest : ::testing::Test {
    void begin(const RoleOptions& options = {}) {
        node = std::make_unique<Alone<Gatherer>>(options);
        node->flight->coordinator = std::make_shared<CoordinatorSide>(node->flight->since);
    }
    CoordinatorSide& side() { return *node->flight->coordinator; }
    // As the coordinator notes it.
    void sealed(NodeIndex from) {
        node->note_heard(from);
        side().sealed[from] = {{testing::role_image(from, role_block)}, role_block};
        side().once_sealed.insert(from);
        side().lacking.erase(from);
        side().sealed_heard = node->world.clock.now();
        node->flight->news.notify_all();
    }
    void lacks(NodeIndex from) {
        node->note_heard(from);
        node->subject.on_noted(*node->flight, from);
    }
    static Task<void> keep(Task<bool> task, std::optional<bool>* out) {
        const bool value = co_await task;
        *out = value;
    }
    void start() { node->gate.spawn(keep(node->subject.gather(node->flight), &gathered)); }
    Nanos peer_wait() const { return node->common.settings.peer_wait; }

    std::unique_ptr<Alone<Gatherer>> node;
    std::optional<bool> gathered;
};

// People look at a node that is in the middle of it otherwise than at one that never came so far.
TEST_F(GathererTest, WhoHasBegunIsToldFromWhoHasNot) {
    begin();
    node->job->experience = std::make_shared<Experience>(node->world, *node->job);
    node->job->experience->ahead[1].begun[2] = {{testing::role_image(2, role_block)}, role_block};
    sealed(0);
    start();
    const message::Ended told = node->next<message::Ended>(1);
    EXPECT_EQ(told.code, Code::deadline);
    EXPECT_NE(told.text.find("node 1 (n1, rank 1), node 2 (n2, rank 2) (all of them have begun)"), std::string::npos) << told.text;
}

TEST_F(GathererTest, WaitsForEveryNodeWithRanks) {
    RoleOptions options;
    options.ranks = {{0}, {1}, {2}, {}};
    begin(options);
    sealed(1);
    sealed(0);
    start();
    EXPECT_EQ(node->next<message::Noted>(2).missing, std::vector<NodeIndex>{2}) << "it may not know where the coordinator is";
    EXPECT_TRUE(node->heard<message::Noted>(1).empty());
    sealed(1);  // said again
    node->run(60 * second);
    EXPECT_FALSE(gathered.has_value());
    EXPECT_GE(node->heard<message::Noted>(2).size(), 5u) << "and it is told again";
    sealed(2);
    ASSERT_TRUE(node->run_until([&] { return gathered.has_value(); }, second));
    EXPECT_TRUE(*gathered) << "the I/O node does not answer, and is not waited for";
    node->run(millisecond);
    for (const NodeIndex each : {0u, 1u, 2u}) {
        const std::vector<message::Noted> noted = node->heard<message::Noted>(each);
        ASSERT_FALSE(noted.empty());
        EXPECT_TRUE(noted.back().missing.empty()) << "everybody's waiters hear that all is sealed";
    }
}

// An I/O node that answered leads; one that is silent costs one heartbeat, once.
TEST_F(GathererTest, ASilentIoNodeIsWaitedForOnce) {
    RoleOptions options;
    options.ranks = {{0}, {}};
    begin(options);
    sealed(0);
    node->run(second);
    const Nanos begun = node->sim.now();
    start();
    node->next<message::Noted>(1);
    ASSERT_TRUE(node->run_until([&] { return gathered.has_value(); }, 10 * second));
    EXPECT_GE(node->sim.now() - begun, node->common.settings.heartbeat);
    const Nanos again = node->sim.now();
    gathered.reset();
    start();
    EXPECT_TRUE(gathered.has_value()) << "known to be absent";
    lacks(1);  // it answers after all
    gathered.reset();
    node->job->heard.clear();
    start();
    EXPECT_FALSE(gathered.has_value()) << "and is waited for again";
    EXPECT_EQ(node->sim.now(), again);
}

TEST_F(GathererTest, CancelComesBeforeAnything) {
    begin();
    start();
    sealed(0);
    sealed(1);
    side().cancel = true;
    node->flight->news.notify_all();
    node->run(millisecond);
    ASSERT_TRUE(gathered.has_value());
    EXPECT_FALSE(*gathered);
    gathered.reset();
    sealed(2);  // all are there, and it is cancelled still
    start();
    node->run(second);
    ASSERT_TRUE(gathered.has_value());
    EXPECT_FALSE(*gathered);
}

TEST_F(GathererTest, ARankThatNeverSealsIsNamedToEverybodyAndAwaitedAllTheSame) {
    RoleOptions options;
    options.settings.version_wait = 30 * second;
    begin(options);
    start();
    sealed(0);
    sealed(1);
    node->run(29 * second);
    EXPECT_TRUE(node->heard<message::Ended>(1).empty());
    sealed(1);
    const message::Ended ended = node->next<message::Ended>(1);
    EXPECT_EQ(ended.code, Code::deadline);
    EXPECT_FALSE(ended.final);
    EXPECT_NE(ended.text.find("node 2 (n2, rank 2)"), std::string::npos) << ended.text;
    EXPECT_EQ(ended.text.find("node 1"), std::string::npos) << ended.text;
    EXPECT_EQ(side().ended, ended) << "whoever asks hears it again";
    sealed(1);
    sealed(2);
    node->run(second);
    EXPECT_EQ(gathered, true);
    EXPECT_FALSE(side().ended.has_value()) << "it goes on";
}

// A newer version is committed, and the node that is missing says for long enough that it lacks this one.
TEST_F(GathererTest, AVersionThatRanksWentPastIsGivenUp) {
    begin();
    start();
    sealed(0);
    sealed(1);
    lacks(2);
    node->run(3 * peer_wait());
    lacks(2);
    EXPECT_FALSE(node->subject.why_never(*node->flight).has_value()) << "nothing newer is committed: it may be about to";
    node->job->committed = 2;
    node->job->committed_at = node->world.clock.now();
    EXPECT_FALSE(node->subject.why_never(*node->flight).has_value()) << "what it said was before the commit";
    node->run(peer_wait() / 2);
    lacks(2);
    EXPECT_FALSE(node->subject.why_never(*node->flight).has_value()) << "a daemon that was started again may find the image yet";
    node->run(peer_wait());
    lacks(2);
    const std::optional<std::string> why = node->subject.why_never(*node->flight);
    ASSERT_TRUE(why.has_value());
    EXPECT_NE(why->find("node 2 (n2, rank 2)"), std::string::npos) << *why;
    EXPECT_NE(why->find("version 2"), std::string::npos) << *why;
    node->run(peer_wait());
    EXPECT_EQ(gathered, false);
}

// It is away, or it had sealed it and is lost: it may hold the image.
TEST_F(GathererTest, NobodyWentPastWhatHeMayHold) {
    for (const bool had_sealed : {false, true}) {
        begin();
        node->job->committed = 2;
        node->job->committed_at = node->world.clock.now();
        sealed(0);
        sealed(1);
        if (had_sealed) {
            sealed(2);
            side().lose(2);
        }
        for (int i = 0; i < 20; ++i) {
            node->run(peer_wait() / 2);
            if (had_sealed) lacks(2);
        }
        EXPECT_FALSE(node->subject.why_never(*node->flight).has_value());
    }
}

TEST_F(GathererTest, NorWhatThisNodesScratchMayHold) {
    begin();
    bool unseen = true;
    node->common.has_unseen_images = [&](Id128) { return unseen; };
    node->job->committed = 2;
    sealed(1);
    sealed(2);
    node->run(3 * peer_wait());
    EXPECT_FALSE(node->subject.why_never(*node->flight).has_value());
    unseen = false;
    EXPECT_TRUE(node->subject.why_never(*node->flight).has_value());
}

TEST_F(GathererTest, WhatNobodyHoldsAnyMoreIsGivenUp) {
    RoleOptions options;
    options.settings.version_wait = 30 * second;
    begin(options);
    sealed(1);
    node->run(29 * second);
    EXPECT_FALSE(node->subject.why_never(*node->flight).has_value());
    sealed(1);
    node->run(29 * second);
    EXPECT_FALSE(node->subject.why_never(*node->flight).has_value());
    node->run(2 * second);
    EXPECT_TRUE(node->subject.why_never(*node->flight).has_value());
}

// After an attempt that lost a node: peer_wait for it to come back, and it is told where the coordinator is.
TEST_F(GathererTest, TheLostAreWaitedForAWhile) {
    begin();
    for (const NodeIndex each : {0u, 1u, 2u}) sealed(each);
    EXPECT_TRUE(node->result_of(node->subject.wait_for_the_lost(node->flight)));
    side().lose(2);
    const Nanos begun = node->sim.now();
    EXPECT_FALSE(node->result_of(node->subject.wait_for_the_lost(node->flight)));
    EXPECT_GE(node->sim.now() - begun, peer_wait());
    EXPECT_FALSE(node->heard<message::Noted>(2).empty());
    node->gate.spawn(keep(node->subject.wait_for_the_lost(node->flight), &gathered));
    node->run(peer_wait() / 2);
    sealed(2);
    node->run(millisecond);
    EXPECT_EQ(gathered, true);
}

// One that stood still has a successor, which has told where it is.
TEST_F(GathererTest, WhoHasASuccessorDoesNotServeAnyMore) {
    begin();
    EXPECT_TRUE(node->result_of(node->subject.check_still_serves(node->flight)).ok()) << "nothing on record";
    const std::string path = node->layout.job_node(node->flight->key.incarnation, 0);
    const auto record = [&](NodeIndex of, std::string address) {
        const Status made = node->result_of(make_directories(node->world.storage, node->layout.persistent, node->layout.job(node->flight->key.incarnation), node->world.clock.in(second)));
        ASSERT_TRUE(made.ok());
        (void)node->result_of(node->world.storage.remove(path, node->world.clock.in(second)));
        const Status wrote = node->result_of(write_file(node->world.storage, path, encode_node_record({node->flight->key.incarnation, of, std::move(address)}), 0600, node->world.clock.in(second)));
        ASSERT_TRUE(wrote.ok()) << wrote.to_string();
    };
    record(0, node->process(0).address());
    EXPECT_TRUE(node->result_of(node->subject.check_still_serves(node->flight)).ok());
    record(1, "elsewhere");
    EXPECT_TRUE(node->result_of(node->subject.check_still_serves(node->flight)).ok()) << "another node's";
    record(0, "elsewhere");
    EXPECT_EQ(node->result_of(node->subject.check_still_serves(node->flight)).code(), Code::unavailable);
}

}  // namespace
}  // namespace cairn::engine
