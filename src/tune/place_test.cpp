#include "tune/place.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "world/real/test_world.hpp"

namespace cairn::tune {
namespace {

namespace fs = std::filesystem;

TEST(Place, ADirectoryGoesWithAllThatIsInIt) {
    const test::TemporaryDirectory parent;
    {
        Result<OwnDirectory> own = OwnDirectory::make(parent.path());
        ASSERT_TRUE(own.ok()) << own.status().to_string();
        std::ofstream(own->path() + "/data") << "x";
        fs::create_directory(own->path() + "/deeper");
        EXPECT_FALSE(fs::is_empty(parent.path()));
    }
    EXPECT_TRUE(fs::is_empty(parent.path()));
    EXPECT_EQ(OwnDirectory::make(parent / "missing").code(), Code::not_found);
}

TEST(Place, WhatAKilledProcessLeftIsRemovedAndWhatALivingOneHasIsNot) {
    const test::TemporaryDirectory parent;
    Result<OwnDirectory> own = OwnDirectory::make(parent.path());
    ASSERT_TRUE(own.ok());
    fs::create_directory(parent / "checkpoints");
    fs::create_directory(parent / ".cairn-tune-999999999-00000000@elsewhere");  // of another host
    const pid_t child = ::fork();
    if (child == 0) {
        Result<OwnDirectory> left = OwnDirectory::make(parent.path());
        std::ofstream(left->path() + "/data") << "x";
        ::_exit(0);  // as killed: nobody tidies up
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    const Result<std::vector<std::string>> removed = remove_leftovers(parent.path());
    ASSERT_TRUE(removed.ok()) << removed.status().to_string();
    ASSERT_EQ(removed->size(), 1u);
    EXPECT_NE(removed->front().find("-" + std::to_string(child) + "-"), std::string::npos);
    EXPECT_TRUE(fs::exists(own->path()));
    EXPECT_EQ(std::distance(fs::directory_iterator(parent.path()), {}), 3);
}

TEST(Place, ATenthOfTheFileSystemStaysFree) {
    const Room room{300, 1000};
    EXPECT_EQ(room_for(room, 2), 100u);
    EXPECT_TRUE(check_room("/there", room, 100, 2, "a run writes").ok());
    const Status full = check_room("/there", room, 101, 2, "a run writes");
    EXPECT_EQ(full.code(), Code::out_of_space);
    EXPECT_NE(full.text().find("/there: a run writes 101 B"), std::string::npos) << full.text();
    EXPECT_EQ(room_for({90, 1000}, 1), 0u);
}

// Whatever it finds, it says so and leaves nothing.
TEST(Place, DirectIsProbedAndLeavesNothing) {
    for (const std::string& below : {fs::temp_directory_path().string(), std::string("/dev/shm")}) {
        const test::TemporaryDirectory parent(below);
        const Result<DirectProbe> probe = probe_direct(parent.path());
        ASSERT_TRUE(probe.ok()) << probe.status().to_string();
        EXPECT_EQ(probe->direct == Direct::works, probe->text.empty());
        const bool in_memory = below == "/dev/shm";  // tmpfs is the page cache
        EXPECT_FALSE(in_memory && probe->direct == Direct::works);
        EXPECT_TRUE(fs::is_empty(parent.path()));
    }
}

// File systems that lie: each by one call that is not what it should be, on a file that is otherwise real.
struct Lying : DirectCalls {
    int open_error = 0, write_error = 0, read_error = 0;
    bool cached = false, wrong = false;
    int open(const std::string& path) const override {
        if (open_error != 0) return errno = open_error, -1;
        return ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
    }
    ssize_t write(int file, const void* data, std::size_t bytes) const override {
        if (write_error != 0) return errno = write_error, -1;
        return DirectCalls::write(file, data, bytes);
    }
    ssize_t read(int file, void* data, std::size_t bytes) const override {
        if (read_error != 0) return errno = read_error, -1;
        const ssize_t got = DirectCalls::read(file, data, bytes);
        if (wrong) static_cast<char*>(data)[bytes / 2] ^= 1;
        return got;
    }
    bool is_cached(int, std::size_t) const override { return cached; }
};

TEST(Place, AFileSystemThatLiesAboutDirectIsFoundOut) {
    const test::TemporaryDirectory parent;
    const auto probe = [&](const Lying& calls) {
        const Result<DirectProbe> found = probe_direct(parent.path(), calls);
        EXPECT_TRUE(found.ok()) << found.status().to_string();
        EXPECT_TRUE(fs::is_empty(parent.path()));
        return found.ok() ? found->direct : Direct::works;
    };
    Lying opens, writes, reads, caches, loses, fails;
    EXPECT_EQ(probe({}), Direct::works);
    opens.open_error = EINVAL;
    EXPECT_EQ(probe(opens), Direct::refused);
    writes.write_error = EINVAL;  // opens, and refuses to write
    EXPECT_EQ(probe(writes), Direct::refused);
    reads.read_error = EOPNOTSUPP;
    EXPECT_EQ(probe(reads), Direct::refused);
    caches.cached = true;
    EXPECT_EQ(probe(caches), Direct::cached);
    loses.wrong = true;
    EXPECT_EQ(probe(loses), Direct::wrong);
    fails.write_error = ENOSPC;  // no lie, an error
    EXPECT_EQ(probe_direct(parent.path(), fails).code(), Code::out_of_space);
    EXPECT_TRUE(fs::is_empty(parent.path()));
}

}  // namespace
}  // namespace cairn::tune
