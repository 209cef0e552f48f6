#include "daemon/door.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

namespace cairn {
namespace {

namespace fs = std::filesystem;

class DoorTest : public testing::Test {
  protected:
    void SetUp() override {
        std::string pattern = testing::TempDir() + "/cairn-door-XXXXXX";
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        room = scratch = pattern;
        layout = ScratchLayout::of(scratch, ::geteuid(), "n0", "/somewhere");
    }
    void TearDown() override { fs::remove_all(room); }  // whatever a test calls scratch
    Result<Door> open() { return Door::open(scratch, layout); }
    std::string room, scratch;
    ScratchLayout layout;
};

bool can_connect(const std::string& path) {
    Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const fs::path target(path);
    const Descriptor room(::open(target.parent_path().c_str(), O_PATH | O_CLOEXEC));
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    const std::string through = "/proc/self/fd/" + std::to_string(room.get()) + "/" + target.filename().string();
    through.copy(name.sun_path, sizeof name.sun_path - 1);
    return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0;
}

TEST_F(DoorTest, MakesAPrivateDirectoryWithItsRooms) {
    ASSERT_TRUE(open().ok());
    for (const std::string& path : {layout.root, layout.images(), layout.jobs()}) {
        struct stat about = {};
        ASSERT_EQ(::stat(path.c_str(), &about), 0) << path;
        EXPECT_EQ(about.st_mode & 0777, 0700u) << path;
    }
    ::chmod(layout.root.c_str(), 0755);
    ASSERT_TRUE(open().ok());
    struct stat about = {};
    ::stat(layout.root.c_str(), &about);
    EXPECT_EQ(about.st_mode & 0777, 0700u);
}

TEST_F(DoorTest, ScratchMustExist) {
    scratch += "/missing";
    layout = ScratchLayout::of(scratch, ::geteuid(), "n0", "/somewhere");
    const auto door = open();
    EXPECT_EQ(door.code(), Code::not_found);
    EXPECT_NE(door.status().text().find(scratch), std::string::npos);
}

TEST_F(DoorTest, ALinkIsNotFollowed) {
    fs::create_directory(scratch + "/elsewhere");
    fs::create_directory_symlink(scratch + "/elsewhere", layout.root);
    const auto door = open();
    EXPECT_EQ(door.code(), Code::permission);
    EXPECT_NE(door.status().text().find("symbolic link"), std::string::npos) << door.status().text();
    EXPECT_TRUE(fs::is_empty(scratch + "/elsewhere"));
}

TEST_F(DoorTest, AFileInItsPlaceIsRefused) {
    ASSERT_TRUE(open().ok());
    fs::remove_all(layout.images());
    { const Descriptor file(::open(layout.images().c_str(), O_CREAT | O_WRONLY, 0600)); }
    EXPECT_EQ(open().code(), Code::permission);
}

// Another user's directory can only be made by root; its owner is told apart by root, too.
TEST_F(DoorTest, AnotherUsersDirectoryIsRefusedByName) {
    ASSERT_TRUE(open().ok());
    const uid_t owner = ::geteuid() == 0 ? 65534 : 0;
    if (::geteuid() == 0) {
        ASSERT_EQ(::chown(layout.root.c_str(), owner, owner), 0);
    } else {
        scratch = "/", layout.root = "/root";  // root's own, everywhere
    }
    const auto door = open();
    EXPECT_EQ(door.code(), Code::permission);
    EXPECT_NE(door.status().text().find("uid " + std::to_string(owner)), std::string::npos) << door.status().text();
}

TEST_F(DoorTest, OneHolderAtATime) {
    auto first = open();
    ASSERT_TRUE(first.ok());
    EXPECT_TRUE(first->lock().value());
    auto second = open();
    ASSERT_TRUE(second.ok());
    EXPECT_FALSE(second->lock().value());
    { const Door gone = std::move(first).value(); }
    EXPECT_TRUE(second->lock().value());
}

TEST_F(DoorTest, TheLockGoesWithItsProcess) {
    int ready[2];
    ASSERT_EQ(::pipe2(ready, O_CLOEXEC), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        auto door = open();
        const char word = door.ok() && door->lock().value_or(false) ? 'y' : 'n';
        if (::write(ready[1], &word, 1) != 1) ::_exit(1);
        for (;;) ::pause();
    }
    char word = 0;
    ASSERT_EQ(::read(ready[0], &word, 1), 1);
    EXPECT_EQ(word, 'y');
    auto door = open();
    EXPECT_FALSE(door->lock().value());
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    EXPECT_TRUE(door->lock().value());
    ::close(ready[0]);
    ::close(ready[1]);
}

TEST_F(DoorTest, AStaleSocketIsReplaced) {
    {
        auto door = open();
        ASSERT_TRUE(door->lock().value());
        ASSERT_TRUE(door->listen().ok());
    }  // as after kill -9: the name is still there, nobody listens
    ASSERT_TRUE(fs::exists(layout.socket()));
    EXPECT_FALSE(can_connect(layout.socket()));
    auto door = open();
    ASSERT_TRUE(door->lock().value());
    const auto socket = door->listen();
    ASSERT_TRUE(socket.ok());
    EXPECT_TRUE(can_connect(layout.socket()));
    door->remove_socket();
    EXPECT_FALSE(fs::exists(layout.socket()));
}

TEST_F(DoorTest, APathLongerThanASocketsNameWorks) {
    scratch += "/" + std::string(200, 'd');
    fs::create_directory(scratch);
    layout = ScratchLayout::of(scratch, ::geteuid(), "n0", "/somewhere");
    auto door = open();
    ASSERT_TRUE(door->lock().value());
    const auto socket = door->listen();
    ASSERT_TRUE(socket.ok()) << socket.status().to_string();
    EXPECT_TRUE(can_connect(layout.socket()));
}

TEST_F(DoorTest, AWipedScratchIsNoticedAndTheNextSocketSpared) {
    auto old = open();
    ASSERT_TRUE(old->lock().value());
    ASSERT_TRUE(old->listen().ok());
    EXPECT_TRUE(old->still_ours());
    fs::remove_all(layout.root);
    EXPECT_FALSE(old->still_ours());
    auto next = open();
    ASSERT_TRUE(next->lock().value());
    const auto socket = next->listen();
    old->remove_socket();
    EXPECT_TRUE(can_connect(layout.socket()));
}

}  // namespace
}  // namespace cairn
