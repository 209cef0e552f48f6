#include "daemon/left_slots.hpp"

#include "daemon/slots_testing.hpp"

namespace cairn {
namespace {

class LeftSlotsTest : public SlotsTest {
  protected:
    // Rank 0's client goes with a slot in its hands; what becomes of it.
    void lose_client(bool has_sealed, const std::function<void(const Slots::Left&)>& meanwhile = {}) {
        const auto slot = acquire(alice, wanted(0, mib));
        ASSERT_TRUE(slot.ok());
        path_ = slot->path;
        if (has_sealed) write(*slot, 1, 0);
        const std::vector<Slots::Left> left = slots_->disconnected(alice);
        ASSERT_EQ(left.size(), 1u);
        if (meanwhile) meanwhile(left[0]);
        LeftSlots slots(world_->world(), *node_, *slots_, io_wait_);
        Gate gate(world_->loop());
        gate.spawn(slots.look_into(left[0]));
        EXPECT_TRUE(slots.is_looking());
        EXPECT_TRUE(world_->loop().run(gate.close(in(60 * second))));
        EXPECT_FALSE(slots.is_looking());
    }
    VersionKey key() const { return {"heat", 1, roster_.incarnation}; }
    std::string path_;
};

TEST_F(LeftSlotsTest, WhatWasSealedIsTaken) {
    begin();
    lose_client(true);
    EXPECT_TRUE(slots_->holds(key(), 0, path_));
    EXPECT_EQ(node_->state(key()).level, Level::captured);
}

TEST_F(LeftSlotsTest, WhatWasNotGoesAndIsNotHandedOn) {
    begin();
    lose_client(false);
    EXPECT_EQ(slots_->count(), 0u);
    EXPECT_TRUE(eventually([&] { return !fs::exists(path_); }));
    EXPECT_EQ(node_->state(key()).level, Level::none);
}

TEST_F(LeftSlotsTest, WhatIsOfAJobThatNobodyKnowsGoes) {
    begin();
    roster_.incarnation = {7, 7};
    lose_client(true);
    EXPECT_EQ(slots_->count(), 0u);
}

// Its word came, and was answered, before its slot was looked into.
TEST_F(LeftSlotsTest, WhatWasToldAfterAllIsNotTakenTwice) {
    begin();
    lose_client(true, [&](const Slots::Left& left) {
        LocalImage image = **read(path_);
        ASSERT_TRUE(slots_->sealed(image, left.lease));
        ASSERT_TRUE(node_->add_image(std::move(image)).ok());
    });
    EXPECT_TRUE(slots_->holds(key(), 0, path_));
}

}  // namespace
}  // namespace cairn
