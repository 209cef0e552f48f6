// WatchedFiles alone: a file that is written again is told from what it was, however coarse the stamps of its file system.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "cli/watch_files.hpp"

namespace cairn::cli {
namespace {

using namespace std::chrono_literals;

struct Folder {
    std::string path;
    Folder() {
        char name[] = "/tmp/cairn-watch-XXXXXX";
        path = ::mkdtemp(name);
    }
    ~Folder() { std::filesystem::remove_all(path); }
};

void write(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

Completeness one_file(std::chrono::nanoseconds tick) {
    Completeness completeness;
    completeness.files = 1;
    completeness.tick = tick;
    return completeness;
}

// The only set of the folder, once it is complete.
FileSet* complete_set(WatchedFiles& watched) {
    for (int i = 0; i < 30'000; ++i, std::this_thread::sleep_for(1ms)) {
        if (!watched.read_events().ok()) return nullptr;
        if (!watched.sets().empty() && watched.complete(watched.sets().begin()->second))
            return &watched.sets().begin()->second;
    }
    return nullptr;
}

// Writes versions 1 to `times`, and each a second time, with the same size, the moment that it is complete. How many of
// these looked as before.
int unseen_writes(const std::string& folder, std::chrono::nanoseconds tick, int times) {
    auto pattern = FilePattern::parse("m.{version}");
    auto watched = WatchedFiles::open(folder, *pattern, one_file(tick));
    EXPECT_TRUE(watched.ok()) << watched.status().text();
    int unseen = 0;
    for (int version = 1; version <= times; ++version) {
        const std::string name = "m." + std::to_string(version);
        write(folder + "/" + name, "first");
        const FileSet* const set = complete_set(*watched);
        if (!set) {
            ADD_FAILURE() << name << " is never complete";
            return times;
        }
        const FileMark before = set->files.at(name).mark;
        write(folder + "/" + name, "again");
        const auto after = watched->mark(name);
        if (after.ok() && *after == before) ++unseen;
        watched->close_until(static_cast<Version>(version));
    }
    return unseen;
}

TEST(WatchedFiles, what_is_written_after_a_file_was_complete_is_seen) {
    const Folder folder;
    EXPECT_EQ(unseen_writes(folder.path, 0ns, 20), 0);
}

TEST(WatchedFiles, also_where_the_clock_ticks_slowly) {
    const Folder folder;
    EXPECT_EQ(unseen_writes(folder.path, 150ms, 10), 0);
}

TEST(WatchedFiles, a_tick_is_read_from_the_stamp) {
    const auto tick = [](std::int64_t changed_ns) { return FileMark{0, 0, 0, 0, 0, changed_ns}.tick(); };
    EXPECT_EQ(tick(1'700'000'000'123'456'789), 10ms + 1ns);
    EXPECT_EQ(tick(1'700'000'000'123'000'000), 10ms + 1ms);
    EXPECT_EQ(tick(1'700'000'000'000'000'000), 10ms + 2s);
}

// A file system that stamps whole seconds: ext2 with inodes of 128 bytes has no room for more.
TEST(WatchedFiles, also_on_a_file_system_that_stamps_whole_seconds) {
    const Folder folder;
    const std::string image = folder.path + "/image", mounted = folder.path + "/mounted";
    std::filesystem::create_directory(mounted);
    const std::string make = "truncate -s 8M '" + image + "' && mkfs.ext2 -q -I 128 '" + image +
                             "' 2>&1 && mount -o loop '" + image + "' '" + mounted + "' 2>&1";
    if (::geteuid() != 0 || std::system(make.c_str()) != 0) {
        GTEST_SKIP() << "ext2 on a loop device needs root, mkfs.ext2 and mount";
    }
    EXPECT_EQ(unseen_writes(mounted, 0ns, 3), 0);
    const auto mark = FileMark::of(mounted + "/m.1");
    EXPECT_TRUE(mark.ok() && mark->changed_ns % 1'000'000'000 == 0) << "its stamps are not coarse";
    EXPECT_EQ(::umount2(mounted.c_str(), 0), 0);
}

}  // namespace
}  // namespace cairn::cli
