// The ring alone: who receives leaves room for who encodes, and who encodes waits only for others who do.
#include "engine/ring.hpp"

#include "engine/role_testing.hpp"

namespace cairn::engine {
namespace {

struct RingAlone {
    explicit RingAlone(Common& c) : ring(c.world.clock, c.world.storage, 4, testing::role_block) {}
    BufferRing ring;
};

struct RingTest : ::testing::Test {
    testing::Alone<RingAlone> node;
    Nanos soon() { return node.world.clock.in(second); }
    Result<BufferRing::Use> receive(bool leave_half = true) { return node.result_of(node.subject.ring.take_to_receive(leave_half, soon())); }
    Result<BufferRing::Use> encode() { return node.result_of(node.subject.ring.take_to_encode(soon())); }
};

TEST_F(RingTest, ReceiversLeaveHalfWhereDataAreEncoded) {
    std::vector<BufferRing::Use> held;
    for (int i = 0; i < 2; ++i) held.push_back(receive().value());
    EXPECT_EQ(receive().code(), Code::deadline);
    EXPECT_TRUE(encode().ok());
    held.pop_back();
    held.push_back(receive().value());
    for (int i = 0; i < 2; ++i) held.push_back(receive(false).value());
    EXPECT_EQ(receive(false).code(), Code::deadline) << "there are four";
}

// Writes of what was received hang: their user has given up, and the kernel has not.
TEST_F(RingTest, WhatIsInQuarantineIsNeitherReceivedNorEncoded) {
    std::vector<BufferPtr> quarantine;
    for (int i = 0; i < 2; ++i) quarantine.push_back(receive().value().buffer);
    const Nanos begun = node.sim.now();
    std::optional<BufferRing::Use> received = receive().value();
    EXPECT_EQ(node.sim.now(), begun) << "half of the other two is there at once";
    EXPECT_EQ(receive().code(), Code::deadline) << "and the other half is for who encodes";
    EXPECT_TRUE(encode().ok());
    std::optional<Result<BufferRing::Use>> next;
    node.gate.spawn([](Task<Result<BufferRing::Use>> task, std::optional<Result<BufferRing::Use>>* out) -> Task<void> {
        Result<BufferRing::Use> use = co_await task;
        out->emplace(std::move(use));
    }(node.subject.ring.take_to_receive(true, soon()), &next));
    node.run(millisecond);
    EXPECT_FALSE(next.has_value());
    quarantine.clear();
    node.run(millisecond);
    EXPECT_TRUE(next.has_value() && next->ok()) << "it is over at last, and there are four again";
    next.reset();
    received.reset();
    for (int i = 0; i < 4; ++i) quarantine.push_back(receive(false).value().buffer);
    EXPECT_EQ(receive().code(), Code::deadline);
    EXPECT_FALSE(encode().ok());
    quarantine.pop_back();
    EXPECT_TRUE(receive().ok()) << "the last one is for who receives: what finds no other is stored as it is";
}

TEST_F(RingTest, WhoEncodesWaitsOnlyForOthersWhoDo) {
    std::vector<BufferRing::Use> held;
    for (int i = 0; i < 3; ++i) held.push_back(receive(false).value());
    Result<BufferRing::Use> first = encode();
    ASSERT_TRUE(first.ok());
    const Nanos begun = node.sim.now();
    EXPECT_EQ(encode().code(), Code::deadline);
    EXPECT_GE(node.sim.now() - begun, second) << "the first one gives it back soon";
    BufferPtr hangs = first->buffer;  // as the kernel does with a write that hangs
    *first = BufferRing::Use();
    EXPECT_NE(encode().status().text().find("no buffer is free"), std::string::npos) << "nobody gives one back, so that it does not wait";
    hangs.reset();
    EXPECT_TRUE(encode().ok());
}

}  // namespace
}  // namespace cairn::engine
