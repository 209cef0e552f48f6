// Slots on real files, with a real node that flushes into a real directory: what the tests of slots share.
#pragma once

#include "daemon/record_testing.hpp"
#include "daemon/slots.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "copies/restore.hpp"
#include "copies/scratch.hpp"
#include "format/image.hpp"
#include "world/real/test_world.hpp"
#include "world/real/world.hpp"

namespace cairn {

namespace fs = std::filesystem;
constexpr std::uint64_t mib = 1 << 20;
constexpr Slots::Owner alice = 1, bob = 2, carol = 3;

// Another storage, but that writing one file, removing it, or listing one directory, does not come back.
class HangingStorage final : public Storage {
  public:
    HangingStorage(Storage& inner, Clock& clock) : inner_(inner), clock_(clock) {}
    std::string hang_at;

    Result<BufferPtr> allocate(std::uint64_t bytes) override { return inner_.allocate(bytes); }
    Task<Result<FilePtr>> open(std::string path, OpenOptions options, Nanos deadline) override { return inner_.open(path, options, deadline); }
    Task<Result<std::uint64_t>> write_some(FilePtr file, std::uint64_t offset, Slice data, Nanos deadline) override {
        if (file->path() != hang_at) {
            Result<std::uint64_t> wrote = co_await inner_.write_some(file, offset, data, deadline);
            co_return wrote;
        }
        co_await clock_.sleep(deadline - clock_.now());
        co_return deadline_passed("writing " + hang_at);
    }
    Task<Result<std::uint64_t>> read_some(FilePtr file, std::uint64_t offset, Slice into, Nanos deadline) override {
        return inner_.read_some(file, offset, into, deadline);
    }
    Task<Status> fsync(FilePtr file, Nanos deadline) override { return inner_.fsync(file, deadline); }
    Task<Result<std::uint64_t>> file_bytes(FilePtr file, Nanos deadline) override { return inner_.file_bytes(file, deadline); }
    Task<Status> resize(FilePtr file, std::uint64_t bytes, Nanos deadline) override { return inner_.resize(file, bytes, deadline); }
    Task<Status> make_directory(std::string path, std::uint32_t permissions, Nanos deadline) override {
        return inner_.make_directory(path, permissions, deadline);
    }
    Task<Status> fsync_directory(std::string path, Nanos deadline) override { return inner_.fsync_directory(path, deadline); }
    Task<Result<std::uint64_t>> free_bytes(std::string directory, Nanos deadline) override { return inner_.free_bytes(directory, deadline); }
    Task<Status> publish(std::string from, std::string to, Nanos deadline) override { return inner_.publish(from, to, deadline); }
    Task<Status> replace(std::string from, std::string to, Nanos deadline) override { return inner_.replace(from, to, deadline); }
    Task<Status> remove(std::string path, Nanos deadline) override {
        if (path != hang_at) {
            Status removed = co_await inner_.remove(path, deadline);
            co_return removed;
        }
        co_await clock_.sleep(deadline - clock_.now());
        co_return deadline_passed("removing " + hang_at);
    }
    Task<Status> remove_directory(std::string path, Nanos deadline) override { return inner_.remove_directory(path, deadline); }
    Task<Result<std::vector<DirectoryEntry>>> list(std::string path, Nanos deadline) override {
        if (path != hang_at) {
            Result<std::vector<DirectoryEntry>> entries = co_await inner_.list(path, deadline);
            co_return entries;
        }
        co_await clock_.sleep(deadline - clock_.now());
        co_return deadline_passed("listing " + hang_at);
    }
    Task<Result<BufferPtr>> map(std::string path, bool writable, Nanos deadline) override { return inner_.map(path, writable, deadline); }

  private:
    Storage& inner_;
    Clock& clock_;
};

class SlotsTest : public testing::Test {
  protected:
    void SetUp() override {
        fs::create_directory(scratch / "images");
        fs::create_directory(persistent / "files");
        RealWorldOptions options;
        options.storage.local = directory_;
        world_ = std::move(RealWorld::create(options)).value();
        roster_.name = "heat";
        roster_.incarnation = {1, 2};
        roster_.secret = {3, 4};
        roster_.epoch = 1;
        roster_.ranks = 2;
        roster_.files = 1;
        roster_.members = {{"n0", "", {0, 1}}};
        put_on_record(Layout{persistent / "files"}, roster_);
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
        flush.io_wait = io_wait_;
        flush.codec = codec_;
        flush.full_every = full_every_;
        workers_ = std::make_unique<WorkerPool>(world_->loop().remote(), WorkerPoolOptions());
        removers_ = std::make_unique<WorkerPool>(world_->loop().remote(), WorkerPoolOptions());
        const Layout layout{persistent_directory.empty() ? persistent / "files" : persistent_directory};
        const World world = world_->world();
        storage_ = std::make_unique<HangingStorage>(world.storage, world.clock);
        node_ = std::make_unique<Node>(World{world.clock, *storage_, world.network, world.random, world.cpu}, layout, flush);
        ASSERT_TRUE(node_->join(std::make_shared<const Roster>(roster_), 0).ok());
        slots_ = std::make_unique<Slots>(world_->loop(), *workers_, *node_, directory_, settings);
    }
    control::Acquire wanted(Rank rank, std::uint64_t bytes, Version version = 1, std::uint64_t wait_ms = 0) {
        return {{"heat", version, roster_.incarnation}, rank, bytes, wait_ms};
    }
    Result<control::Slot> acquire(Slots::Owner owner, const control::Acquire& request) {
        return world_->loop().run(slots_->acquire(owner, request));
    }
    // Writes a sealed image into a slot, as a client does.
    void write(const control::Slot& slot, Version version, Rank rank) {
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
            image_layout(encode_image_header(header).size(), header.image, header.block_bytes);
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
    }
    // What its client's word makes of it.
    void take(LocalImage image) {
        Slots::Lease lease = 0;
        for (const Slots::Owner owner : {alice, bob, carol}) lease = std::max(lease, slots_->lease_of(owner, image.path));
        ASSERT_TRUE(slots_->sealed(image, lease));
        ASSERT_TRUE(node_->add_image(std::move(image)).ok());
    }
    void seal(const control::Slot& slot, Version version, Rank rank) {
        write(slot, version, rank);
        auto image = read(slot.path);
        ASSERT_TRUE(image.ok() && image->has_value());
        take(std::move(**image));
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
    template <class Condition>
    bool eventually(Condition condition) {
        const Nanos limit = in(120 * second);
        while (!condition() && world_->loop().now() < limit) (void)world_->loop().run_until_done(short_sleep(world_->loop()), limit);
        return condition();
    }
    // What was given back a moment ago is free in a moment.
    bool trim_to(std::size_t count, Nanos age) {
        for (int looks = 0; looks < 100 && slots_->count() != count; ++looks) {
            world_->loop().run(short_sleep(world_->loop()));
            slots_->trim_idle(age);
        }
        return slots_->count() == count;
    }
    static Task<void> short_sleep(Clock& clock) { co_await clock.sleep(10 * millisecond); }
    Nanos in(Nanos span) { return world_->loop().in(span); }
    std::vector<Version> held() {
        std::set<Version> versions;
        for (const auto& entry : slots_->pin_images(carol, "heat").images) versions.insert(entry.key.version);
        slots_->unpin(carol);
        return {versions.begin(), versions.end()};
    }

    test::TemporaryDirectory scratch, persistent;
    std::string directory_ = scratch / "images";
    Nanos version_wait_ = 600 * second, io_wait_ = 60 * second;
    Codec codec_ = Codec::none;
    std::uint32_t full_every_ = 1;
    std::unique_ptr<RealWorld> world_;
    Roster roster_;
    std::unique_ptr<WorkerPool> workers_, removers_;
    std::unique_ptr<HangingStorage> storage_;
    std::unique_ptr<Node> node_;
    std::unique_ptr<Slots> slots_;
};

inline std::uint64_t allocated_bytes(const std::string& path) {
    struct stat about = {};
    return ::stat(path.c_str(), &about) == 0 ? static_cast<std::uint64_t>(about.st_blocks) * 512 : 0;
}

}  // namespace cairn
