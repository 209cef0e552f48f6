// Mappings of slots: which page is there when.
#include "client/slot_maps.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

namespace cairn {
namespace {

constexpr std::uint64_t piece_bytes = 4 << 20;

class SlotMapsTest : public testing::Test {
  protected:
    std::string make(const char* name, std::uint64_t bytes) {
        const std::string path = directory_ + "/" + name;
        const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        EXPECT_EQ(::ftruncate(file, static_cast<off_t>(bytes)), 0);
        ::close(file);
        return path;
    }
    static std::uint64_t pages_in(const SlotMaps::Map& map) {
        std::vector<unsigned char> there(map.bytes / 4096);
        EXPECT_EQ(::mincore(map.base, map.bytes, there.data()), 0);
        std::uint64_t count = 0;
        for (const unsigned char each : there) count += each & 1u;
        return count;
    }
    void SetUp() override { ASSERT_NE(::mkdtemp(directory_.data()), nullptr); }
    void TearDown() override { std::filesystem::remove_all(directory_); }
    std::string directory_ = "/dev/shm/cairn-test-XXXXXX";  // as scratch
    SlotMaps maps_;
};

TEST_F(SlotMapsTest, WhatIsMappedAheadIsFilledPieceByPiece) {
    const std::string path = make("slot-1", 3 * piece_bytes);
    EXPECT_FALSE(maps_.populate_some());
    ASSERT_TRUE(maps_.map_ahead(path, 3 * piece_bytes).ok());
    EXPECT_EQ(maps_.count_of(3 * piece_bytes), 1u);
    EXPECT_EQ(maps_.count_of(3 * piece_bytes + 1), 0u);
    int turns = 0;
    while (turns <= 3 && maps_.populate_some()) ++turns;
    EXPECT_GE(turns, 1);
    EXPECT_LE(turns, 3);
    const auto mapped = maps_.map(path, 3 * piece_bytes);
    ASSERT_TRUE(mapped.ok());
    EXPECT_EQ((*mapped)->populated_bytes, 3 * piece_bytes);
    EXPECT_EQ(maps_.count_of(0), 1u);
}

TEST_F(SlotMapsTest, ACaptureThatComesSoonerDoesTheRest) {
    const std::string path = make("slot-1", 3 * piece_bytes);
    ASSERT_TRUE(maps_.map_ahead(path, 3 * piece_bytes).ok());
    EXPECT_TRUE(maps_.populate_some());
    const auto mapped = maps_.map(path, 3 * piece_bytes);
    ASSERT_TRUE(mapped.ok());
    EXPECT_EQ((*mapped)->populated_bytes, 3 * piece_bytes);
#ifdef MADV_POPULATE_WRITE
    EXPECT_EQ(pages_in(**mapped), 3 * piece_bytes / 4096);
#endif
    EXPECT_FALSE(maps_.populate_some());
}

// Nothing is written to what has no name any more: its memory was given back.
TEST_F(SlotMapsTest, WhatIsGivenBackWhileItIsFilledStaysEmpty) {
    const std::string path = make("slot-1", 3 * piece_bytes);
    ASSERT_TRUE(maps_.map_ahead(path, 3 * piece_bytes).ok());
    const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_EQ(::unlink(path.c_str()), 0);
    while (maps_.populate_some()) {
    }
    struct stat about = {};
    EXPECT_EQ(::fstat(file, &about), 0);
    EXPECT_EQ(about.st_blocks, 0);
    EXPECT_EQ(maps_.count_of(0), 0u);
    ::close(file);
}

// Of a file on a disk each page that is touched is written there, and once more by the capture.
TEST_F(SlotMapsTest, OnADiskNothingIsTouchedAhead) {
    const std::string on_tmpfs = directory_;
    directory_ = "/var/tmp/cairn-test-XXXXXX";
    ASSERT_NE(::mkdtemp(directory_.data()), nullptr);
    struct statfs where = {};
    ASSERT_EQ(::statfs(directory_.c_str(), &where), 0);
    ASSERT_TRUE(maps_.map_ahead(make("slot-1", piece_bytes), piece_bytes).ok());
    EXPECT_EQ(maps_.populate_some(), where.f_type == TMPFS_MAGIC);
    std::filesystem::remove_all(directory_);
    directory_ = on_tmpfs;
}

TEST_F(SlotMapsTest, ASlotThatWasGivenBackIsForgotten) {
    const std::string path = make("slot-1", piece_bytes);
    ASSERT_TRUE(maps_.map_ahead(path, piece_bytes).ok());
    ASSERT_EQ(::unlink(path.c_str()), 0);
    maps_.forget_gone();
    EXPECT_EQ(maps_.count_of(0), 0u);
    EXPECT_FALSE(maps_.populate_some());
    EXPECT_EQ(maps_.map_ahead(path, piece_bytes).code(), Code::not_found);
}

}  // namespace
}  // namespace cairn
