// Slots: who gets which, and when it goes.
#include "daemon/slots_testing.hpp"
#include "daemon/unreadable_testing.hpp"

namespace cairn {
namespace {

TEST_F(SlotsTest, SpaceIsThereBeforeTheSlotIs) {
    begin();
    const auto slot = acquire(alice, wanted(0, 3 * mib + 5));
    ASSERT_TRUE(slot.ok()) << slot.status().to_string();
    EXPECT_GE(slot->bytes, 3 * mib + 5);
    EXPECT_EQ(fs::file_size(slot->path), slot->bytes);
    EXPECT_GE(allocated_bytes(slot->path), slot->bytes);
    EXPECT_TRUE(slot->fresh);
    EXPECT_EQ(slots_->bytes(), slot->bytes);
}

TEST_F(SlotsTest, TheSameConnectionGetsItsWarmSlotBack) {
    begin();
    const auto a = acquire(alice, wanted(0, mib)), b = acquire(bob, wanted(1, mib));
    EXPECT_NE(a->path, b->path);
    ASSERT_TRUE(slots_->release(bob, b->path).ok());
    ASSERT_TRUE(slots_->release(alice, a->path).ok());
    const auto again = acquire(bob, wanted(1, mib));
    EXPECT_EQ(again->path, b->path);
    EXPECT_FALSE(again->fresh);
}

TEST_F(SlotsTest, AnothersWarmSlotIsLeftAloneWhileHeLives) {
    begin();
    const auto a = acquire(alice, wanted(0, mib));
    ASSERT_TRUE(slots_->release(alice, a->path).ok());
    const auto b = acquire(bob, wanted(1, mib));
    EXPECT_NE(b->path, a->path);
    EXPECT_TRUE(slots_->disconnected(alice).empty());
    EXPECT_EQ(acquire(carol, wanted(0, mib))->path, a->path);
}

TEST_F(SlotsTest, AFreeSlotThatIsTooSmallGrows) {
    begin();
    const auto small = acquire(alice, wanted(0, mib));
    ASSERT_TRUE(slots_->release(alice, small->path).ok());
    const auto large = acquire(alice, wanted(0, 5 * mib));
    EXPECT_EQ(large->path, small->path);
    EXPECT_TRUE(large->fresh);
    EXPECT_GE(allocated_bytes(large->path), 5 * mib);
    EXPECT_EQ(slots_->count(), 1u);
}

TEST_F(SlotsTest, WhatASlowTimeNeededIsGivenBack) {
    begin();
    std::vector<control::Slot> many;
    for (int i = 0; i < 6; ++i) many.push_back(acquire(alice, wanted(0, mib)).value());
    const auto others = acquire(bob, wanted(1, mib));
    ASSERT_TRUE(slots_->release(bob, others->path).ok());
    for (const auto& slot : many) ASSERT_TRUE(slots_->release(alice, slot.path).ok());
    for (int i = 0; i < 20; ++i) {
        const auto one = acquire(alice, wanted(0, mib)), two = acquire(alice, wanted(0, mib));
        for (const auto& slot : {*two, *one}) ASSERT_TRUE(slots_->release(alice, slot.path).ok());
        ASSERT_TRUE(eventually([&] { return !slots_->is_clearing(); }));
    }
    EXPECT_EQ(slots_->count(), 3u);  // two that she uses, and the one that somebody else will
}

TEST_F(SlotsTest, TwoStayWarmWhenNobodyCaptures) {
    begin();
    std::vector<control::Slot> many;
    for (int i = 0; i < 6; ++i) many.push_back(acquire(alice, wanted(0, mib)).value());
    for (const auto& slot : many) ASSERT_TRUE(slots_->release(alice, slot.path).ok());
    EXPECT_FALSE(trim_to(2, 3600 * second));
    EXPECT_EQ(slots_->count(), 6u);
    EXPECT_TRUE(trim_to(2, 0));
    EXPECT_EQ(acquire(alice, wanted(0, mib))->path, many.back().path);
}

TEST_F(SlotsTest, NothingStaysWarmForWhoHasGone) {
    begin();
    ASSERT_TRUE(slots_->release(alice, acquire(alice, wanted(0, mib))->path).ok());
    slots_->disconnected(alice);
    EXPECT_TRUE(trim_to(0, 0));
}

TEST_F(SlotsTest, AHugeSlotIsNotSpentOnASmallImage) {
    begin();
    const auto huge = acquire(alice, wanted(0, 64 * mib));
    ASSERT_TRUE(slots_->release(alice, huge->path).ok());
    const auto small = acquire(alice, wanted(0, mib));
    EXPECT_NE(small->path, huge->path);
}

TEST_F(SlotsTest, OnlyItsOwnerMayReleaseASlot) {
    begin();
    const auto slot = acquire(alice, wanted(0, mib));
    EXPECT_EQ(slots_->release(bob, slot->path).code(), Code::not_found);
    EXPECT_EQ(slots_->release(alice, "/etc/passwd").code(), Code::not_found);
    EXPECT_NE(slots_->lease_of(alice, slot->path), 0u);
    EXPECT_EQ(slots_->lease_of(bob, slot->path), 0u);
}

// Who says "sealed", gives the slot back and asks for one again, all before the first was looked into, gets the same slot: it is not that image's.
TEST_F(SlotsTest, AnImageBelongsToOneHandOut) {
    begin();
    const auto slot = acquire(alice, wanted(0, mib));
    const Slots::Lease first = slots_->lease_of(alice, slot->path);
    ASSERT_TRUE(slots_->release(alice, slot->path).ok());
    ASSERT_EQ(acquire(alice, wanted(0, mib))->path, slot->path);
    LocalImage image;
    image.path = slot->path;
    image.header.key = {"heat", 1, roster_.incarnation};
    EXPECT_FALSE(slots_->sealed(image, first));
    const Slots::Lease second = slots_->lease_of(alice, slot->path);
    ASSERT_TRUE(slots_->release(alice, slot->path).ok());
    Gate gate(world_->loop());
    const auto grow = [](Slots& slots, control::Acquire request) -> Task<void> {
        const auto grown = co_await slots.acquire(alice, std::move(request));
        EXPECT_TRUE(grown.ok());
    };
    gate.spawn(grow(*slots_, wanted(0, 2 * mib, 1, 60'000)));  // in the hands of nobody while it grows
    EXPECT_FALSE(slots_->sealed(image, second));
    EXPECT_FALSE(slots_->sealed(image, 0));
    world_->loop().run(gate.close());
    EXPECT_TRUE(slots_->sealed(image, slots_->lease_of(alice, slot->path)));
    EXPECT_FALSE(slots_->sealed(image, first));
}

// The answer to a client that has gone meanwhile may be quicker than the look into what it left.
TEST_F(SlotsTest, WhatBecameAnImageIsNotDiscardedAsALostWritersSlot) {
    begin();
    const auto slot = acquire(alice, wanted(0, mib));
    const auto other = acquire(alice, wanted(0, mib));
    const auto left = slots_->disconnected(alice);
    ASSERT_EQ(left.size(), 2u);
    LocalImage image;
    image.path = left[0].path;
    image.header.key = {"heat", 1, roster_.incarnation};
    ASSERT_TRUE(slots_->sealed(image, left[0].lease));
    for (const auto& each : left) slots_->discard_unsealed(each.path, each.lease);
    EXPECT_TRUE(slots_->holds(image.header.key, 0, left[0].path));
    EXPECT_EQ(slots_->count(), 1u);
}

TEST_F(SlotsTest, ALostWritersSlotIsNeverHandedOn) {
    begin();
    const auto slot = acquire(alice, wanted(0, mib));
    const auto left = slots_->disconnected(alice);
    ASSERT_EQ(left.size(), 1u);
    EXPECT_EQ(left[0].path, slot->path);
    EXPECT_NE(acquire(bob, wanted(0, mib))->path, slot->path);
    slots_->discard_unsealed(slot->path, left[0].lease);
    EXPECT_EQ(slots_->count(), 1u);
    EXPECT_NE(acquire(carol, wanted(0, mib))->path, slot->path);
}

// A pin dies with its daemon; who reads must notice by himself.
TEST_F(SlotsTest, AnImageWhoseSlotIsTakenWhileItIsReadIsNotTakenForWhole) {
    begin();
    const auto slot = acquire(alice, wanted(0, mib));
    ASSERT_TRUE(slot.ok());
    seal(*slot, 1, 0);
    auto image = read(slot->path);
    ASSERT_TRUE(image.ok() && image->has_value());
    World world = world_->world();
    bool taken = false;
    const ImageSink sink = [&](std::uint64_t, Slice) {
        if (taken) std::fstream(slot->path, std::ios::in | std::ios::out | std::ios::binary).write("\0\0\0\0\0\0\0", 8);
        return Status();
    };
    EXPECT_TRUE(world_->loop().run(restore_local(world, **image, {}, sink, {})).ok());
    taken = true;
    EXPECT_EQ(world_->loop().run(restore_local(world, **image, {}, sink, {})).code(), Code::corrupt);
}

// A disk that hangs when the checksums are written beside the image.
TEST_F(SlotsTest, ASlotThatMayBeWrittenLateHoldsNoOtherImage) {
    io_wait_ = 5 * second;
    SlotSettings settings;
    settings.keep_last = 1;
    begin(settings);
    const auto late = acquire(alice, wanted(0, mib)), other = acquire(bob, wanted(1, mib));
    write(*late, 1, 0);
    write(*other, 1, 1);
    auto late_image = read(late->path), other_image = read(other->path);
    storage_->hang_at = late->path;
    take(std::move(**late_image));
    take(std::move(**other_image));
    const VersionKey key{"heat", 1, roster_.incarnation};
    const auto is_late = [&] { return node_->may_be_written(key, 0); };
    EXPECT_TRUE(eventually(is_late));
    EXPECT_FALSE(node_->may_be_written(key, 1));
    checkpoint(2);
    EXPECT_EQ(held(), std::vector<Version>{2});
    EXPECT_TRUE(eventually([&] { return !fs::exists(late->path); }));
    EXPECT_TRUE(fs::exists(other->path));  // the other rank's is free, for the next image
    EXPECT_EQ(slots_->count(), 3u);
}
// Its state word can not be made invalid: the loop goes on, and the slot is nobody's any more.
TEST_F(SlotsTest, ASlotWhoseFileDoesNotAnswerIsLostAndHoldsNobodyUp) {
    SlotSettings settings;
    settings.allocate_wait = 100 * millisecond;
    begin(settings);
    const auto slot = acquire(alice, wanted(0, mib));
    const test::Unreadable unreadable(slot->path);
    ASSERT_TRUE(slots_->release(alice, slot->path).ok());
    const auto next = acquire(alice, wanted(0, mib));
    ASSERT_TRUE(next.ok()) << next.status().to_string();
    EXPECT_NE(next->path, slot->path);
    EXPECT_EQ(slots_->count(), 1u);
}

// As long as it is not given up, too: who has another slot gets that, who has none gets a new one.
TEST_F(SlotsTest, ASlotThatIsNotClearedYetHoldsOnlyItsOwnerUpAndNotForLong) {
    SlotSettings settings;
    settings.allocate_wait = 30 * second;
    settings.clear_wait = 50 * millisecond;
    begin(settings);
    const auto stuck = acquire(alice, wanted(0, mib)), warm = acquire(bob, wanted(1, mib));
    ASSERT_TRUE(slots_->release(bob, warm->path).ok());
    ASSERT_TRUE(eventually([&] { return !slots_->is_clearing(); }));
    const test::Unreadable unreadable(stuck->path);
    ASSERT_TRUE(slots_->release(alice, stuck->path).ok());
    EXPECT_EQ(acquire(bob, wanted(1, mib))->path, warm->path);
    EXPECT_TRUE(slots_->is_clearing()) << "he waited until it was lost";
    const auto other = acquire(carol, wanted(2, mib)), own = acquire(alice, wanted(0, mib));
    EXPECT_TRUE(other.ok() && own.ok());
    EXPECT_TRUE(slots_->is_clearing()) << "they waited until it was lost";
    EXPECT_EQ(slots_->count(), 4u);
}

// The node knows of an image from when its slot is handed out until it is sealed, given back, or its writer has gone.
TEST_F(SlotsTest, TheNodeHearsOfAnImageThatBegins) {
    begin();
    control::Acquire request = wanted(0, mib);
    const auto untold = acquire(alice, request);
    ASSERT_TRUE(untold.ok());
    EXPECT_EQ(node_->filling(), 0u) << "whoever asks does not say how long it will be";
    ASSERT_TRUE(slots_->release(alice, untold->path).ok());
    request.image_bytes = 10'000;
    request.block_bytes = 4096;
    for (const auto& [image_bytes, block_bytes] : {std::pair(UINT64_MAX, 4096ull), {mib + 1, 4096ull}, {10'000ull, 3ull}, {10'000ull, 1ull << 50}}) {
        control::Acquire lying = request;
        lying.image_bytes = image_bytes;
        lying.block_bytes = block_bytes;
        EXPECT_EQ(acquire(alice, lying).code(), Code::invalid_argument) << image_bytes << " " << block_bytes;
    }
    const auto released = acquire(alice, request);
    ASSERT_TRUE(released.ok());
    EXPECT_EQ(node_->filling(), 1u);
    ASSERT_TRUE(slots_->release(alice, released->path).ok());
    EXPECT_EQ(node_->filling(), 0u);
    ASSERT_TRUE(acquire(alice, request).ok());
    EXPECT_EQ(node_->filling(), 1u);
    slots_->disconnected(alice);
    EXPECT_EQ(node_->filling(), 0u);
    const auto lost = acquire(alice, request), again = acquire(bob, request);  // once more, on a new connection
    ASSERT_TRUE(lost.ok() && again.ok());
    slots_->disconnected(alice);
    EXPECT_EQ(node_->filling(), 1u) << "it goes on in the other slot";
    ASSERT_TRUE(slots_->release(bob, again->path).ok());
    EXPECT_EQ(node_->filling(), 0u);
    const auto sealed = acquire(bob, request);
    ASSERT_TRUE(sealed.ok());
    EXPECT_EQ(node_->filling(), 1u);
    seal(*sealed, 1, 0);
    EXPECT_EQ(node_->filling(), 0u);
}

}  // namespace
}  // namespace cairn
