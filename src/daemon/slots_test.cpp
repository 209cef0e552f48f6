// Slots on real files, with a real node that flushes into a real directory. Most on whatever file system the tests
// have; what needs a full one mounts a small tmpfs where it may, and has the limit on all slots play that part
// elsewhere.
#include "daemon/slots.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "engine/restore.hpp"
#include "engine/scratch.hpp"
#include "format/image.hpp"
#include "world/real/test_world.hpp"
#include "world/real/world.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t mib = 1 << 20;
constexpr Slots::Owner alice = 1, bob = 2, carol = 3;

class SlotsTest : public testing::Test {
  protected:
    void SetUp() override {
        fs::create_directory(scratch / "images");
        fs::create_directory(persistent / "files");
        RealWorldOptions options;
        world_ = std::move(RealWorld::create(options)).value();
        roster_.name = "heat";
        roster_.incarnation = {1, 2};
        roster_.secret = {3, 4};
        roster_.epoch = 1;
        roster_.ranks = 2;
        roster_.files = 1;
        roster_.members = {{"n0", "", {0, 1}}};
    }
    void TearDown() override {
        slots_.reset();
        node_.reset();
    }
    // persistent_directory: one that does not exist makes every flush fail.
    void begin(SlotSettings settings = {}, const std::string& persistent_directory = {}) {
        FlushSettings flush;
        flush.buffers = 2;
        flush.buffer_bytes = mib;
        flush.attempts_max = 1;
        flush.retry_wait = 3600 * second;
        flush.version_wait = version_wait_;
        workers_ = std::make_unique<WorkerPool>(world_->loop().remote(), WorkerPoolOptions());
        const Layout layout{persistent_directory.empty() ? persistent / "files" : persistent_directory};
        node_ = std::make_unique<Node>(world_->world(), layout, flush);
        ASSERT_TRUE(node_->join(roster_, 0).ok());
        slots_ = std::make_unique<Slots>(world_->loop(), *workers_, *node_, directory_, settings);
    }
    control::Acquire wanted(Rank rank, std::uint64_t bytes, Version version = 1, std::uint64_t wait_ms = 0) {
        return {{"heat", version, roster_.incarnation}, rank, bytes, wait_ms};
    }
    Result<control::Slot> acquire(Slots::Owner owner, const control::Acquire& request) {
        return world_->loop().run(slots_->acquire(owner, request));
    }
    // Writes a sealed image into a slot of `owner`, as a client does.
    void seal(const control::Slot& slot, Version version, Rank rank) {
        ImageHeader header;
        header.key = {"heat", version, roster_.incarnation};
        header.epoch = roster_.epoch;
        header.rank = rank;
        header.ranks = roster_.ranks;
        header.block_bytes = 4096;
        header.image.rank = rank;
        header.image.bytes = 10'000;
        header.image.regions = {{"u", RegionKind::memory, DataType::bytes, {10'000}, 0, 10'000}};
        const ImageLayout layout =
            image_layout(encode_image_header(header).size(), header.image.bytes, header.block_bytes);
        header.checksums_offset = layout.checksums_offset;
        header.data_offset = layout.data_offset;
        const Bytes encoded = encode_image_header(header);
        const int file = ::open(slot.path.c_str(), O_RDWR | O_CLOEXEC);
        ASSERT_GE(file, 0);
        auto* base = static_cast<std::byte*>(::mmap(nullptr, slot.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
        ::close(file);
        EXPECT_FALSE(image_is_sealed(base));
        std::memcpy(base + image_header_offset, encoded.data(), encoded.size());
        std::memset(base + layout.data_offset, static_cast<int>(version), header.image.bytes);
        image_seal(base);
        ::munmap(base, slot.bytes);
        auto image = read(slot.path);
        ASSERT_TRUE(image.ok() && image->has_value());
        ASSERT_TRUE(slots_->sealed(**image));
        ASSERT_TRUE(node_->add_image(std::move(**image)).ok());
    }
    // Both ranks' images of a version; waits for its end.
    void checkpoint(Version version, Level level = Level::committed) {
        for (Rank rank : {0u, 1u}) {
            const auto slot = acquire(rank == 0 ? alice : bob, wanted(rank, mib, version));
            ASSERT_TRUE(slot.ok()) << slot.status().to_string();
            seal(*slot, version, rank);
        }
        const Status waited =
            world_->loop().run(node_->wait({"heat", version, roster_.incarnation}, Level::committed, in(60 * second)));
        EXPECT_EQ(waited.ok(), level == Level::committed) << waited.to_string();
        slots_->apply_retention();
    }
    Result<std::optional<LocalImage>> read(const std::string& path) {
        World world = world_->world();
        return world_->loop().run(read_image(world, path, never));
    }
    Nanos in(Nanos span) { return world_->loop().in(span); }
    std::vector<Version> held() {
        std::set<Version> versions;
        for (const auto& entry : slots_->pin_images(carol, "heat").images) versions.insert(entry.key.version);
        slots_->unpin(carol);
        return {versions.begin(), versions.end()};
    }

    test::TemporaryDirectory scratch, persistent;
    std::string directory_ = scratch / "images";
    Nanos version_wait_ = 600 * second;
    std::unique_ptr<RealWorld> world_;
    Roster roster_;
    std::unique_ptr<WorkerPool> workers_;
    std::unique_ptr<Node> node_;
    std::unique_ptr<Slots> slots_;
};

std::uint64_t allocated_bytes(const std::string& path) {
    struct stat about = {};
    return ::stat(path.c_str(), &about) == 0 ? static_cast<std::uint64_t>(about.st_blocks) * 512 : 0;
}

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
    }
    EXPECT_EQ(slots_->count(), 3u);  // two that she uses, and the one that somebody else will
}

TEST_F(SlotsTest, TwoStayWarmWhenNobodyCaptures) {
    begin();
    std::vector<control::Slot> many;
    for (int i = 0; i < 6; ++i) many.push_back(acquire(alice, wanted(0, mib)).value());
    for (const auto& slot : many) ASSERT_TRUE(slots_->release(alice, slot.path).ok());
    slots_->trim_idle(3600 * second);
    EXPECT_EQ(slots_->count(), 6u);
    slots_->trim_idle(0);
    EXPECT_EQ(slots_->count(), 2u);
    EXPECT_EQ(acquire(alice, wanted(0, mib))->path, many.back().path);
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
    EXPECT_TRUE(slots_->owns(alice, slot->path));
}

TEST_F(SlotsTest, ALostWritersSlotIsNeverHandedOn) {
    begin();
    const auto slot = acquire(alice, wanted(0, mib));
    ASSERT_EQ(slots_->disconnected(alice), std::vector<std::string>{slot->path});
    EXPECT_NE(acquire(bob, wanted(0, mib))->path, slot->path);
    slots_->discard(slot->path);
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
    slots_->unlink_unsealed();
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
