// The keeper: daemons that are killed for real and come back, and those that must not.
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>

#include "daemon/daemon_testing.hpp"

namespace cairn {
namespace {

using namespace cairn::test;
using testing::HasSubstr;
using testing::Not;

std::string about(pid_t pid, const std::string& file) { return read_text("/proc/" + std::to_string(pid) + "/" + file); }

// What follows `word` in the line that begins with it, of /proc/<pid>/<file>; "0" where there is none.
std::string text_of(pid_t pid, const std::string& file, const std::string& word) {
    std::istringstream lines(about(pid, file));
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with(word)) return line.substr(word.size());
    return "0";
}
std::uint64_t number_of(pid_t pid, const std::string& file, const std::string& word) { return std::stoull(text_of(pid, file, word)); }

// A home whose daemon has a keeper.
class Keeper : public testing::Test {
  protected:
    Keeper() { home.set("CAIRN_DAEMON_RESTART", "true"); }

    void start() {
        ASSERT_EQ(home.start(), 0) << home.errors();
        daemon = home.daemon_pid();
        keeper = static_cast<pid_t>(number_of(daemon, "status", "PPid:"));
        ASSERT_EQ(about(keeper, "comm"), "cairnd-keeper\n");
    }
    // kill -9, and until another one answers.
    void kill_and_await_next() {
        const pid_t dead = daemon;
        ASSERT_EQ(send_signal(dead, SIGKILL), 0);
        ASSERT_TRUE(becomes_true([&] { return home.daemon_pid() != dead && Client(home.layout).connected(); })) << home.log();
        Client client(home.layout);
        daemon = static_cast<pid_t>(client.hello().pid);
        EXPECT_NE(daemon, dead);
        EXPECT_EQ(daemon, home.daemon_pid());
    }
    // Neither daemon nor keeper is left, and no daemon has come between.
    void await_end() {
        ASSERT_TRUE(becomes_true([&] { return home.processes().empty(); })) << home.log();
        EXPECT_TRUE(home.nobody_lives());
    }
    // So that a stop takes as long as it may: rank 1 of 2 never seals.
    void seal_half(Client& client, Version version = 1) {
        join(client, home.roster(2));
        seal(client, home.roster(2), version);
    }

    Home home;
    pid_t daemon = 0, keeper = 0;
};

TEST_F(Keeper, BringsAKilledDaemonBack) {
    start();
    kill_and_await_next();
    EXPECT_EQ(static_cast<pid_t>(number_of(daemon, "status", "PPid:")), keeper);
    EXPECT_EQ(about(daemon, "comm"), "cairnd\n");
    EXPECT_EQ(home.processes().size(), 2u);
    EXPECT_THAT(home.log(), HasSubstr("by=SIGKILL"));
    EXPECT_THAT(home.log(), HasSubstr(" started version="));
}

// The new one finds what was sealed, and commits it, without any client.
TEST_F(Keeper, NothingSealedIsLost) {
    start();
    {
        Client client(home.layout);
        seal_half(client);
        seal_untold(client, home.roster(2), 1, 1);
        kill_and_await_next();
    }
    EXPECT_TRUE(becomes_true([&] { return home.committed({"heat", 1, {1, 2}}); })) << home.log();
}

TEST_F(Keeper, AStoppedDaemonStaysAway) {
    start();
    {
        Client client(home.layout);
        client.hello();
        client.expect<control::Stopped>(control::Stop{1000});
    }
    await_end();
    start();
    ASSERT_EQ(send_signal(daemon, SIGTERM), 0);
    await_end();
    home.set("CAIRN_DAEMON_IDLE_S", "1");
    start();
    await_end();
    EXPECT_THAT(home.log(), HasSubstr("why=idle"));
    EXPECT_THAT(home.log(), Not(HasSubstr("daemon-died")));
}

// As batch systems do: SIGTERM, and some time later SIGKILL.
TEST_F(Keeper, ADaemonKilledWhileItStopsStaysAway) {
    home.set("CAIRN_DAEMON_STOP_WAIT_MS", "3600000");
    start();
    Client client(home.layout);
    seal_half(client);
    ASSERT_EQ(send_signal(daemon, SIGTERM), 0);
    ASSERT_TRUE(becomes_true([&] { return home.log().find("stopping") != std::string::npos; }));
    ASSERT_EQ(send_signal(daemon, SIGKILL), 0);
    await_end();
    EXPECT_EQ(count_of(home.log(), " started "), 1u) << home.log();
}

TEST_F(Keeper, TakesItsDaemonAlong) {
    start();
    ASSERT_EQ(send_signal(keeper, SIGTERM), 0);
    await_end();
    EXPECT_THAT(home.log(), HasSubstr("why=\"its keeper was told to end\""));
    EXPECT_THAT(home.log(), HasSubstr(" ended "));
    EXPECT_FALSE(fs::exists(home.layout.socket()));
}

// SIGTERM to every process of a job, in either order: for the daemon that is one SIGTERM, not the second one that ends it at once.
TEST_F(Keeper, ToldTogetherWithItsDaemonItDoesNotHurryIt) {
    home.set("CAIRN_DAEMON_STOP_WAIT_MS", "3600000");
    for (const bool keeper_first : {false, true}) {
        start();
        Client client(home.layout);
        seal_half(client, keeper_first ? 2 : 1);
        ASSERT_EQ(send_signal(keeper_first ? keeper : daemon, SIGTERM), 0);
        const std::size_t stops = keeper_first ? 2 : 1;
        ASSERT_TRUE(becomes_true([&] { return count_of(home.log(), " stopping ") == stops; }));
        ASSERT_EQ(send_signal(keeper_first ? daemon : keeper, SIGTERM), 0);
        client.expect<control::NodeStatus>(control::GetStatus{});  // it is still at it
        const auto waits_for_it = [&] { return (std::stoull(text_of(keeper, "status", "ShdPnd:"), nullptr, 16) >> (SIGTERM - 1) & 1) != 0; };
        ASSERT_TRUE(becomes_true([&] { return !waits_for_it(); }));  // or the two become one
        ASSERT_EQ(send_signal(keeper, SIGTERM), 0);                     // a second one for the keeper is one for the daemon
        await_end();
        EXPECT_EQ(count_of(home.log(), " stopping "), stops) << home.log();
        EXPECT_EQ(count_of(home.log(), "ended-at-once"), stops) << home.log();
    }
}

// What keeps it from starting may pass: here something else lies where its images were.
TEST_F(Keeper, TriesAgainWhenTheNextOneCanNotStart) {
    start();
    const pid_t dead = daemon;
    const std::string images = home.layout.images(), aside = home.layout.root + "/aside";
    fs::rename(images, aside);
    std::ofstream(images) << "in the way\n";
    ASSERT_EQ(send_signal(daemon, SIGKILL), 0);
    ASSERT_TRUE(becomes_true([&] { return home.log().find("by=\"exit code 3\"") != std::string::npos; })) << home.log();
    fs::remove(images);
    fs::rename(aside, images);
    EXPECT_TRUE(becomes_true([&] { return home.daemon_pid() != dead && Client(home.layout).connected(); })) << home.log();
}

TEST_F(Keeper, WaitsLongerFromDeathToDeath) {
    start();
    for (int death = 0; death < 3; ++death) kill_and_await_next();
    std::vector<std::string> pauses;
    const std::string log = home.log(), then = "then=\"started again in ";
    for (std::size_t at = log.find(then); at != std::string::npos; at = log.find(then, at + 1))
        pauses.push_back(log.substr(at + then.size(), log.find('"', at + then.size()) - at - then.size()));
    EXPECT_EQ(pauses, (std::vector<std::string>{"0 s", "1 s", "2 s"})) << log;
    // Told to end in the pause before the next one, 4 s: none comes.
    ASSERT_EQ(send_signal(daemon, SIGKILL), 0);
    ASSERT_TRUE(becomes_true([&] { return home.log().find("again in 4 s") != std::string::npos; })) << home.log();
    ASSERT_EQ(send_signal(keeper, SIGINT), 0);
    await_end();
    EXPECT_EQ(count_of(home.log(), " started version="), 4u) << home.log();
}

TEST_F(Keeper, AnotherDaemonTakesOverInThePause) {
    start();
    kill_and_await_next();
    ASSERT_EQ(send_signal(daemon, SIGKILL), 0);  // a pause of 1 s
    ASSERT_TRUE(becomes_true([&] { return home.nobody_lives(); }));
    start();  // or the keeper's own, where this machine is slow: then that one stays
    EXPECT_TRUE(becomes_true([&] { return home.processes().size() == 2; })) << home.log();
    EXPECT_THAT(home.processes(), testing::UnorderedElementsAre(keeper, home.daemon_pid()));
    Client client(home.layout);
    EXPECT_EQ(static_cast<pid_t>(client.hello().pid), home.daemon_pid());
}

TEST_F(Keeper, WhoDoesNotStartHasNone) {
    EXPECT_EQ(home.start({"--scratch", home.scratch + "/missing"}), 3);
    await_end();
    start();
    ASSERT_EQ(home.start(), 0) << home.errors();  // there is one already
    EXPECT_TRUE(becomes_true([&] { return home.processes().size() == 2; }));
    EXPECT_EQ(home.daemon_pid(), daemon);
}

TEST_F(Keeper, InTheForegroundThereIsNone) {
    const pid_t pid = home.start_here();
    EXPECT_EQ(home.processes(), std::vector<pid_t>{pid});
}

// What it takes from the application's node: its own memory, not that of the program's file, which others map, too.
TEST_F(Keeper, IsSmall) {
    start();
    EXPECT_EQ(number_of(keeper, "status", "Threads:"), 1u);
#ifndef __SANITIZE_ADDRESS__
    EXPECT_LT(number_of(keeper, "smaps_rollup", "Private_Dirty:"), 1024u) << about(keeper, "smaps_rollup");
#endif
}

}  // namespace
}  // namespace cairn
