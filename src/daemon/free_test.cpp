// What a daemon leaves in scratch when it ends: nothing, where it ends in order and all is committed; else everything.
#include "daemon/daemon_testing.hpp"

namespace cairn {
namespace {

using namespace cairn::test;
constexpr std::uint64_t image_bytes = 200'000, slot_bytes = 1 << 20;

std::size_t images_in(const Home& home) {
    std::size_t count = 0;
    for (const auto& entry : fs::directory_iterator(home.layout.images())) count += read_text(entry.path()).starts_with("CRNSEALD");
    return count;
}

// Of a job with `ranks` ranks, whose rank 0 alone seals.
void seal(Home& home, Client& client, Version version, std::uint32_t ranks, bool commits) {
    const VersionKey key{"heat", version, {1, ranks + 1}};
    Roster roster = home.roster(ranks, key.incarnation);
    roster.epoch = ranks;
    home.put_on_record(roster);
    client.expect<control::Done>(control::Join{roster, 0, 0});
    const auto slot = client.expect<control::Slot>(control::Acquire{key, 0, slot_bytes, 60'000});
    write_image(slot, roster, version, 0, image_bytes);
    client.expect<control::Done>(control::Sealed{key, 0, slot.path});
    if (!commits) return;
    EXPECT_EQ(client.expect<control::State>(control::Wait{key, Level::committed, 60'000}).level, Level::committed) << home.log();
}

void commit_two(Home& home, Client& client) {
    client.hello(true);
    for (Version version : {1u, 2u}) seal(home, client, version, 1, true);
    EXPECT_EQ(images_in(home), 2u);
}

void stop(Home& home) {
    Client client(home.layout);
    client.hello();
    client.expect<control::Stopped>(control::Stop{1'000});
    EXPECT_TRUE(becomes_true([&] { return home.nobody_lives(); }));
}

TEST(FreeAtEnd, WhatIsCommittedGoesWhenItIsStopped) {
    for (const bool asked : {true, false}) {
        Home home;
        home.set("CAIRN_RETENTION_FREE_AT_END", asked ? "true" : "false");
        ASSERT_EQ(home.start(), 0) << home.errors();
        {
            Client client(home.layout);
            commit_two(home, client);
        }
        stop(home);
        EXPECT_EQ(images_in(home), asked ? 0u : 2u) << home.log();
        EXPECT_EQ(home.log().find("scratch-freed") != std::string::npos, asked) << home.log();
        EXPECT_TRUE(home.committed({"heat", 2, {1, 2}}));
    }
}

TEST(FreeAtEnd, WhatIsCommittedGoesAtAnIdleEnd) {
    Home home;
    home.set("CAIRN_DAEMON_IDLE_S", "1");
    const pid_t pid = home.start_here();
    {
        Client client(home.layout);
        commit_two(home, client);
    }
    EXPECT_EQ(Home::wait_exit(pid), 0);
    EXPECT_EQ(images_in(home), 0u) << home.errors();
}

TEST(FreeAtEnd, NothingGoesAfterASignal) {
    for (const int number : {SIGTERM, SIGINT, SIGKILL}) {
        Home home;
        const pid_t pid = home.start_here();
        Client client(home.layout);
        commit_two(home, client);
        ::kill(pid, number);
        Home::wait_exit(pid);
        EXPECT_EQ(images_in(home), 2u) << home.errors();
    }
}

TEST(FreeAtEnd, NothingGoesWhereAVersionIsNotCommitted) {
    Home home;
    ASSERT_EQ(home.start(), 0) << home.errors();
    {
        Client client(home.layout);
        commit_two(home, client);
        seal(home, client, 1, 2, false);  // rank 1 never does
    }
    stop(home);
    EXPECT_EQ(images_in(home), 3u) << home.log();
}

// The files went behind the daemon's back: its images are all that is left.
TEST(FreeAtEnd, WhatIsNotThereAnyMoreStays) {
    Home home;
    ASSERT_EQ(home.start(), 0) << home.errors();
    {
        Client client(home.layout);
        commit_two(home, client);
    }
    fs::remove(Layout{home.persistent}.manifest({"heat", 2, {1, 2}}));
    stop(home);
    EXPECT_EQ(images_in(home), 1u) << home.log();
    EXPECT_NE(home.log().find("images-stay name=heat version=2"), std::string::npos) << home.log();
}

TEST(FreeAtEnd, WhatSomebodyReadsStays) {
    Home home;
    ASSERT_EQ(home.start(), 0) << home.errors();
    Client client(home.layout);
    commit_two(home, client);
    EXPECT_EQ(client.expect<control::ImageList>(control::Images{"heat"}).images.size(), 2u);
    stop(home);
    EXPECT_EQ(images_in(home), 2u) << home.log();
}

}  // namespace
}  // namespace cairn
