// Images whose job nothing here tells of wait for somebody who does; one that can not be read then is read as soon as it can.
#include "daemon/daemon_testing.hpp"

namespace cairn {
namespace {

using namespace cairn::test;

TEST(Orphans, OneThatCanNotBeReadWhenItsJobIsToldOfIsFlushedLater) {
    Home home;
    home.expect_unreadable();
    ASSERT_EQ(home.start(), 0) << home.errors();
    const Roster roster = home.roster(1);
    const VersionKey key{"heat", 1, roster.incarnation};
    std::string path;
    {
        Client client(home.layout);
        join(client, roster);
        path = seal_untold(client, roster, 1).path;
        home.kill_daemon();  // before it is told
    }
    const Layout layout{home.persistent};
    fs::remove_all(layout.job(roster.incarnation));
    fs::remove(home.layout.job(roster.incarnation));
    ASSERT_EQ(home.start(), 0) << home.errors();
    ASSERT_TRUE(becomes_true([&] { return home.log().find("image-can-not-be-flushed") != std::string::npos; })) << home.log();
    Unreadable unreadable(path);
    Client client(home.layout);
    join(client, roster);
    EXPECT_FALSE(home.committed(key));
    unreadable.end();
    EXPECT_TRUE(becomes_true([&] { return home.committed(key); })) << home.log();
}

// Whoever starts a daemon for what a killed one has left, and stops it at once, means that to be finished.
TEST(Orphans, AStopWaitsUntilScratchIsKnown) {
    Home home;
    ASSERT_EQ(home.start(), 0) << home.errors();
    const Roster roster = home.roster(1);
    const VersionKey key{"heat", 1, roster.incarnation};
    {
        Client client(home.layout);
        join(client, roster);
        seal_untold(client, roster, 1);
        home.kill_daemon();  // before it is told
    }
    for (int i = 0; i < 2000; ++i) std::ofstream(home.layout.images() + "/slot-" + std::to_string(i)) << "nothing";  // to be looked at, too
    ASSERT_EQ(home.start(), 0) << home.errors();
    Client client(home.layout);
    client.hello();
    EXPECT_TRUE(client.expect<control::Stopped>(control::Stop{60'000}).unfinished.empty()) << home.log();
    EXPECT_TRUE(home.committed(key)) << home.log();
}

}  // namespace
}  // namespace cairn
