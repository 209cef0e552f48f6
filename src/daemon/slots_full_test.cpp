// Slots: what leaves when there is no room, and by retention. Most on whatever file system the tests have; what needs a
// full one mounts a small tmpfs where it may, and has the limit on all slots play that part elsewhere.
#include <sys/mount.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "daemon/slots_testing.hpp"
#include "daemon/unreadable_testing.hpp"

namespace cairn {
namespace {

TEST_F(SlotsTest, FullIsSaidAndWhoHoldsIt) {
    SlotSettings settings;
    settings.bytes_max = 2 * mib;
    settings.bytes_max_from = "setting of this test";
    begin(settings);
    const auto a = acquire(alice, wanted(0, mib)), b = acquire(bob, wanted(1, mib));
    seal(*b, 1, 1);
    const auto none = acquire(carol, wanted(0, mib));
    EXPECT_EQ(none.code(), Code::out_of_space);
    for (const char* word : {"heat version 1", "1.00 MiB", "being captured", "2.00 MiB (setting of this test)"})
        EXPECT_NE(none.status().text().find(word), std::string::npos) << none.status().text();
    const auto never_fits = acquire(carol, wanted(0, 3 * mib, 1, 3'600'000));
    EXPECT_EQ(never_fits.code(), Code::out_of_space);
    EXPECT_NE(never_fits.status().text().find("2.00 MiB (setting of this test)"), std::string::npos)
        << never_fits.status().text();
    ASSERT_TRUE(slots_->release(alice, a->path).ok());
    EXPECT_EQ(acquire(carol, wanted(0, mib))->path, a->path);  // somebody else's, but there is no room for another one
}

Task<void> acquire_into(Slots& slots, control::Acquire request, std::optional<Result<control::Slot>>* result) {
    Result<control::Slot> slot = co_await slots.acquire(bob, request);
    result->emplace(std::move(slot));
}

TEST_F(SlotsTest, WhoWaitsGetsWhatIsReleased) {
    SlotSettings settings;
    settings.bytes_max = mib;
    begin(settings);
    const auto a = acquire(alice, wanted(0, mib));
    std::optional<Result<control::Slot>> got;
    Gate gate(world_->loop());
    gate.spawn(acquire_into(*slots_, wanted(1, mib, 1, 60'000), &got));
    EXPECT_FALSE(world_->loop().run(gate.close(in(50 * millisecond))));
    EXPECT_FALSE(got.has_value());
    ASSERT_TRUE(slots_->release(alice, a->path).ok());
    EXPECT_TRUE(world_->loop().run(gate.close(in(60 * second))));
    ASSERT_TRUE(got.has_value() && got->ok());
    EXPECT_EQ((*got)->path, a->path);
}

// What is being cleared would be the room: it is waited for, but not for as long as a file may take to answer.
TEST_F(SlotsTest, FullIsSaidThoughASlotCanNotBeCleared) {
    SlotSettings settings;
    settings.bytes_max = mib;
    settings.allocate_wait = 30 * second;
    settings.clear_wait = 50 * millisecond;
    begin(settings);
    const auto stuck = acquire(alice, wanted(0, mib));
    const test::Unreadable unreadable(stuck->path);
    ASSERT_TRUE(slots_->release(alice, stuck->path).ok());
    for (const Slots::Owner owner : {alice, bob}) EXPECT_EQ(acquire(owner, wanted(0, mib)).code(), Code::out_of_space);
    EXPECT_TRUE(slots_->is_clearing()) << "they waited until it was lost";
}

// A file system that does not say what room it has, until it is let go.
struct HangingRoom {
    std::atomic<int> looks = 0;
    std::promise<void> end;
    std::shared_future<void> ended = end.get_future().share();
    SlotSettings settings() {
        SlotSettings settings;
        settings.bytes_max = mib;
        settings.room_in = [this](const std::string&) -> Result<std::uint64_t> {
            ++looks;
            ended.wait_for(std::chrono::seconds(60));
            return std::uint64_t{0};
        };
        return settings;
    }
};

TEST_F(SlotsTest, AllWhoAskForRoomShareOneLook) {
    HangingRoom room;
    begin(room.settings());
    const auto a = acquire(alice, wanted(0, mib));
    std::vector<std::optional<Result<control::Slot>>> got(3);
    Gate gate(world_->loop());
    for (auto& each : got) gate.spawn(acquire_into(*slots_, wanted(1, mib), &each));
    EXPECT_TRUE(eventually([&] { return room.looks > 0; }));
    room.end.set_value();
    EXPECT_TRUE(world_->loop().run(gate.close(in(60 * second))));
    for (const auto& each : got) EXPECT_TRUE(each.has_value() && each->code() == Code::out_of_space);
    EXPECT_EQ(room.looks, 1);
}

TEST_F(SlotsTest, ALookForRoomThatHangsTakesOneThreadAndIsTriedAgainOnceItIsBack) {
    HangingRoom room;
    SlotSettings settings = room.settings();
    settings.allocate_wait = 500 * millisecond;
    begin(settings);
    const auto a = acquire(alice, wanted(0, mib));
    ASSERT_TRUE(a.ok());
    for (int i = 0; i < 3; ++i) EXPECT_EQ(acquire(bob, wanted(1, mib)).code(), Code::out_of_space);
    EXPECT_EQ(room.looks, 1);
    EXPECT_EQ(workers_->stuck(), 1u);
    room.end.set_value();
    EXPECT_TRUE(eventually([&] {
        EXPECT_EQ(acquire(bob, wanted(1, mib)).code(), Code::out_of_space);
        return room.looks > 1;
    }));
    EXPECT_EQ(workers_->stuck(), 0u);
}

TEST_F(SlotsTest, SmallFreeSlotsMakeWayForALargeOne) {
    SlotSettings settings;
    settings.bytes_max = 4 * mib;
    begin(settings);
    std::vector<control::Slot> small;
    for (int i = 0; i < 4; ++i) small.push_back(acquire(alice, wanted(0, mib)).value());
    for (const auto& slot : small) ASSERT_TRUE(slots_->release(alice, slot.path).ok());
    const auto large = acquire(bob, wanted(1, 4 * mib));
    ASSERT_TRUE(large.ok()) << large.status().to_string();
    EXPECT_EQ(slots_->count(), 1u);
    EXPECT_LE(slots_->bytes(), settings.bytes_max);
}

// What must not happen: a mapped page without memory behind it, and SIGBUS in the application.
TEST_F(SlotsTest, AFullFileSystemIsAnErrorNotASignal) {
    const bool mounted = ::mount("none", directory_.c_str(), "tmpfs", 0, "size=8m") == 0;
    SlotSettings settings;
    if (!mounted) settings.bytes_max = 8 * mib;
    begin(settings);
    std::vector<control::Slot> got;
    Result<control::Slot> next = acquire(alice, wanted(0, 3 * mib));
    for (; next.ok() && got.size() < 10; next = acquire(alice, wanted(0, 3 * mib))) got.push_back(*next);
    EXPECT_EQ(got.size(), 2u);
    EXPECT_EQ(next.code(), Code::out_of_space) << next.status().to_string();
    for (const auto& slot : got) {
        const int file = ::open(slot.path.c_str(), O_RDWR | O_CLOEXEC);
        void* base = ::mmap(nullptr, slot.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        ::close(file);
        std::memset(base, 1, slot.bytes);
        ::munmap(base, slot.bytes);
    }
    ASSERT_TRUE(slots_->release(alice, got[0].path).ok());
    EXPECT_TRUE(acquire(alice, wanted(0, 3 * mib)).ok());
    world_->loop().run(slots_->remove_unsealed(*removers_, in(60 * second)));
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);  // what made room for another slot goes in the background
    while (!fs::is_empty(directory_) && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_TRUE(fs::is_empty(directory_));
    if (mounted) {
        EXPECT_EQ(::umount2(directory_.c_str(), MNT_DETACH), 0);
    }
}

TEST_F(SlotsTest, RetentionKeepsTheNewestCommitted) {
    SlotSettings settings;
    settings.keep_last = 2;
    begin(settings);
    for (Version version = 1; version <= 4; ++version) checkpoint(version);
    EXPECT_EQ(held(), (std::vector<Version>{3, 4}));
    EXPECT_EQ(slots_->count(), 6u);  // two versions and one in the making, of two ranks: recycled ever since
}

TEST_F(SlotsTest, RetentionKeepsEverySomething) {
    SlotSettings settings;
    settings.keep_last = 1;
    settings.keep_every = 3;
    begin(settings);
    for (Version version = 1; version <= 7; ++version) checkpoint(version);
    EXPECT_EQ(held(), (std::vector<Version>{3, 6, 7}));
}

// No version of a newer job depends on it.
TEST_F(SlotsTest, RetentionLetsABaseGoWithItsJob) {
    SlotSettings settings;
    settings.keep_last = 1;
    codec_ = Codec::planes;
    full_every_ = 100;
    begin(settings);
    checkpoint(1);
    ASSERT_TRUE(node_->is_base({"heat", 1, roster_.incarnation}));
    roster_.incarnation = {1, 5};
    roster_.epoch = 2;
    put_on_record(Layout{persistent / "files"}, roster_);
    ASSERT_TRUE(node_->join(std::make_shared<const Roster>(roster_), 0).ok());
    checkpoint(2);
    EXPECT_TRUE(node_->is_base({"heat", 2, roster_.incarnation}));
    EXPECT_EQ(held(), (std::vector<Version>{2}));
}

// A rank was killed before it sealed, or its checkpoint failed: the others' images are of no use any more.
TEST_F(SlotsTest, WhatNeverBecameWholeGoesWhenANewerVersionIsCommitted) {
    version_wait_ = 50 * millisecond;
    begin();
    checkpoint(1);
    const auto slot = acquire(alice, wanted(0, mib, 2));
    ASSERT_TRUE(slot.ok());
    seal(*slot, 2, 0);
    const VersionKey key{"heat", 2, roster_.incarnation};
    EXPECT_EQ(world_->loop().run(node_->wait(key, Level::sealed, in(60 * second))).code(), Code::deadline);
    ASSERT_FALSE(node_->state(key).failure.ok());  // abandoned, the missing rank named
    slots_->apply_retention();
    EXPECT_EQ(held(), (std::vector<Version>{1, 2}));  // the rank may turn up yet
    checkpoint(3);
    EXPECT_EQ(held(), (std::vector<Version>{1, 3}));
    EXPECT_TRUE(node_->state(key).final);
}

// A clock that was set back gives out numbers again that an earlier daemon gave to what is sealed in scratch.
TEST_F(SlotsTest, ASealedImagesNameIsNotGivenOutAgain) {
    begin();
    checkpoint(1);
    std::string first;
    for (const auto& entry : slots_->pin_images(carol, "heat").images) first = std::max(first, entry.path);
    slots_->unpin(carol);
    const auto image = read(first);
    ASSERT_TRUE(image.ok() && image->has_value());
    const std::uint64_t number = std::stoull(first.substr(first.rfind('-') + 1));
    std::set<std::string> taken;
    for (std::uint64_t i = number + 1; i < number + 4000; ++i) {  // a number is a millisecond
        LocalImage old = **image;
        old.path = directory_ + "/slot-" + std::to_string(i);
        fs::copy_file(first, old.path);
        slots_->adopt(old, true);
        taken.insert(old.path);
    }
    const auto slot = acquire(carol, wanted(0, mib, 2));
    ASSERT_TRUE(slot.ok()) << slot.status().to_string();
    EXPECT_EQ(taken.count(slot->path), 0u);
}

TEST_F(SlotsTest, PinnedImagesStayUntilUnpinned) {
    SlotSettings settings;
    settings.keep_last = 1;
    begin(settings);
    checkpoint(1);
    EXPECT_EQ(slots_->pin_images(alice, "heat").images.size(), 2u);
    EXPECT_TRUE(slots_->pin_images(alice, "other").images.empty());
    checkpoint(2);
    EXPECT_EQ(held(), (std::vector<Version>{1, 2}));
    slots_->unpin(alice);
    EXPECT_EQ(held(), (std::vector<Version>{2}));
}

TEST_F(SlotsTest, CommittedVersionsButTheNewestMakeRoom) {
    SlotSettings settings;
    settings.keep_last = 0;  // all
    settings.bytes_max = 4 * mib;
    begin(settings);
    checkpoint(1);
    checkpoint(2);
    EXPECT_EQ(held(), (std::vector<Version>{1, 2}));
    checkpoint(3);
    EXPECT_EQ(held(), (std::vector<Version>{2, 3}));
    for (Rank rank : {0u, 1u}) ASSERT_TRUE(acquire(alice, wanted(rank, mib, 4)).ok());
    EXPECT_EQ(held(), (std::vector<Version>{3}));
    EXPECT_EQ(acquire(alice, wanted(0, mib, 4)).code(), Code::out_of_space);  // the newest committed one stays
}

TEST_F(SlotsTest, WhatCanNotBeFlushedIsKeptOrReplacedAsAsked) {
    SlotSettings settings;
    settings.bytes_max = 4 * mib;
    begin(settings, persistent / "missing");
    checkpoint(1, Level::sealed);
    checkpoint(2, Level::sealed);
    const auto none = acquire(alice, wanted(0, mib, 3));
    EXPECT_EQ(none.code(), Code::out_of_space);
    EXPECT_NE(none.status().text().find("not committed: "), std::string::npos) << none.status().text();
    slots_.reset();
    settings.replace_oldest = true;
    begin(settings, persistent / "missing");
    for (auto& entry : fs::directory_iterator(directory_)) fs::remove(entry);
    checkpoint(1, Level::sealed);
    checkpoint(2, Level::sealed);
    checkpoint(3, Level::sealed);
    EXPECT_EQ(held(), (std::vector<Version>{2, 3}));
}

TEST_F(SlotsTest, AdoptedCommittedImagesAreHeldAndRetained) {
    SlotSettings settings;
    settings.keep_last = 1;
    begin(settings);
    checkpoint(1);
    const auto list = slots_->pin_images(carol, "heat");
    slots_ =
        std::make_unique<Slots>(world_->loop(), *workers_, *node_, directory_, settings);  // a daemon started again
    for (const auto& entry : list.images) {
        const auto image = read(entry.path);
        slots_->adopt(**image, true);
    }
    EXPECT_TRUE(slots_->knows_committed({"heat", 1, roster_.incarnation}));
    EXPECT_EQ(held(), (std::vector<Version>{1}));
    EXPECT_EQ(slots_->bytes(), 2 * mib);
    checkpoint(2);
    EXPECT_EQ(held(), (std::vector<Version>{2}));
}

}  // namespace
}  // namespace cairn
