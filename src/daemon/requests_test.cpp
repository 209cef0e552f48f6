#include "daemon/requests.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <set>

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
        asked_.emplace(world, *node_, second);
        Requests::House& house = *this;
        requests_.emplace(Requests::Parts{world, *node_, *slots_, *jobs_, *adoption_, *ended_, *epochs_, *dead_, *asked_}, house,
                          Requests::Facts{"n0", "threads", false, layout(), io_wait_});
    }
    void TearDown() override {
        requests_.reset();
        asked_.reset();
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
    void job_opened(Id128) override { ++opened_; }
    void describe(control::NodeStatus&) const override {}
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
    ImageHeader header_of(Version number, Rank rank = 0) const {
        ImageHeader header;
        header.key = version(number);
        header.epoch = roster_.epoch;
        header.rank = header.image.rank = rank;
        header.ranks = roster_.ranks;
        header.block_bytes = 4096;
        header.image.bytes = mib;
        return header;
    }
    std::uint64_t offer(ConnectionId client, Version number) { return ask<control::Offered>(client, control::Offer{header_of(number)}).image; }
    VersionKey version(Version number) const { return {roster_.name, number, roster_.incarnation}; }

    Status adopted_;
    bool stopping_ = false;
    int opened_ = 0;
    std::vector<Slots::Left> left_;
    std::optional<Adoption> adoption_;
    std::optional<EndedJobs> ended_;
    std::optional<Epochs> epochs_;
    std::optional<DeadImages> dead_;
    std::optional<AskedImages> asked_;
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

// As with capture.mode = through: nothing of it is in scratch.
TEST_F(RequestsTest, AnImageIsGivenPieceByPieceAndCommitted) {
    begin_requests();
    open_job(1);
    const std::uint64_t image = offer(1, 1);
    EXPECT_EQ(refusal(2, control::Give{image, 0, 0, 0}), Code::not_found) << "it is somebody else's";
    std::map<std::uint64_t, std::byte*> windows;
    control::Give give{image, 0, 10'000, 0};
    control::Wanted wanted = ask<control::Wanted>(1, give);
    std::set<std::uint64_t> offsets;
    for (; wanted.piece != 0; wanted = ask<control::Wanted>(1, give)) {
        auto& window = windows[wanted.window];
        EXPECT_EQ(window == nullptr, wanted.descriptor >= 0) << "each is given once";
        if (!window) window = static_cast<std::byte*>(::mmap(nullptr, wanted.window_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, wanted.descriptor, 0));
        ASSERT_NE(window, MAP_FAILED);
        EXPECT_NE(::ftruncate(wanted.descriptor, 0), 0) << "nobody takes it from under the daemon";
        std::memset(window, 7, wanted.length);
        offsets.insert(wanted.offset);
        give.piece = wanted.piece;
    }
    EXPECT_EQ(wanted.state.level, Level::committed) << wanted.state.text;
    EXPECT_GT(offsets.size(), 1u);
    EXPECT_EQ(ask<control::ImageList>(1, control::Images{"heat"}).images.size(), 0u);
    EXPECT_TRUE(eventually([&] { return node_->image(version(1), 0) == nullptr; })) << "and the node lets it go";
}

TEST_F(RequestsTest, WithoutItsClientAnImageCanNotBeCommitted) {
    begin_requests();
    open_job(1);
    const std::uint64_t image = offer(1, 1);
    const auto wanted = ask<control::Wanted>(1, control::Give{image, 0, 10'000, 0});
    EXPECT_NE(wanted.piece, 0u);
    requests_->disconnected(1);
    come(2);
    const auto state = ask<control::State>(2, control::Wait{version(1), Level::committed, 60'000});
    EXPECT_TRUE(state.final);
    EXPECT_EQ(state.code, Code::superseded);
    EXPECT_NE(state.text.find("rank 0's image, which its process gives when it is asked"), std::string::npos) << state.text;
    EXPECT_TRUE(eventually([&] { return node_->image(version(1), 0) == nullptr; }));
}

// Of a version whose other rank never comes, so that nobody but the test asks.
TEST_F(RequestsTest, AWindowThatAClientHasNotAnsweredForStaysItsOwn) {
    begin_requests();
    come(1);
    const std::uint64_t image = offer(1, 1);
    const std::shared_ptr<ImageSource> source = node_->image(version(1), 0)->source;
    const BufferPtr window = source->allocate(8192).value();
    std::vector<Status> told;
    Gate gate(world().clock);
    const auto ask_for = [&](Nanos wait) {
        const auto fill = [](std::shared_ptr<ImageSource> of, Slice into, Nanos deadline, std::vector<Status>* out) -> Task<void> {
            Status status = co_await of->fill(4096, std::move(into), deadline);
            out->push_back(std::move(status));
        };
        gate.spawn(fill(source, {window, 0, 5000}, in(wait), &told));
    };
    const auto end = [&] { EXPECT_TRUE(run(gate.wait_active_at_most(0, in(10 * second)))); gate.reap(); };
    ask_for(50 * millisecond);
    end();
    EXPECT_EQ(told.back().code(), Code::deadline);
    EXPECT_EQ(window.use_count(), 1) << "nobody was told of it";
    ask_for(50 * millisecond);
    const auto wanted = ask<control::Wanted>(1, control::Give{image, 0, 0, 0});
    EXPECT_EQ(wanted.offset, 4096u);
    EXPECT_EQ(wanted.length, 5000u);
    end();
    EXPECT_EQ(told.back().code(), Code::deadline);
    EXPECT_GT(window.use_count(), 1) << "it may write yet";
    EXPECT_EQ(ask<control::Wanted>(1, control::Give{image, wanted.piece, 0, 0}).piece, 0u);
    EXPECT_EQ(window.use_count(), 1);
    EXPECT_FALSE(window->has_lost_bytes());
    ask_for(10 * second);
    EXPECT_EQ(ask<control::Wanted>(1, control::Give{image, 0, 0, 0}).window, wanted.window);
    requests_->disconnected(1);
    end();
    EXPECT_EQ(told.back().code(), Code::not_found);
    EXPECT_TRUE(window->has_lost_bytes()) << "nobody will say when it has written";
}

TEST_F(RequestsTest, OneImageIsGivenOverAConnectionAtATime) {
    begin_requests();
    open_job(1);
    EXPECT_EQ(refusal(1, control::Offer{header_of(1, 1)}), Code::invalid_argument) << "that rank is not of this node";
    offer(1, 1);
    offer(1, 2);  // over the same connection: of the first one nothing more comes
    EXPECT_TRUE(eventually([&] { return node_->state(version(1)).final; }));
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
