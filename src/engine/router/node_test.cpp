// What users of a node see of it: waiting for a version, giving it up, letting its images go, and the end in order.
#include "engine/router/node_testing.hpp"

namespace cairn::engine {
namespace {

using testing::RoleOptions;

// Node 1 of three; node 0 coordinates.
struct NodeTest : testing::NodeAlone {
    NodeTest() { begin(1); }
    // Of a task that goes on while the test does.
    template <class T>
    struct Going {
        std::optional<T> answer;
        std::optional<Task<void>> task;
    };
    template <class T>
    std::unique_ptr<Going<T>> start(Task<T> task) {
        const auto keep = [](Task<T> inner, std::optional<T>* out) -> Task<void> {
            T value = co_await inner;
            out->emplace(std::move(value));
        };
        auto going = std::make_unique<Going<T>>();
        going->task.emplace(keep(std::move(task), &going->answer));
        going->task->start();
        return going;
    }
    Nanos in(Nanos span) { return net->world.clock.in(span); }
    void end(Version version, Code code, const std::string& text, bool final) { say(0, version, message::Ended{code, text, final}); }
};

TEST_F(NodeTest, AWaitEndsAtItsLevelOrItsDeadline) {
    const auto sealed = start(node->wait(key(1), Level::sealed, in(10 * second)));
    const auto soon = start(node->wait(key(1), Level::captured, in(second)));
    net->run(2 * second);
    ASSERT_TRUE(soon->answer);
    EXPECT_EQ(soon->answer->code(), Code::deadline);
    EXPECT_NE(soon->answer->text().find("nothing of it was sealed on this node"), std::string::npos) << soon->answer->text();
    ASSERT_TRUE(node->add_image(image_of(1, 1)).ok());
    const auto committed = start(node->wait(key(1), Level::committed, in(20 * second)));
    net->run(second);
    EXPECT_FALSE(sealed->answer) << "node 2 has not sealed it, for all that is known here";
    say(0, 1, message::Noted{});
    ASSERT_TRUE(sealed->answer);
    EXPECT_TRUE(sealed->answer->ok());
    EXPECT_FALSE(committed->answer);
    end(1, Code::ok, "", true);
    ASSERT_TRUE(committed->answer);
    EXPECT_TRUE(committed->answer->ok());
}

TEST_F(NodeTest, AFailureThatWasToldIsNoNewsToWhoHeardIt) {
    ASSERT_TRUE(node->add_image(image_of(1, 1)).ok());
    const auto first = start(node->wait(key(1), Level::committed, never));
    end(1, Code::out_of_space, "the disk is full", false);
    ASSERT_TRUE(first->answer);
    EXPECT_EQ(first->answer->code(), Code::out_of_space);
    const std::uint64_t told = node->state(key(1)).failures;
    const auto again = start(node->wait(key(1), Level::committed, never, told));
    net->run(second);
    EXPECT_FALSE(again->answer) << "it is tried again";
    end(1, Code::superseded, "the job went back", true);
    ASSERT_TRUE(again->answer);
    EXPECT_EQ(again->answer->code(), Code::superseded);
}

TEST_F(NodeTest, CancelAsksUntilTheCoordinatorHasAnswered) {
    ASSERT_TRUE(node->add_image(image_of(1, 1)).ok());
    const auto cancelled = start(node->cancel(key(1), in(30 * second)));
    net->run(5 * second);
    const std::vector<message::Cancel> asked = net->heard<message::Cancel>(0);
    EXPECT_GE(asked.size(), 3u) << "it may be lost";
    EXPECT_TRUE(asked.empty() || asked[0].text.empty());
    EXPECT_FALSE(cancelled->answer);
    end(1, Code::cancelled, "cancelled", true);
    ASSERT_TRUE(cancelled->answer);
    EXPECT_TRUE(cancelled->answer->ok());
    const auto late = start(node->cancel(key(2), in(30 * second)));
    end(2, Code::ok, "", true);
    ASSERT_TRUE(late->answer);
    EXPECT_EQ(late->answer->code(), Code::already_exists) << "it was committed first";
    const auto silent = start(node->cancel(key(3), in(5 * second)));
    net->run(10 * second);
    ASSERT_TRUE(silent->answer);
    EXPECT_EQ(silent->answer->code(), Code::deadline);
    VersionKey foreign = key(1);
    foreign.incarnation.low ^= 1;
    EXPECT_EQ(net->result_of(node->cancel(foreign, in(second))).code(), Code::not_found);
}

// Sizes are known from the beginning on; what is sealed is whole.
TEST_F(NodeTest, AnImageThatIsNotFilledIsNoSealedOne) {
    LocalImage image = image_of(1, 1);
    ASSERT_GT(image.data.length, 0u);
    --image.data.length;
    const Status refused = node->add_image(image);
    EXPECT_EQ(refused.code(), Code::invalid_argument);
    EXPECT_NE(refused.text().find("seal it when all are"), std::string::npos) << refused.text();
    EXPECT_EQ(node->state(key(1)).level, Level::none);
    ++image.data.length;
    EXPECT_TRUE(node->add_image(image).ok());
}

TEST_F(NodeTest, ScratchHasAnImageBackOnceItsVersionHasFailedOrEnded) {
    ASSERT_TRUE(node->add_image(image_of(1, 1)).ok());
    EXPECT_EQ(node->drop_image(key(1), 1).code(), Code::already_exists);
    end(1, Code::unavailable, "node 2 is gone", false);
    EXPECT_TRUE(node->drop_image(key(1), 1).ok()) << "it may be given up for room";
    EXPECT_EQ(node->image(key(1), 1), nullptr);
    EXPECT_TRUE(node->state(key(1)).final);
    EXPECT_EQ(node->state(key(1)).failure.code(), Code::superseded);
    EXPECT_TRUE(node->drop_image(key(1), 1).ok()) << "nothing is there";
    EXPECT_TRUE(node->drop_image(key(9), 1).ok());
}

TEST_F(NodeTest, AnImageThatIsBeingReadStaysInScratch) {
    LocalImage image = image_of(1, 1);
    image.data = sim::describe(1, image.data.length);
    ASSERT_TRUE(node->add_image(std::move(image)).ok());
    net->sim.faults().hang_scratch = 1;
    net->sim.faults().hang_never = 1;
    say(2, 1, message::Want{7, {1, 0, role_block}});
    end(1, Code::unavailable, "node 2 is gone", false);
    EXPECT_EQ(node->drop_image(key(1), 1).code(), Code::already_exists);
    EXPECT_NE(node->image(key(1), 1), nullptr);
}

TEST_F(NodeTest, WhatIsUndecidedCanBeGivenUp) {
    ASSERT_TRUE(node->add_image(image_of(1, 1)).ok());
    ASSERT_TRUE(node->add_image(image_of(1, 2)).ok());
    end(2, Code::ok, "", true);
    const std::vector<Undecided> undecided = node->undecided();
    ASSERT_EQ(undecided.size(), 1u);
    EXPECT_EQ(undecided[0].key, key(1));
    EXPECT_EQ(undecided[0].epoch, net->job->roster->epoch);
    EXPECT_EQ(undecided[0].ranks, net->job->roster->ranks);
    node->give_up(key(1), Status(Code::superseded, "a newer job has committed"));
    node->give_up(key(2), Status(Code::superseded, "a newer job has committed"));
    EXPECT_TRUE(node->undecided().empty());
    EXPECT_EQ(node->state(key(1)).failure.text(), "a newer job has committed");
    EXPECT_EQ(node->state(key(2)).level, Level::committed) << "it had ended";
}

TEST_F(NodeTest, TheEndInOrderWaitsForWhatMayCommit) {
    ASSERT_TRUE(node->add_image(image_of(1, 1)).ok());
    ASSERT_TRUE(node->add_image(image_of(1, 2)).ok());
    const auto stopped = start(node->stop(in(5 * second)));
    EXPECT_EQ(node->add_image(image_of(1, 3)).code(), Code::unavailable);
    end(1, Code::ok, "", true);
    net->run(second);
    EXPECT_FALSE(stopped->answer) << "of 2 nothing is known yet";
    net->run(10 * second);
    ASSERT_TRUE(stopped->answer);
    EXPECT_EQ(*stopped->answer, std::vector<VersionKey>{key(2)});
}

TEST_F(NodeTest, TheEndInOrderIsAtOnceWhereNothingIsOpen) {
    ASSERT_TRUE(node->add_image(image_of(1, 1)).ok());
    end(1, Code::ok, "", true);
    EXPECT_TRUE(node->idle());
    const auto stopped = start(node->stop(in(100 * second)));
    ASSERT_TRUE(stopped->answer);
    EXPECT_TRUE(stopped->answer->empty());
}

}  // namespace
}  // namespace cairn::engine
