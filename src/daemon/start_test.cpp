// cairnd's start: by many at once, after a kill, and what it takes from its starter and leaves behind.
#include <sys/stat.h>

#include <set>

#include "daemon/daemon_testing.hpp"

namespace cairn {
namespace {

using namespace cairn::test;

// Tries: CAIRN_TEST_STARTS; `make test` runs 200, `make test-long` 10,000.
int tries_wanted() {
    const char* text = std::getenv("CAIRN_TEST_STARTS");
    return text ? std::max(1, std::atoi(text)) : 20;
}

TEST(Start, TenAtOnceMakeOneDaemonEveryTime) {
    Home home;
    const int tries = tries_wanted();
    for (int i = 0; i < tries; ++i) {
        fs::remove_all(home.layout.root);
        std::vector<pid_t> starters;
        for (int n = 0; n < 10; ++n) starters.push_back(home.spawn());
        for (const pid_t starter : starters)
            ASSERT_EQ(Home::wait_exit(starter), 0) << "try " << i << ": " << home.errors();
        ASSERT_EQ(count_of(home.log(), " started "), 1u) << "try " << i << ":\n" << home.log();
        // A starter that found the lock taken may be back before the holder listens.
        ASSERT_TRUE(becomes_true([&] { return connect_to(home.layout).get() >= 0; }));
        Client client(home.layout);
        const pid_t pid = static_cast<pid_t>(client.hello().pid);
        EXPECT_EQ(pid, home.daemon_pid());
        ASSERT_EQ(send_signal(pid, SIGKILL), 0);
        ASSERT_TRUE(becomes_true([&] { return home.nobody_lives(); }))
            << "try " << i << ": a second daemon holds the lock";
    }
}

TEST(Start, ADaemonKilledIsFollowedByAnother) {
    Home home;
    ASSERT_EQ(home.start(), 0) << home.errors();
    const pid_t first = home.daemon_pid();
    send_signal(first, SIGKILL);
    ASSERT_TRUE(becomes_true([&] { return home.nobody_lives(); }));
    EXPECT_TRUE(fs::exists(home.layout.socket()));  // stale
    EXPECT_LT(connect_to(home.layout).get(), 0);
    ASSERT_EQ(home.start(), 0) << home.errors();
    Client client(home.layout);
    EXPECT_NE(static_cast<pid_t>(client.hello().pid), first);
}

TEST(Start, AnotherSpellingOfItsPathsIsTheSameDaemon) {
    Home home;
    ASSERT_EQ(home.start({"--scratch", home.scratch + "//", "--persistent", home.persistent + "/./"}), 0)
        << home.errors();
    const pid_t pid = home.daemon_pid();
    ASSERT_EQ(home.start(), 0) << home.errors();
    EXPECT_EQ(home.daemon_pid(), pid);
    Client client(home.layout);
    EXPECT_EQ(static_cast<pid_t>(client.hello().pid), pid);
    EXPECT_EQ(std::distance(fs::directory_iterator(home.scratch), {}), 1);
}

TEST(Start, LeavesNothingOfItsStarterBehind) {
    int leak[2];
    ASSERT_EQ(::pipe(leak), 0);  // inherited by cairnd, as mpirun's pipes are
    Home home;
    home.set("CAIRN_DAEMON_RESTART", "true");
    ASSERT_EQ(home.start(), 0) << home.errors();
    struct stat inherited = {};
    ASSERT_EQ(::fstat(leak[0], &inherited), 0);
    const std::string pipe_name = "pipe:[" + std::to_string(inherited.st_ino) + "]";
    const std::vector<pid_t> both = home.processes();
    ASSERT_EQ(both.size(), 2u);  // the daemon and its keeper
    for (const pid_t pid : both) {
        std::set<std::string> standard;
        for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd")) {
            std::error_code gone;
            const std::string target = fs::read_symlink(entry, gone).string();
            EXPECT_NE(target, pipe_name);
            const std::string number = entry.path().filename().string();
            if (number.size() == 1 && number < "3")
                standard.insert(target);
            else
                EXPECT_EQ(pid, home.daemon_pid()) << "the keeper has " << target;
        }
        EXPECT_EQ(standard, std::set<std::string>{"/dev/null"});
        EXPECT_NE(::getsid(pid), ::getsid(0));
        EXPECT_NE(::getsid(pid), pid);  // not a leader either: no terminal can become its own
        EXPECT_EQ(fs::read_symlink("/proc/" + std::to_string(pid) + "/cwd"), "/");
    }
    ::close(leak[0]);
    ::close(leak[1]);
}

// As the kernel has it, but for the two numbers that the C library keeps for its threads.
std::set<int> caught_signals(pid_t pid) {
    std::istringstream lines(read_text("/proc/" + std::to_string(pid) + "/status"));
    std::set<int> caught;
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with("SigCgt:")) continue;
        const std::uint64_t mask = std::stoull(line.substr(7), nullptr, 16);
        for (int number = 1; number <= 64; ++number)
            if ((mask >> (number - 1) & 1) != 0 && (number < 32 || number >= SIGRTMIN)) caught.insert(number);
    }
    return caught;
}

// A crash leaves a core and SIGTERM is what the daemon makes of it, although libraries of libfabric's providers have
// handlers of their own.
TEST(Start, CatchesNoSignalsButItsOwn) {
    for (const char* providers : {"tcp,ofi_rxm", "^none"}) {  // the second: all that there are
        Home home;
        home.set("FI_PROVIDER", providers);
        home.set("FI_PROVIDER_PATH", PROVIDER_FOLDER);
        ASSERT_EQ(home.start(), 0) << home.errors();
        EXPECT_EQ(caught_signals(home.daemon_pid()), (std::set<int>{SIGINT, SIGBUS, SIGTERM})) << providers;
    }
}

TEST(Start, SaysWhyItCanNot) {
    Home home;
    EXPECT_EQ(home.start({"--no-such-thing"}), 2);
    EXPECT_NE(home.errors().find("--no-such-thing"), std::string::npos) << home.errors();
    EXPECT_EQ(home.start({"--scratch", home.scratch + "/missing"}), 3);
    EXPECT_NE(home.errors().find(home.scratch + "/missing"), std::string::npos) << home.errors();
    EXPECT_EQ(home.start({"--node", "a/b"}), 2);
    home.set("CAIRN_FLUSH_WRITERS", "0");
    EXPECT_EQ(home.start(), 2);
    EXPECT_NE(home.errors().find("CAIRN_FLUSH_WRITERS"), std::string::npos) << home.errors();
    home.set("CAIRN_FLUSH_WRITERS", "1");
    home.set("CAIRN_NETWORK_PROVIDER", "no-such-provider");
    EXPECT_EQ(home.start(), 3);
    EXPECT_NE(home.errors().find("no-such-provider"), std::string::npos) << home.errors();
}

// A directory of somebody else, where root can make one; else something of ours that is no directory.
TEST(Start, RefusesADirectoryThatIsNotItsUsers) {
    Home home;
    if (::geteuid() == 0) {
        fs::create_directory(home.layout.root);
        ASSERT_EQ(::chown(home.layout.root.c_str(), 65534, 65534), 0);
    } else {
        fs::create_symlink("/tmp", home.layout.root);
    }
    EXPECT_EQ(home.start(), 3);
    EXPECT_NE(home.errors().find(home.layout.root), std::string::npos) << home.errors();
    EXPECT_NE(home.errors().find("permission"), std::string::npos) << home.errors();
    fs::remove_all(home.layout.root);
}

}  // namespace
}  // namespace cairn
