#include "daemon/requests.hpp"

#include "daemon/jobs_testing.hpp"

namespace cairn {
namespace {

// A daemon's parts without the daemon: no socket, and it ends when it is told to.
class RequestsTest : public JobsTest, protected Requests::House {
  protected:
    void begin_requests() {
        begin_jobs();
        World world = this->world();
        adoption_.emplace(world, *workers_, *node_, *slots_, *files_, *jobs_, scratch_layout(), "n0", layout(), RetentionRule(), io_wait_);
        ended_.emplace(world, *node_, *slots_, *files_, *jobs_, "n0");
        epochs_.emplace(world, layout(), io_wait_);
        dead_.emplace(world, layout(), *node_, *slots_, io_wait_);
        Requests::House& house = *this;
        requests_.emplace(Requests::Parts{world, *node_, *slots_, *jobs_, *adoption_, *ended_, *epochs_, *dead_}, house,
                          Requests::Facts{"n0", "threads", false, layout(), io_wait_});
    }
    void TearDown() override {
        requests_.reset();
        dead_.reset();
        epochs_.reset();
        ended_.reset();
        adoption_.reset();
        JobsTest::TearDown();
    }
    // What the daemon as a whole says.
    Task<Status> adopted() override { co_return adopted_; }
    bool is_stopping() const override { return stopping_; }
    bool has_stopped() const override { return false; }
    void job_opened() override { ++opened_; }
    std::uint64_t process_of(ConnectionId) const override { return 0; }
    void client_left(Slots::Left left) override { left_.push_back(std::move(left)); }
    Task<std::vector<VersionKey>> finish(Nanos) override {
        stopping_ = true;
        co_return std::vector<VersionKey>{{"heat", 9, {1, 2}}};
    }

    template <class A>
    A ask(ConnectionId from, control::Request request) {
        const control::Answer answer = run(requests_->answer(from, std::move(request)));
        if (const auto* wanted = std::get_if<A>(&answer)) return *wanted;
        const auto* failed = std::get_if<control::Failed>(&answer);
        ADD_FAILURE() << "answer " << answer.index() << (failed ? ": " + failed->text : "");
        return {};
    }
    Code refusal(ConnectionId from, control::Request request) { return ask<control::Failed>(from, std::move(request)).code; }
    void come(ConnectionId client, std::uint64_t process = 100) {
        control::Hello hello;
        hello.pid = process;
        hello.is_application = true;
        const auto welcome = ask<control::Welcome>(client, hello);
        EXPECT_EQ(welcome.node, "n0");
        EXPECT_EQ(welcome.format, format_version) << "of a daemon that does not say it, the ranks think that it is old";
    }
    // Its only rank has joined.
    Roster open_job(ConnectionId client, std::uint64_t epoch = 2) {
        const Roster roster = stranger(epoch);
        come(client);
        ask<control::Done>(client, control::Join{roster, 0, 0});
        roster_ = roster;  // what write() writes is of this job
        return roster;
    }
    control::Slot take_slot(ConnectionId client, Version version) { return ask<control::Slot>(client, wanted(0, mib, version)); }
    VersionKey version(Version number) const { return {roster_.name, number, roster_.incarnation}; }

    Status adopted_;
    bool stopping_ = false;
    int opened_ = 0;
    std::vector<Slots::Left> left_;
    std::optional<Adoption> adoption_;
    std::optional<EndedJobs> ended_;
    std::optional<Epochs> epochs_;
    std::optional<DeadImages> dead_;
    std::optional<Requests> requests_;
};

TEST_F(RequestsTest, OneWhoSpeaksAnotherProtocolIsNoClient) {
    begin_requests();
    control::Hello hello;
    hello.protocol = 99;
    EXPECT_EQ(refusal(1, hello), Code::unsupported);
    EXPECT_FALSE(requests_->clients().has(1));
    come(1, 321);
    EXPECT_EQ(requests_->clients().ranks().processes, std::set<std::uint64_t>{321});  // its word, where the system does not tell
}

TEST_F(RequestsTest, AVersionIsSealedAndCommitted) {
    begin_requests();
    open_job(1);
    EXPECT_EQ(opened_, 1);
    const control::Slot slot = take_slot(1, 1);
    EXPECT_EQ(refusal(1, control::Sealed{version(1), 0, slot.path}), Code::invalid_argument) << "it is not";
    write(slot, 1, 0);
    EXPECT_EQ(refusal(1, control::Sealed{version(2), 0, slot.path}), Code::invalid_argument) << "it is another version";
    EXPECT_EQ(refusal(2, control::Sealed{version(1), 0, slot.path}), Code::not_found) << "it is somebody else's";
    for (int times = 0; times < 2; ++times) ask<control::Done>(1, control::Sealed{version(1), 0, slot.path});
    const auto state = ask<control::State>(1, control::Wait{version(1), Level::committed, 60'000});
    EXPECT_EQ(state.level, Level::committed) << state.text;
    EXPECT_TRUE(state.final);
    EXPECT_EQ(ask<control::ImageList>(1, control::Images{"heat"}).images.size(), 1u);
    ask<control::Done>(1, control::Unpin{});
    EXPECT_EQ(ask<control::NodeStatus>(1, control::GetStatus{}).versions_committed, 1u);
}

// By then its node has forgotten it, or never heard of it: persistent knows.
TEST_F(RequestsTest, WhatTheNodeDoesNotKnowPersistentIsAskedFor) {
    begin_requests();
    checkpoint(1);
    ASSERT_TRUE(node_->forget(roster_.incarnation));
    run(slots_->remove_versions({version(1)}, *removers_, in(io_wait_)));
    come(1);
    EXPECT_EQ(ask<control::State>(1, control::Wait{version(1), Level::committed, 0}).level, Level::committed);
    EXPECT_EQ(ask<control::State>(1, control::Wait{version(7), Level::committed, 0}).level, Level::none);
}

TEST_F(RequestsTest, ASupersededJobGetsNoSlot) {
    begin_requests();
    open_job(1, 2);
    take_slot(1, 1);
    stranger(3);  // opens the series after it
    const auto is_told = [&] {
        const control::Answer answer = run(requests_->answer(1, wanted(0, mib, 2)));
        if (const auto* failed = std::get_if<control::Failed>(&answer)) return failed->code == Code::superseded;
        ask<control::Done>(1, control::Release{std::get<control::Slot>(answer).path});
        return false;
    };
    EXPECT_TRUE(eventually(is_told));
}

TEST_F(RequestsTest, AClientThatGoesLeavesItsSlotToBeLookedInto) {
    begin_requests();
    const Roster roster = open_job(1);
    const control::Slot slot = take_slot(1, 1);
    EXPECT_EQ(requests_->clients().jobs(), std::set<Id128>{roster.incarnation});
    requests_->disconnected(1);
    ASSERT_EQ(left_.size(), 1u);
    EXPECT_EQ(left_[0].path, slot.path);
    EXPECT_EQ(requests_->clients().sessions(), 0u);
    EXPECT_EQ(refusal(1, wanted(0, mib, 2)), Code::unavailable) << "it has gone";
}

TEST_F(RequestsTest, ADaemonThatStopsTakesNothingNew) {
    begin_requests();
    const Roster roster = open_job(1);
    const control::Slot slot = take_slot(1, 1);
    EXPECT_EQ(ask<control::Stopped>(1, control::Stop{0}).unfinished.size(), 1u);
    control::Hello hello;
    hello.is_application = true;
    EXPECT_EQ(refusal(2, hello), Code::unavailable);
    hello.is_application = false;
    ask<control::Welcome>(3, hello);  // a command may ask how far it is
    EXPECT_EQ(refusal(1, control::Join{roster, 0, 0}), Code::unavailable);
    EXPECT_EQ(refusal(1, wanted(0, mib, 2)), Code::unavailable);
    write(slot, 1, 0);
    ask<control::Done>(1, control::Sealed{version(1), 0, slot.path});  // for the next daemon
}

TEST_F(RequestsTest, NothingIsToldOfScratchBeforeItWasLookedAt) {
    begin_requests();
    come(1);
    adopted_ = deadline_passed("this daemon is still looking at what scratch holds");
    EXPECT_EQ(refusal(1, control::Images{"heat"}), Code::deadline);
    EXPECT_EQ(refusal(1, control::Wait{version(1), Level::committed, 0}), Code::deadline);
    EXPECT_EQ(refusal(1, wanted(0, mib)), Code::deadline);
    EXPECT_EQ(refusal(1, control::Join{stranger(2), 0, 0}), Code::deadline);
    ask<control::NodeStatus>(1, control::GetStatus{});
}

}  // namespace
}  // namespace cairn
