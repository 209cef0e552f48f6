#include "daemon/slot_files.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "format/image.hpp"
#include "world/real/test_world.hpp"

namespace cairn {
namespace {

class SlotFiles : public testing::Test {
  protected:
    static std::string text_in(const std::string& path) {
        std::ifstream file(path);
        std::stringstream text;
        text << file.rdbuf();
        return text.str();
    }
    static void put(const std::string& path, const std::string& text) { std::ofstream(path) << text; }
    static struct stat about(const std::string& path) {
        struct stat out = {};
        EXPECT_EQ(::stat(path.c_str(), &out), 0) << path;
        return out;
    }
    test::TemporaryDirectory scratch_;
    std::string path_ = scratch_ / "slot-1";
};

TEST_F(SlotFiles, HaveTheirSpaceBeforeTheyAreMapped) {
    ASSERT_TRUE(allocate_slot_file(path_, 1 << 20).ok());
    EXPECT_EQ(std::filesystem::file_size(path_), 1u << 20);
    EXPECT_GE(about(path_).st_blocks * 512, 1 << 20);
    EXPECT_EQ(about(path_).st_mode & 0777, 0600u);
    put(path_, "kept");
    ASSERT_TRUE(allocate_slot_file(path_, 2 << 20).ok());  // grows
    EXPECT_EQ(text_in(path_).substr(0, 4), "kept");
    EXPECT_EQ(allocate_slot_file(scratch_ / "missing/slot", 1).code(), Code::not_found);
}

// The file's policy, which a mapping of anybody's shows.
TEST_F(SlotFiles, LieOnTheMemoryThatTheirRankIsNearTo) {
    char directory[] = "/dev/shm/cairn-test-XXXXXX";
    ASSERT_NE(::mkdtemp(directory), nullptr);
    const std::string path = std::string(directory) + "/slot-1";
    ASSERT_TRUE(allocate_slot_file(path, 1 << 20, 0).ok());
    const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(file, 0);
    void* base = ::mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ASSERT_NE(base, MAP_FAILED);
    ::close(file);
    int policy = 0;
    unsigned long nodes[16] = {};
    if (::syscall(SYS_get_mempolicy, &policy, nodes, 1024, base, MPOL_F_ADDR) == 0) {
        EXPECT_EQ(policy, MPOL_PREFERRED);
        EXPECT_EQ(nodes[0], 1u);
    } else {
        EXPECT_EQ(errno, ENOSYS) << "a kernel without NUMA";
    }
    ::munmap(base, 1 << 20);
    EXPECT_TRUE(allocate_slot_file(path, 2 << 20, 1'000'000).ok()) << "no such node: no matter";
    std::filesystem::remove_all(directory);
}

// Whoever has one open, or mapped, keeps its size and nothing else.
TEST_F(SlotFiles, GiveTheirMemoryBackWhoeverHasThemMapped) {
    ASSERT_TRUE(allocate_slot_file(path_, 1 << 20).ok());
    const int file = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(file, 0);
    remove_free_slot_file(path_);
    struct stat left = {};
    EXPECT_EQ(::fstat(file, &left), 0);
    EXPECT_EQ(left.st_nlink, 0u);
    EXPECT_EQ(left.st_blocks, 0);
    EXPECT_EQ(left.st_size, 1 << 20);
    ::close(file);
    remove_free_slot_file(scratch_ / "missing");
}

TEST_F(SlotFiles, AreNoLinks) {
    put(scratch_ / "others", "theirs");
    std::filesystem::create_symlink(scratch_ / "others", path_);
    EXPECT_FALSE(allocate_slot_file(path_, 1 << 20).ok());
    EXPECT_FALSE(invalidate_slot_file(path_).ok());
    std::filesystem::remove(path_);
    std::filesystem::create_hard_link(scratch_ / "others", path_);
    EXPECT_EQ(invalidate_slot_file(path_).code(), Code::corrupt);
    EXPECT_EQ(text_in(scratch_ / "others"), "theirs");
}

TEST_F(SlotFiles, AreInvalidBeforeTheyAreHandedOut) {
    ASSERT_TRUE(allocate_slot_file(path_, 64 << 10).ok());
    std::string sealed = text_in(path_);
    image_seal(reinterpret_cast<std::byte*>(sealed.data()));
    sealed.replace(image_checksummed_offset, 8, "CRNCSUMD");
    sealed[20'000] = 'x';
    put(path_, sealed);
    ASSERT_TRUE(invalidate_slot_file(path_).ok());
    const std::string left = text_in(path_);
    EXPECT_FALSE(image_is_sealed(reinterpret_cast<const std::byte*>(left.data())));
    EXPECT_EQ(left.substr(image_checksummed_offset, 8), std::string(8, '\0'));
    EXPECT_EQ(left[20'000], 'x');  // what nobody will read is not written over
}

TEST_F(SlotFiles, ThatAreNotThereNeedNotBeRemoved) {
    put(path_, "");
    EXPECT_TRUE(remove_slot_file(path_).ok());
    EXPECT_FALSE(std::filesystem::exists(path_));
    EXPECT_TRUE(remove_slot_file(path_).ok());
    EXPECT_FALSE(remove_slot_file(scratch_.path()).ok());  // a directory
}

TEST_F(SlotFiles, LoseTheirNamesBeforeTheirMemory) {
    std::vector<std::function<void()>> later;
    const auto keep = [&](std::function<void()> action) { later.push_back(std::move(action)); };
    put(path_, "x");
    const int file = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    EXPECT_TRUE(remove_slot_name(path_, keep).ok());
    EXPECT_FALSE(std::filesystem::exists(path_));
    ASSERT_EQ(later.size(), 1u);
    struct stat held = {};
    const auto is_held = [&] {  // by somebody else than this test
        for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
            struct stat about = {};
            const int number = std::stoi(each.path().filename());
            if (number != file && ::fstat(number, &about) == 0 && about.st_dev == held.st_dev && about.st_ino == held.st_ino) return true;
        }
        return false;
    };
    ASSERT_EQ(::fstat(file, &held), 0);
    EXPECT_TRUE(is_held());
    later[0]();
    EXPECT_FALSE(is_held());
    ::close(file);
    EXPECT_TRUE(remove_slot_name(path_, keep).ok());               // is not there
    EXPECT_FALSE(remove_slot_name(scratch_.path(), keep).ok());  // a directory
}

TEST_F(SlotFiles, SmallOnesAreWrittenWholeAndPrivately) {
    const std::string note = scratch_ / "note";
    put(note, "older, and longer");
    ASSERT_TRUE(write_private_file(note, to_bytes("new")).ok());
    EXPECT_EQ(text_in(note), "new");
    EXPECT_EQ(about(note).st_mode & 0777, 0600u);
    std::filesystem::create_directory(scratch_ / "folder");
    EXPECT_FALSE(write_private_file(scratch_ / "folder", to_bytes("new")).ok());
}

// What this process is writing at this moment in another thread stays.
TEST_F(SlotFiles, WhatADeadDaemonWasWritingGoes) {
    std::filesystem::create_directory(scratch_ / "folder");
    ASSERT_FALSE(write_private_file(scratch_ / "folder", to_bytes("own")).ok());  // leaves its temporary: it could not be renamed
    put(scratch_ / "note.new-1-1", "half");
    put(scratch_ / "note.new", "of an older release");
    put(scratch_ / "note", "kept");
    remove_temporaries(scratch_.path());
    std::vector<std::string> left;
    for (const auto& entry : std::filesystem::directory_iterator(scratch_.path())) left.push_back(entry.path().filename().string());
    EXPECT_THAT(left, testing::UnorderedElementsAre("folder", "note", testing::StartsWith("folder.new-")));
    remove_temporaries(scratch_ / "missing");
}

// A restart may be at work with those that are new.
TEST_F(SlotFiles, WhatAKilledRestartLeftGoesWhenItIsOld) {
    for (const char* const name : {"old", "new"}) put(scratch_ / name, "runs");
    std::filesystem::create_directory(scratch_ / "folder");
    for (const char* const name : {"old", "folder"})
        std::filesystem::last_write_time(scratch_ / name, std::filesystem::file_time_type::clock::now() - std::chrono::minutes(2));
    remove_left(scratch_.path(), std::chrono::minutes(1));
    std::vector<std::string> left;
    for (const auto& entry : std::filesystem::directory_iterator(scratch_.path())) left.push_back(entry.path().filename().string());
    EXPECT_THAT(left, testing::UnorderedElementsAre("folder", "new"));
    remove_left(scratch_ / "missing", std::chrono::minutes(1));
}

}  // namespace
}  // namespace cairn
