// What a daemon leaves in scratch when it ends: nothing, where it ends in order and all is committed; else everything.
#include "daemon/daemon_testing.hpp"

namespace cairn {
namespace {

using namespace cairn::test;

std::size_t images_in(const Home& home) {
    std::size_t count = 0;
    for (const auto& entry : fs::directory_iterator(home.layout.images())) count += read_text(entry.path()).starts_with("CRNSEALD");
    return count;
}

Roster job_of_ranks(const Home& home, std::uint32_t ranks) {
    Roster job = home.roster(ranks, {1, ranks + 1});
    job.epoch = ranks;
    return job;
}

void commit_two(Home& home, Client& client) {
    join(client, job_of_ranks(home, 1));
    for (Version version : {1u, 2u}) commit(client, job_of_ranks(home, 1), version);
    EXPECT_EQ(images_in(home), 2u);
}

void stop_daemon(Home& home) {
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
        stop_daemon(home);
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
        send_signal(pid, number);
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
        const Roster half = job_of_ranks(home, 2);
        home.put_on_record(half);
        client.expect<control::Done>(control::Join{half, 0, 0});
        seal(client, half, 1);  // rank 1 never does
    }
    stop_daemon(home);
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
    stop_daemon(home);
    EXPECT_EQ(images_in(home), 1u) << home.log();
    EXPECT_NE(home.log().find("images-stay name=heat version=2"), std::string::npos) << home.log();
}

TEST(FreeAtEnd, WhatCanNotBeRemovedIsNotSaidToBeFreed) {
    Home home;
    ASSERT_EQ(home.start(), 0) << home.errors();
    {
        Client client(home.layout);
        join(client, job_of_ranks(home, 1));
        const control::Slot first = commit(client, job_of_ranks(home, 1), 1);
        commit(client, job_of_ranks(home, 1), 2);
        fs::remove(first.path);
        fs::create_directory(first.path);
    }
    stop_daemon(home);
    EXPECT_NE(home.log().find("slots-stay count=1 bytes=1048576 "), std::string::npos) << home.log();
    EXPECT_NE(home.log().find("scratch-freed bytes=1048576\n"), std::string::npos) << home.log();
}

TEST(FreeAtEnd, WhatSomebodyReadsStays) {
    Home home;
    ASSERT_EQ(home.start(), 0) << home.errors();
    Client client(home.layout);
    commit_two(home, client);
    EXPECT_EQ(client.expect<control::ImageList>(control::Images{"heat"}).images.size(), 2u);
    stop_daemon(home);
    EXPECT_EQ(images_in(home), 2u) << home.log();
}

}  // namespace
}  // namespace cairn
