// RealWorld as a whole, and what it does where the system refuses what it would like: tried in processes of their own,
// under a seccomp filter that refuses it for real.
#include "world/real/world.hpp"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>

#include "world/real/test_world.hpp"

namespace cairn {
namespace {

using test::patience;

TEST(RealWorld, BundlesItsInterfaces) {
    auto made = RealWorld::create({});
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    World world = (*made)->world();
    EXPECT_EQ(&world.clock, &(*made)->loop());
    EXPECT_EQ(&world.storage, &(*made)->storage());
    EXPECT_TRUE(world.random.id());
}

TEST(RealWorld, WithoutNetworkEverythingIsUnavailable) {
    auto made = RealWorld::create({});
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    World world = (*made)->world();
    Loop& loop = (*made)->loop();
    EXPECT_EQ(world.network.self(), "");
    const Address nobody;
    EXPECT_EQ(loop.run(world.network.send(nobody, Bytes(), loop.in(patience))).code(), Code::unavailable);
    EXPECT_EQ(loop.run(world.network.send_payload(nobody, 1, Slice::of(Bytes(1)), loop.in(patience))).code(),
              Code::unavailable);
    EXPECT_EQ(world.network.post_payload(1, Slice::of(Bytes(1))).code(), Code::unavailable);
    EXPECT_EQ(loop.run(world.network.wait_payload(1, loop.in(patience))).code(), Code::unavailable);
    EXPECT_EQ(loop.run(world.network.inbox().receive(loop.in(millisecond))).code(), Code::deadline);
}

TEST(RealWorld, NetworkCanBeGivenLater) {
    auto made = RealWorld::create({});
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    NoNetwork other((*made)->loop());
    (*made)->use_network(other);
    EXPECT_EQ(&(*made)->world().network, &other);
}

// From here on these system calls fail with `error` in the calling process.
void refuse(std::initializer_list<long> calls, int error) {
    std::vector<sock_filter> program;
    program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
    for (const long call : calls) {
        program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1));
        program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)));
    }
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    const sock_fprog filter = {static_cast<unsigned short>(program.size()), program.data()};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
        std::exit(70);
}

// Exit codes of the children below; anything but 0 says which step failed.
[[noreturn]] void without_uring(const test::TemporaryDirectory& directory) {
    const std::string path = directory / "file";
    refuse({SYS_io_uring_setup}, EPERM);
    Result<std::unique_ptr<RealWorld>> strict = RealWorld::create({.storage = {.backend = IoBackend::uring}});
    if (strict.code() != Code::unsupported || strict.status().text().find("threads") == std::string::npos) std::exit(1);
    Result<std::unique_ptr<RealWorld>> world = RealWorld::create({});
    if (!world.ok()) std::exit(2);
    RealStorage& storage = (*world)->storage();
    if (storage.backend_name() != "threads" || storage.backend_reason().empty()) std::exit(3);
    Loop& loop = (*world)->loop();
    if (!loop.run(write_file(storage, path, to_bytes("text"), 0600, loop.in(patience))).ok()) std::exit(4);
    Result<Bytes> back = loop.run(read_file(storage, path, 100, loop.in(patience)));
    if (!back.ok() || *back != to_bytes("text")) std::exit(5);
    directory.remove();
    std::exit(0);
}

TEST(RealWorld, FallsBackToThreadsWhereIoUringIsRefused) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    test::TemporaryDirectory directory;
    EXPECT_EXIT(without_uring(directory), testing::ExitedWithCode(0), "");
}

// Ends with _Exit: leak checkers start a thread at exit, and there is none to be had.
[[noreturn]] void without_threads(const test::TemporaryDirectory& directory) {
    const std::string path = directory / "file";
    refuse({SYS_clone, SYS_clone3}, EAGAIN);
    Result<std::unique_ptr<RealWorld>> world = RealWorld::create({.storage = {.backend = IoBackend::threads}});
    if (!world.ok()) std::_Exit(1);
    Loop& loop = (*world)->loop();
    const Status status = loop.run(write_file((*world)->storage(), path, to_bytes("text"), 0600, loop.in(patience)));
    if (status.code() != Code::unavailable || status.text().find(path) == std::string::npos) std::_Exit(2);
    const Slice data = Slice::of(Bytes(200'000));
    if (loop.run((*world)->cpu().checksums(data, 65536)).size() != 4) std::_Exit(3);
    directory.remove();
    std::_Exit(0);
}

TEST(RealWorld, NoThreadToBeHadIsAnErrorNotAHang) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    test::TemporaryDirectory directory;
    EXPECT_EXIT(without_threads(directory), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace cairn
