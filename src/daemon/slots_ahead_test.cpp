// Slots: what is made before it is asked for, for whom, and what of it is given back.
#include "daemon/slots_testing.hpp"

namespace cairn {
namespace {

class SlotsAhead : public SlotsTest {
  protected:
    // What the owner is told, asked again until nothing more is to come.
    control::Prepared prepared(Slots::Owner owner, Rank rank, std::uint64_t bytes) {
        control::Prepared told;
        const bool came = eventually([&] {
            told = slots_->prepare(owner, {rank, bytes, 0}).value();
            return !told.more_to_come;
        });
        EXPECT_TRUE(came);
        return told;
    }
    bool is_there(const std::string& path) const { return fs::exists(path); }
    std::uint64_t memory_left_ = 1ull << 40;
    SlotSettings scarce(std::uint64_t spare_bytes) {
        SlotSettings settings;
        settings.available_memory_bytes = [this]() -> Result<std::uint64_t> { return memory_left_; };
        settings.spare_memory_bytes = spare_bytes;
        return settings;
    }
};

TEST_F(SlotsAhead, ASecondSlotIsMadeBeforeItIsAskedFor) {
    begin();
    checkpoint(1);
    EXPECT_EQ(slots_->count(), 2u);
    world_->loop().run(slots_->prepare_next());
    ASSERT_EQ(slots_->count(), 4u);
    const auto first = held();
    const auto a = acquire(alice, wanted(0, mib, 2)), b = acquire(bob, wanted(1, mib, 2));
    EXPECT_NE(a->path, b->path);
    EXPECT_GE(allocated_bytes(a->path), mib);
    EXPECT_EQ(slots_->count(), 4u);
    EXPECT_EQ(held(), first);
    world_->loop().run(slots_->prepare_next());  // who has two has what it needs
    EXPECT_EQ(slots_->count(), 4u);
}

TEST_F(SlotsAhead, NoSecondSlotBeforeAllHaveSealedNorForWhoHasGone) {
    begin();
    const auto a = acquire(alice, wanted(0, mib));
    seal(*a, 1, 0);
    world_->loop().run(slots_->prepare_next());
    EXPECT_EQ(slots_->count(), 1u);
    const auto b = acquire(bob, wanted(1, mib));
    seal(*b, 1, 1);
    EXPECT_TRUE(slots_->disconnected(alice).empty());
    const VersionKey key{"heat", 1, roster_.incarnation};
    EXPECT_TRUE(world_->loop().run(node_->wait(key, Level::committed, in(60 * second))).ok());
    world_->loop().run(slots_->prepare_next());
    EXPECT_EQ(slots_->count(), 3u);
    EXPECT_EQ(acquire(bob, wanted(1, mib, 2)).ok(), true);
    EXPECT_EQ(slots_->count(), 3u);
}

TEST_F(SlotsAhead, NoSecondSlotWhereRoomIsShort) {
    SlotSettings settings;
    settings.bytes_max = 5 * mib / 2;
    begin(settings);
    checkpoint(1);
    world_->loop().run(slots_->prepare_next());
    EXPECT_EQ(slots_->count(), 2u);
}

TEST_F(SlotsAhead, NoThirdOneForWhoIsMakingItsSecond) {
    begin();
    checkpoint(1);
    Gate gate(world_->loop());
    std::string path;
    const auto ask = [](Slots& slots, control::Acquire request, std::string& path_out) -> Task<void> {
        const auto slot = co_await slots.acquire(alice, std::move(request));
        if (slot.ok()) path_out = slot->path;
    };
    gate.spawn(ask(*slots_, wanted(0, mib, 2, 60'000), path));  // allocates: nothing is free
    world_->loop().run(slots_->prepare_next());
    world_->loop().run(gate.close());
    EXPECT_FALSE(path.empty());
    EXPECT_EQ(slots_->count(), 4u);  // alice's is her own
}

TEST_F(SlotsAhead, ACaptureWaitsForTheSlotThatIsBeingMadeForIt) {
    begin();
    checkpoint(1);
    Gate gate(world_->loop());
    gate.spawn(slots_->prepare_next());
    const auto a = acquire(alice, wanted(0, mib, 2, 60'000));
    ASSERT_TRUE(a.ok());
    world_->loop().run(gate.close());
    EXPECT_EQ(slots_->count(), 4u);
}


TEST_F(SlotsAhead, TheFirstSlotIsMadeWhenItsSizeIsSaid) {
    begin();
    const control::Prepared told = prepared(alice, 0, 3 * mib);
    ASSERT_EQ(told.slots.size(), 1u);
    EXPECT_GE(told.slots[0].bytes, 3 * mib);
    EXPECT_GE(allocated_bytes(told.slots[0].path), 3 * mib);
    const auto slot = acquire(alice, wanted(0, 3 * mib));
    ASSERT_TRUE(slot.ok());
    EXPECT_EQ(slot->path, told.slots[0].path);
    EXPECT_EQ(slots_->count(), 1u);
}

TEST_F(SlotsAhead, OneWhoHasItsFirstGetsTheSecondWhenThatIsSealed) {
    begin();
    EXPECT_EQ(prepared(alice, 0, mib).slots.size(), 1u);
    const auto first = acquire(alice, wanted(0, mib)), others = acquire(bob, wanted(1, mib));
    control::Prepared told = slots_->prepare(alice, {0, mib, 0}).value();
    EXPECT_TRUE(told.slots.empty());
    EXPECT_TRUE(told.more_to_come);
    seal(*first, 1, 0);
    seal(*others, 1, 1);
    EXPECT_TRUE(world_->loop().run(node_->wait({"heat", 1, roster_.incarnation}, Level::sealed, in(60 * second))).ok());
    told = prepared(alice, 0, mib);
    ASSERT_EQ(told.slots.size(), 1u);
    EXPECT_NE(told.slots[0].path, first->path);
    EXPECT_EQ(acquire(alice, wanted(0, mib, 2))->path, told.slots[0].path);
    EXPECT_FALSE(slots_->prepare(alice, {0, mib, 0})->more_to_come) << "it has two";
}

// While it is being made it is neither there nor wanted any more.
TEST_F(SlotsAhead, WhoAsksIsToldThatOneIsBeingMade) {
    begin();
    checkpoint(1);
    Gate gate(world_->loop());
    gate.spawn(slots_->prepare_next());
    const Slots& slots = *slots_;
    while (slots.count() < 3) world_->loop().run(short_sleep(world_->loop()));
    const control::Prepared told = slots_->prepare(alice, {0, mib, 0}).value();
    EXPECT_TRUE(told.more_to_come || told.slots.size() == 1);
    world_->loop().run(gate.close());
    EXPECT_EQ(prepared(alice, 0, mib).slots.size(), 1u);
}

TEST_F(SlotsAhead, ASlotGrowsWithWhatIsProtected) {
    begin();
    const std::string path = prepared(alice, 0, mib).slots.at(0).path;
    const control::Prepared told = prepared(alice, 0, 40 * mib);
    ASSERT_EQ(told.slots.size(), 1u);
    EXPECT_EQ(told.slots[0].path, path);
    EXPECT_GE(allocated_bytes(path), 40 * mib);
    EXPECT_EQ(slots_->count(), 1u);
    EXPECT_EQ(slots_->bytes(), told.slots[0].bytes);
}

TEST_F(SlotsAhead, OneThatIsFarTooLargeIsMadeAnew) {
    begin();
    const std::string large = prepared(alice, 0, 80 * mib).slots.at(0).path;
    const control::Prepared told = prepared(alice, 0, mib);
    ASSERT_EQ(told.slots.size(), 1u);
    EXPECT_NE(told.slots[0].path, large);
    EXPECT_EQ(slots_->count(), 1u);
    EXPECT_TRUE(eventually([&] { return !is_there(large); }));
}

TEST_F(SlotsAhead, WhatSomebodyLeftIsTakenBeforeOneIsMade) {
    begin();
    const auto left = acquire(alice, wanted(0, mib));
    ASSERT_TRUE(slots_->release(alice, left->path).ok());
    EXPECT_TRUE(slots_->disconnected(alice).empty());
    ASSERT_TRUE(eventually([&] { return !slots_->is_clearing(); }));
    const control::Prepared told = prepared(bob, 0, mib);
    ASSERT_EQ(told.slots.size(), 1u);
    EXPECT_EQ(told.slots[0].path, left->path);
    EXPECT_EQ(slots_->count(), 1u);
}

TEST_F(SlotsAhead, NobodyAliveLosesHisSlotToOneWhoPrepares) {
    begin();
    const std::string first = prepared(alice, 0, mib).slots.at(0).path;
    EXPECT_NE(prepared(bob, 1, mib).slots.at(0).path, first);
    EXPECT_EQ(acquire(alice, wanted(0, mib))->path, first);
}

TEST_F(SlotsAhead, EachOfManyGetsOne) {
    begin();
    constexpr Slots::Owner many = 12;
    for (Slots::Owner owner = 1; owner <= many; ++owner) (void)slots_->prepare(owner, {static_cast<Rank>(owner), mib, -1}).value();
    std::set<std::string> paths;
    for (Slots::Owner owner = 1; owner <= many; ++owner) {
        const control::Prepared told = prepared(owner, static_cast<Rank>(owner), mib);
        ASSERT_EQ(told.slots.size(), 1u);
        paths.insert(told.slots[0].path);
    }
    EXPECT_EQ(paths.size(), many);
    EXPECT_EQ(slots_->count(), many);
}

TEST_F(SlotsAhead, TheScratchLimitCountsThemAndACaptureComesFirst) {
    SlotSettings settings;
    settings.bytes_max = 5 * mib / 2;
    begin(settings);
    EXPECT_EQ(prepared(alice, 0, mib).slots.size(), 1u);
    EXPECT_EQ(prepared(bob, 1, mib).slots.size(), 1u);
    const auto slot = acquire(carol, wanted(0, 2 * mib));  // no room beside them
    ASSERT_TRUE(slot.ok()) << slot.status().to_string();
    EXPECT_LE(slots_->bytes(), settings.bytes_max);
}

TEST_F(SlotsAhead, NoneWhereMemoryIsShort) {
    memory_left_ = 3 * mib;
    begin(scarce(2 * mib));
    const control::Prepared told = slots_->prepare(alice, {0, mib, 0}).value();
    EXPECT_TRUE(told.slots.empty());
    world_->loop().run(slots_->prepare_next());
    EXPECT_EQ(slots_->count(), 0u);
    memory_left_ = 5 * mib;
    EXPECT_EQ(prepared(alice, 0, mib).slots.size(), 1u);
}

// Somebody has it mapped, as clients do, which alone would keep its memory.
TEST_F(SlotsAhead, UnusedOnesAreGivenBackWhenMemoryGetsShort) {
    begin(scarce(2 * mib));
    const auto used = acquire(bob, wanted(1, mib));
    const control::Slot unused = prepared(alice, 0, mib).slots.at(0);
    const int file = ::open(unused.path.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(file, 0);
    slots_->give_back_ahead();
    EXPECT_EQ(slots_->count(), 2u) << "there is enough";
    memory_left_ = 2 * mib - 1;
    EXPECT_TRUE(eventually([&] {
        slots_->give_back_ahead();
        return slots_->count() == 1;
    }));
    EXPECT_EQ(slots_->bytes(), used->bytes);
    struct stat about = {};
    EXPECT_TRUE(eventually([&] { return ::fstat(file, &about) == 0 && about.st_blocks == 0 && about.st_nlink == 0; }));
    EXPECT_EQ(static_cast<std::uint64_t>(about.st_size), unused.bytes) << "it never shrinks";
    ::close(file);
    EXPECT_TRUE(is_there(used->path));
    memory_left_ = 1ull << 40;
    EXPECT_FALSE(slots_->prepare(alice, {0, mib, 0})->more_to_come) << "not again and again";
    EXPECT_EQ(acquire(alice, wanted(0, mib)).ok(), true);
}

// Who asks in earnest comes first, and what is taken away for him is not made again at once.
TEST_F(SlotsAhead, OneThatIsTakenForAnotherIsNotMadeAgainAtOnce) {
    SlotSettings settings;
    settings.bytes_max = 5 * mib / 2;
    begin(settings);
    EXPECT_EQ(prepared(alice, 0, mib).slots.size(), 1u);
    const auto slot = acquire(bob, wanted(1, 2 * mib));
    ASSERT_TRUE(slot.ok()) << slot.status().to_string();
    EXPECT_EQ(slots_->count(), 1u);
    ASSERT_TRUE(slots_->release(bob, slot->path).ok());
    EXPECT_FALSE(slots_->prepare(alice, {0, mib, 0})->more_to_come);
    world_->loop().run(slots_->prepare_next());
    EXPECT_EQ(slots_->count(), 1u);
}

TEST_F(SlotsAhead, ALargeOneThatIsWarmIsNoneForASmallImage) {
    begin();
    const auto large = acquire(alice, wanted(0, 80 * mib));
    ASSERT_TRUE(slots_->release(alice, large->path).ok());
    ASSERT_TRUE(eventually([&] { return !slots_->is_clearing(); }));
    const control::Prepared told = prepared(alice, 0, mib);
    ASSERT_EQ(told.slots.size(), 1u);
    EXPECT_NE(told.slots[0].path, large->path);
}

TEST_F(SlotsAhead, NothingIsMadeAnyMoreAtTheEnd) {
    begin();
    slots_->end_ahead();
    EXPECT_FALSE(slots_->prepare(alice, {0, mib, 0})->more_to_come);
    world_->loop().run(slots_->prepare_next());
    EXPECT_EQ(slots_->count(), 0u);
}

TEST_F(SlotsAhead, MoreThanScratchMayHoldIsNotWaitedFor) {
    SlotSettings settings;
    settings.bytes_max = 2 * mib;
    begin(settings);
    EXPECT_FALSE(slots_->prepare(alice, {0, 3 * mib, 0})->more_to_come);
}

TEST_F(SlotsAhead, WhoProtectsLessIsTriedAgain) {
    begin(scarce(2 * mib));
    EXPECT_EQ(prepared(alice, 0, 4 * mib).slots.size(), 1u);
    memory_left_ = 2 * mib - 1;
    EXPECT_TRUE(eventually([&] {
        slots_->give_back_ahead();
        return slots_->count() == 0;
    }));
    memory_left_ = 1ull << 40;
    EXPECT_FALSE(slots_->prepare(alice, {0, 4 * mib, 0})->more_to_come);
    EXPECT_EQ(prepared(alice, 0, mib).slots.size(), 1u);
}

// Both are wished for before the memory of either is taken.
TEST_F(SlotsAhead, WhatIsBeingMadeForOthersHasItsMemoryToo) {
    SlotSettings settings = scarce(2 * mib);
    settings.available_memory_bytes = [this]() -> Result<std::uint64_t> {
        std::uint64_t taken = 0;
        for (const auto& each : fs::directory_iterator(scratch / "images")) taken += allocated_bytes(each.path());
        return memory_left_ - taken;
    };
    memory_left_ = 4 * mib + mib / 2;  // for one it would do
    begin(settings);
    (void)slots_->prepare(alice, {0, mib, 0}).value();
    (void)slots_->prepare(bob, {1, mib, 0}).value();
    EXPECT_TRUE(eventually([&] { return slots_->prepare(alice, {0, mib, 0})->slots.size() == 1; }));
    world_->loop().run(slots_->prepare_next());
    EXPECT_EQ(slots_->count(), 1u);
}

TEST_F(SlotsAhead, OneAfterTheOtherHoweverManyThereWere) {
    begin();
    for (Slots::Owner owner = 1; owner <= 6; ++owner) {
        ASSERT_EQ(prepared(owner, static_cast<Rank>(owner), mib).slots.size(), 1u) << owner;
        world_->loop().run(slots_->prepare_next());  // nothing is left to do
    }
}

TEST_F(SlotsAhead, ASizeThatNoImageCanHaveIsRefused) {
    begin();
    EXPECT_EQ(slots_->prepare(alice, {0, 0, 0}).code(), Code::invalid_argument);
    EXPECT_EQ(slots_->prepare(alice, {0, ~0ull, 0}).code(), Code::invalid_argument);
    EXPECT_EQ(slots_->count(), 0u);
}

TEST_F(SlotsAhead, NoneForWhoHasGone) {
    begin();
    (void)slots_->prepare(alice, {0, mib, 0}).value();
    EXPECT_TRUE(slots_->disconnected(alice).empty());
    world_->loop().run(slots_->prepare_next());
    EXPECT_EQ(acquire(bob, wanted(0, mib)).ok(), true);
    EXPECT_LE(slots_->count(), 1u) << "what was begun for her is his";
}

}  // namespace
}  // namespace cairn
