// The ring alone: who receives leaves room for who encodes, and who encodes waits only for others who do.
#include "engine/leader/ring.hpp"

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
    Result<BufferPtr> receive(bool leave_half = true) { return node.result_of(node.subject.ring.take_to_receive(leave_half, node.world.clock.in(second / 2), soon())); }
    Result<BufferRing::Encoding> encode() { return node.result_of(node.subject.ring.take_to_encode(soon())); }
};

TEST_F(RingTest, ReceiversLeaveHalfWhereDataAreEncoded) {
    std::vector<BufferPtr> held;
    for (int i = 0; i < 2; ++i) held.push_back(receive().value());
    const Nanos begun = node.sim.now();
    held.push_back(receive().value());
    EXPECT_GE(node.sim.now() - begun, second / 2) << "it waits, and not for ever: what is in quarantine comes back never";
    held.pop_back();
    EXPECT_TRUE(encode().ok());
    for (int i = 0; i < 2; ++i) held.push_back(receive(false).value());
    EXPECT_EQ(receive(false).code(), Code::deadline) << "there are four";
}

TEST_F(RingTest, WhoEncodesWaitsOnlyForOthersWhoDo) {
    std::vector<BufferPtr> held;
    for (int i = 0; i < 3; ++i) held.push_back(receive(false).value());
    Result<BufferRing::Encoding> first = encode();
    ASSERT_TRUE(first.ok());
    const Nanos begun = node.sim.now();
    EXPECT_EQ(encode().code(), Code::deadline);
    EXPECT_GE(node.sim.now() - begun, second) << "the first one gives it back soon";
    held.push_back(first->buffer);  // as the kernel does with a write that hangs
    *first = BufferRing::Encoding();
    EXPECT_NE(encode().status().text().find("no buffer is free"), std::string::npos) << "nobody gives one back, so that it does not wait";
    held.pop_back();
    EXPECT_TRUE(encode().ok());
}

}  // namespace
}  // namespace cairn::engine
