// A daemon outlives its jobs: what it knew of one that has ended goes, and what scratch and persistent say of it stays.
#include <thread>

#include "daemon/daemon_testing.hpp"

namespace cairn {
namespace {

using namespace cairn::test;

Roster job_of(const Home& home, std::uint32_t ranks, std::uint64_t epoch, const char* name = "heat") {
    Roster out = home.roster(ranks, {9, epoch});
    out.name = name;
    out.epoch = epoch;
    return out;
}

void begin_job(Home& home, Client& client, const Roster& job) {
    home.put_on_record(job);
    client.expect<control::Done>(control::Join{job, 0, 0});
}

TEST(Forget, JobsThatHaveEndedAndNoOthers) {
    Home home;
    home.set("CAIRN_DAEMON_IDLE_S", "1");
    ASSERT_EQ(home.start(), 0) << home.errors();
    Client present(home.layout);
    present.hello(true);
    begin_job(home, present, job_of(home, 1, 1));
    commit(present, job_of(home, 1, 1), 1);
    {
        Client half(home.layout);  // of two ranks one never seals
        half.hello(true);
        begin_job(home, half, job_of(home, 2, 2, "cold"));
        seal(half, job_of(home, 2, 2, "cold"), 2);
    }
    const auto known = [&] {
        std::set<Id128> incarnations;
        for (const auto& flush : present.expect<control::NodeStatus>(control::GetStatus{}).versions) incarnations.insert(flush.key.incarnation);
        return incarnations;
    };
    for (std::uint64_t epoch = 3; epoch <= 5; ++epoch) {
        Client client(home.layout);
        client.hello(true);
        begin_job(home, client, job_of(home, 1, epoch));
        commit(client, job_of(home, 1, epoch), 3);
        EXPECT_EQ(known().count({9, epoch}), 1u);
    }
    const std::set<Id128> left = {{9, 1}, {9, 2}};
    EXPECT_TRUE(becomes_true([&] { return known() == left; })) << home.log();

    // What is there is still there, for whoever asks or comes back.
    const VersionKey last{"heat", 3, {9, 5}};
    EXPECT_EQ(present.expect<control::State>(control::Wait{last, Level::committed, 0}).level, Level::committed);
    EXPECT_TRUE(fs::exists(home.layout.job(last.incarnation)));
    EXPECT_TRUE(fs::exists(Layout{home.persistent}.job_roster(last.incarnation)));
    begin_job(home, present, job_of(home, 1, 5));
    commit(present, job_of(home, 1, 5), 4);
    EXPECT_EQ(known().count({9, 5}), 1u);
    present.expect<control::Stopped>(control::Stop{100});
    EXPECT_TRUE(becomes_true([&] { return home.nobody_lives(); }));
    for (const Id128 ended : {Id128{9, 1}, Id128{9, 3}, Id128{9, 4}, Id128{9, 5}}) {
        EXPECT_FALSE(fs::exists(home.layout.job(ended))) << home.log();
        EXPECT_FALSE(fs::exists(Layout{home.persistent}.job(ended))) << home.log();
    }
    EXPECT_TRUE(fs::exists(Layout{home.persistent}.job_roster({9, 2})));  // it may be finished yet
}

// A rank that comes for a moment, between two looks of the daemon, begins its time anew.
TEST(Forget, AJobThatSomebodyHadForAMoment) {
    Home home;
    home.set("CAIRN_DAEMON_IDLE_S", "2");
    ASSERT_EQ(home.start(), 0) << home.errors();
    Client present(home.layout);
    present.hello(true);
    const Roster job = job_of(home, 1, 1);
    const auto come = [&] {
        Client client(home.layout);
        join(client, job);
        return home.log().find("job-forgotten") == std::string::npos;
    };
    home.put_on_record(job);
    for (int i = 0; i < 40; ++i) {
        ASSERT_TRUE(come()) << home.log();
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    EXPECT_TRUE(becomes_true([&] { return home.log().find("job-forgotten") != std::string::npos; })) << home.log();
}

// In milliseconds of its day.
std::int64_t time_of(const Home& home, const std::string& event) {
    const std::string log = home.log();
    const std::size_t line = log.rfind('\n', log.find(" " + event + " ")) + 1;
    int hour = 0, minute = 0, second = 0, ms = 0;
    EXPECT_EQ(std::sscanf(log.c_str() + line, "%*10cT%2d:%2d:%2d.%3d", &hour, &minute, &second, &ms), 4) << event << " is not in\n" << log;
    return ((hour * 60 + minute) * 60 + second) * 1000 + ms;
}

// Its client left long before; who looks a moment later at what was committed (retention) still finds it.
TEST(Forget, AJobOnlyWhenItsEndIsAsLongAgo) {
    Home home;
    home.set("CAIRN_DAEMON_IDLE_S", "1");
    ASSERT_EQ(home.start(), 0) << home.errors();
    Client present(home.layout);
    present.hello(true);
    const Roster job = job_of(home, 2, 1);
    {
        Client client(home.layout);
        client.hello(true);
        begin_job(home, client, job);
        seal(client, job, 1);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2500));
    EXPECT_EQ(home.log().find("job-forgotten"), std::string::npos) << home.log();
    seal(present, job, 1, 1);  // it has not joined
    ASSERT_TRUE(becomes_true([&] { return home.log().find("job-forgotten") != std::string::npos; })) << home.log();
    constexpr std::int64_t day = 24 * 3600 * 1000;
    EXPECT_GE((time_of(home, "job-forgotten") - time_of(home, "version-committed") + day) % day, 1000) << home.log();
}

// Which jobs have nothing left to finish only who has looked at scratch can tell.
TEST(Forget, NoJobAtTheEndOfADaemonThatHasNotSeenAllOfScratch) {
    Home home;
    ASSERT_EQ(home.start(), 0) << home.errors();
    const Roster job = job_of(home, 2, 2, "cold");
    {
        Client client(home.layout);
        client.hello(true);
        begin_job(home, client, job);
        seal(client, job, 1);  // of two ranks one never seals
    }
    home.kill_daemon();
    home.expect_unreadable();
    const Unreadable unreadable(home.layout.images() + "/slot-1");
    const pid_t pid = home.start_here();
    ASSERT_TRUE(becomes_true([&] { return home.errors().find("scratch-can-not-be-read") != std::string::npos; })) << home.errors();
    ASSERT_EQ(send_signal(pid, SIGTERM), 0);  // before it looks at the others
    Home::wait_exit(pid);
    EXPECT_EQ(home.errors().find("image-found"), std::string::npos) << home.errors();
    EXPECT_TRUE(fs::exists(home.layout.job(job.incarnation))) << home.errors();
    EXPECT_TRUE(fs::exists(Layout{home.persistent}.job_roster(job.incarnation)));
}

// Nor of what another release left there who can not read it.
TEST(Forget, NoJobThatASlotOfAnotherReleaseMayBeOf) {
    Home home;
    ASSERT_EQ(home.start(), 0) << home.errors();
    const Roster job = job_of(home, 2, 2, "cold");
    {
        Client client(home.layout);
        client.hello(true);
        begin_job(home, client, job);
    }
    home.kill_daemon();
    const std::string slot = home.layout.images() + "/another-1";
    std::ofstream(slot) << "of a newer Cairn";
    const pid_t pid = home.start_here();
    ASSERT_TRUE(becomes_true([&] { return home.errors().find("slot-of-another-release path=" + slot) != std::string::npos; })) << home.errors();
    ASSERT_EQ(send_signal(pid, SIGTERM), 0);
    Home::wait_exit(pid);
    for (const std::string& path : {slot, home.layout.job(job.incarnation), Layout{home.persistent}.job_roster(job.incarnation)})
        EXPECT_TRUE(fs::exists(path)) << path;
}

}  // namespace
}  // namespace cairn
