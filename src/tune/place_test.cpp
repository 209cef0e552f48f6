#include "tune/place.hpp"

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
    fs::create_directory(parent / ".cairn-tune-elsewhere-1-00000000");  // of another host
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
        if (below == "/dev/shm") EXPECT_NE(probe->direct, Direct::works) << "tmpfs is the page cache";
        EXPECT_TRUE(fs::is_empty(parent.path()));
    }
}

}  // namespace
}  // namespace cairn::tune
