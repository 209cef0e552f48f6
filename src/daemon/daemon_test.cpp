// cairnd as processes: killed, idle, told to stop, talked nonsense to. How it starts is in start_test.cpp.
#include <sys/stat.h>

#include <set>

#include "daemon/daemon_testing.hpp"
#include "catalog/removal.hpp"
#include "format/frame.hpp"
#include "world/real/world.hpp"

namespace cairn {
namespace {

using namespace cairn::test;

TEST(End, WhenIdleAndNotBefore) {
    Home home;
    home.set("CAIRN_DAEMON_IDLE_S", "1");
    const pid_t pid = home.start_here();
    {
        Client application(home.layout);
        application.hello(true);
        std::this_thread::sleep_for(std::chrono::milliseconds(2500));
        EXPECT_EQ(application.expect<control::NodeStatus>(control::GetStatus{}).sessions, 1u);
    }
    EXPECT_EQ(Home::wait_exit(pid), 0);
    EXPECT_FALSE(fs::exists(home.layout.socket()));
    EXPECT_TRUE(home.nobody_lives());
}

// rank 1 never seals, so that the version can not be finished.
void seal_half(Home& home, Client& client) {
    join(client, home.roster(2));
    seal(client, home.roster(2), 1);
}

TEST(End, SigtermFinishesAndEndsWithZero) {
    Home home;
    const pid_t pid = home.start_here();
    Client client(home.layout);
    client.hello(true);
    send_signal(pid, SIGHUP);
    client.expect<control::NodeStatus>(control::GetStatus{});  // which it ignores
    send_signal(pid, SIGTERM);
    EXPECT_EQ(Home::wait_exit(pid), 0);
    EXPECT_TRUE(client.ended());
    EXPECT_FALSE(fs::exists(home.layout.socket()));
}

TEST(End, SigtermSaysWhatIsUnfinished) {
    Home home;
    home.set("CAIRN_DAEMON_STOP_WAIT_MS", "200");
    const pid_t pid = home.start_here();
    Client client(home.layout);
    seal_half(home, client);
    send_signal(pid, SIGTERM);
    EXPECT_EQ(Home::wait_exit(pid), 1);
    EXPECT_NE(home.errors().find("unfinished name=heat version=1"), std::string::npos) << home.errors();
}

TEST(End, ASecondSigtermEndsAtOnce) {
    Home home;
    home.set("CAIRN_DAEMON_STOP_WAIT_MS", "3600000");
    const pid_t pid = home.start_here();
    Client client(home.layout);
    seal_half(home, client);
    send_signal(pid, SIGTERM);
    ASSERT_TRUE(becomes_true([&] { return home.errors().find("stopping") != std::string::npos; }));
    const auto refused = client.ask(control::Acquire{{"heat", 2, {1, 2}}, 0, slot_bytes, 0});
    EXPECT_EQ(std::get<control::Failed>(*refused).code, Code::unavailable);
    send_signal(pid, SIGTERM);
    EXPECT_EQ(Home::wait_exit(pid), 4);
    EXPECT_FALSE(fs::exists(home.layout.socket()));
}

TEST(End, StopAnswersWithWhatIsUnfinished) {
    Home home;
    ASSERT_EQ(home.start(), 0) << home.errors();
    Client client(home.layout);
    seal_half(home, client);
    const auto stopped = client.expect<control::Stopped>(control::Stop{100});
    ASSERT_EQ(stopped.unfinished.size(), 1u);
    EXPECT_EQ(stopped.unfinished[0], (VersionKey{"heat", 1, {1, 2}}));
    EXPECT_TRUE(client.ended());
    EXPECT_TRUE(becomes_true([&] { return home.nobody_lives(); }));
}

// The second one finds nothing to remove, and would end the process in the middle of what the first one removes.
TEST(End, WhoeverAsksSecondDoesNotCutTheFirstOnesRemovalsShort) {
    Home home;
    home.set("LD_PRELOAD", SLOW_REMOVAL);
    home.set("ASAN_OPTIONS", "verify_asan_link_order=0");
    const pid_t pid = home.start_here();
    Client client(home.layout), first(home.layout), second(home.layout);
    join(client, home.roster(1));
    const auto slot = client.expect<control::Slot>(control::Acquire{{"heat", 1, {1, 2}}, 0, slot_bytes, 60'000});
    for (Client* each : {&first, &second}) each->hello();
    for (Client* each : {&first, &second}) each->send_request(control::Stop{1'000});
    for (Client* each : {&first, &second}) {
        const auto answer = each->receive();
        EXPECT_TRUE(answer.ok() && std::holds_alternative<control::Stopped>(*answer));
    }
    EXPECT_EQ(Home::wait_exit(pid), 0) << home.errors();
    EXPECT_FALSE(fs::exists(slot.path)) << home.errors();
}

TEST(End, AWipedScratchEndsItAndSparesTheNextOne) {
    Home home;
    const pid_t pid = home.start_here();
    fs::remove_all(home.layout.root);
    const int next = home.start();
    EXPECT_EQ(next, 0) << home.errors();
    EXPECT_EQ(Home::wait_exit(pid), 0);
    EXPECT_GE(connect_to(home.layout).get(), 0);
}

// ---- the protocol ----

TEST(Protocol, NonsenseEndsItsConnectionOnly) {
    Home home;
    ASSERT_EQ(home.start(), 0) << home.errors();
    Client good(home.layout);
    good.hello();
    Bytes huge(control_header_bytes), garbage(control_header_bytes + 64, std::byte{0x5A});
    put_u32(huge.data(), control_payload_bytes_max + 1);
    put_u32(garbage.data(), 64);
    const Bytes early = encode_control(1, control::Request(control::GetStatus{}));
    for (const Bytes& nonsense : {huge, garbage, early, encode_control(1, control::Answer(control::Done{}))}) {
        Client bad(home.layout);
        ASSERT_TRUE(bad.connected());
        EXPECT_TRUE(bad.send(nonsense));
        EXPECT_TRUE(bad.ended());
        good.expect<control::NodeStatus>(control::GetStatus{});
    }
    EXPECT_GE(count_of(home.log(), "malformed-frame"), 4u) << home.log();
}

TEST(Protocol, AStuckClientHoldsNobodyUp) {
    Home home;
    ASSERT_EQ(home.start(), 0) << home.errors();
    Client half(home.layout), deaf(home.layout), good(home.layout);
    Bytes header(control_header_bytes);
    put_u32(header.data(), 1 << 20);  // and then nothing
    EXPECT_TRUE(half.send(header));
    deaf.hello();
    for (int i = 0; i < 2000; ++i) deaf.send_request(control::GetStatus{});  // and never reads
    good.hello();
    for (int i = 0; i < 100; ++i) good.expect<control::NodeStatus>(control::GetStatus{});
    for (int i = 0; i < 2000; ++i) ASSERT_TRUE(deaf.receive().ok()) << i;  // and every request was answered once
}

TEST(Protocol, AnotherVersionIsToldBoth) {
    Home home;
    ASSERT_EQ(home.start(), 0) << home.errors();
    Client client(home.layout);
    control::Hello hello;
    hello.protocol = 99;
    hello.program_version = "9.9.9";
    const auto answer = client.ask(hello);
    ASSERT_TRUE(answer.ok());
    const auto& failed = std::get<control::Failed>(*answer);
    EXPECT_EQ(failed.code, Code::unsupported);
    for (const char* word : {"9.9.9", "99", CAIRN_VERSION})
        EXPECT_NE(failed.text.find(word), std::string::npos) << failed.text;
    EXPECT_TRUE(client.ended());
}

TEST(Protocol, WhatCanNotBeIsRefusedByName) {
    Home home;
    ASSERT_EQ(home.start(), 0) << home.errors();
    Client client(home.layout);
    client.hello(true);
    Roster elsewhere = home.roster(1);
    elsewhere.members[0].node = "n7";
    const auto failure = [&](const control::Request& request) {
        const auto answer = client.ask(request);
        return answer.ok() && std::holds_alternative<control::Failed>(*answer) ? std::get<control::Failed>(*answer)
                                                                               : control::Failed{Code::ok, "?"};
    };
    EXPECT_EQ(failure(control::Join{elsewhere, 0, 0}).code, Code::invalid_argument);
    EXPECT_EQ(failure(control::Sealed{{"heat", 1, {1, 2}}, 0, "/etc/passwd"}).code, Code::not_found);
    EXPECT_EQ(failure(control::Release{home.layout.images() + "/slot-1"}).code, Code::not_found);
    EXPECT_EQ(failure(control::Acquire{{"heat", 1, {1, 2}}, 0, 1ull << 62, 0}).code, Code::invalid_argument);
    EXPECT_EQ(failure(control::Acquire{{"heat", 1, {1, 2}}, 0, slot_bytes, 0, UINT64_MAX, 4096}).code, Code::invalid_argument);
    EXPECT_EQ(failure(control::Cancel{{"heat", 1, {1, 2}}}).code, Code::not_found);
    client.expect<control::Done>(control::Join{home.roster(1), 0, 0});
    const auto slot = client.expect<control::Slot>(control::Acquire{{"heat", 1, {1, 2}}, 0, slot_bytes, 0});
    EXPECT_EQ(failure(control::Sealed{{"heat", 1, {1, 2}}, 0, slot.path}).code, Code::invalid_argument);  // not sealed
    write_image(slot, home.roster(1), 1, 0, image_bytes);
    EXPECT_EQ(failure(control::Sealed{{"heat", 2, {1, 2}}, 0, slot.path}).code,
              Code::invalid_argument);  // another version
    client.expect<control::Done>(control::Sealed{{"heat", 1, {1, 2}}, 0, slot.path});
    client.expect<control::Done>(control::Sealed{{"heat", 1, {1, 2}}, 0, slot.path});  // said twice
}

// ---- versions ----

TEST(Version, FilesGetThePermissionsOfTheStarter) {
    Home home;
    const mode_t before = ::umask(027);
    ASSERT_EQ(home.start(), 0) << home.errors();
    ::umask(before);
    const VersionKey key{"heat", 1, {1, 2}};
    Client client(home.layout);
    join(client, home.roster(1));
    const control::Slot slot = commit(client, home.roster(1), 1);
    struct stat about = {};
    ASSERT_EQ(::stat(Layout{home.persistent}.manifest(key).c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777, 0640u);
    ASSERT_EQ(::stat(slot.path.c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777, 0600u);
}

// Looking pins them: no longer than the look.
std::size_t images_held(Client& client) {
    const std::size_t count = client.expect<control::ImageList>(control::Images{"heat"}).images.size();
    client.expect<control::Done>(control::Unpin{});
    return count;
}

TEST(Version, SealedImagesBecomeCommitted) {
    Home home;
    ASSERT_EQ(home.start(), 0) << home.errors();
    Client client(home.layout);
    join(client, home.roster(1));
    std::set<std::string> slots;
    for (Version version = 1; version <= 6; ++version) {
        const VersionKey key{"heat", version, {1, 2}};
        slots.insert(seal(client, home.roster(1), version).path);
        const auto state = await_commit(client, home.roster(1), version);
        EXPECT_EQ(state.level, Level::committed) << state.text << home.log();
        EXPECT_TRUE(state.final);
        EXPECT_TRUE(home.committed(key));
        EXPECT_TRUE(becomes_true([&] { return images_held(client) <= 2; }));
        if (version > 1) continue;
        // The second slot is made before it is asked for.
        const auto made = [&] { return std::distance(fs::directory_iterator(home.layout.images()), fs::directory_iterator()); };
        EXPECT_TRUE(becomes_true([&] { return made() == 2; })) << made();
    }
    EXPECT_EQ(slots.size(), 3u);  // two kept and one in the making, recycled ever since
    const auto status = client.expect<control::NodeStatus>(control::GetStatus{});
    EXPECT_EQ(status.versions_committed, 6u);
    EXPECT_EQ(count_of(home.log(), " info version-committed name=heat version="), 6u) << home.log();
    EXPECT_EQ(status.captured_bytes, 6 * image_bytes);
    EXPECT_GT(status.anonymous_bytes, 0u);
    EXPECT_GE(status.anonymous_peak_bytes, status.anonymous_bytes);
    EXPECT_TRUE(status.storage_backend == "io_uring" || status.storage_backend == "threads");
    EXPECT_EQ(images_held(client), 2u);
}

// Sealed by processes that then died without a word: kill -9 of every rank.
TEST(Version, SealedByTheDeadIsCommitted) {
    Home home;
    ASSERT_EQ(home.start(), 0) << home.errors();
    const VersionKey key{"heat", 1, {1, 2}};
    {
        Client client(home.layout);
        join(client, home.roster(1));
        seal_untold(client, home.roster(1), 1);
        client.expect<control::Slot>(
            control::Acquire{{"heat", 2, {1, 2}}, 0, slot_bytes, 0});  // in the middle of the next one
    }
    EXPECT_TRUE(becomes_true([&] { return home.committed(key); })) << home.log();
    EXPECT_TRUE(becomes_true([&] {
        return std::distance(fs::directory_iterator(home.layout.images()), fs::directory_iterator()) == 1;
    }));  // the torn one is gone
}

// Both ranks of version 1 are sealed, and the daemon was killed before it heard of the second.
void leave_in_scratch(Home& home, const VersionKey& key) {
    ASSERT_EQ(home.start(), 0) << home.errors();
    Client client(home.layout);
    join(client, home.roster(2));
    for (Rank rank : {0u, 1u}) {
        const auto slot = client.expect<control::Slot>(control::Acquire{key, rank, slot_bytes, 0});
        if (rank == 1) home.kill_daemon();
        write_image(slot, home.roster(2), key.version, rank, image_bytes);
        if (rank == 0) client.expect<control::Done>(control::Sealed{key, rank, slot.path});
    }
    EXPECT_FALSE(home.committed(key));
}

// kill -9 of the daemon before it heard of anything; the next one finishes without any client.
TEST(Version, LeftInScratchIsFinishedByTheNextDaemon) {
    Home home;
    const VersionKey key{"heat", 1, {1, 2}};
    ASSERT_NO_FATAL_FAILURE(leave_in_scratch(home, key));
    ASSERT_EQ(home.start(), 0) << home.errors();
    EXPECT_TRUE(becomes_true([&] { return home.committed(key); })) << home.log();
    Client again(home.layout);
    again.hello();
    EXPECT_EQ(again.expect<control::State>(control::Wait{key, Level::committed, 60'000}).level, Level::committed);
    // And the one after that keeps them, for a quick restart, without taking them for unfinished.
    home.kill_daemon();
    ASSERT_EQ(home.start(), 0) << home.errors();
    Client third(home.layout);
    third.hello();
    EXPECT_EQ(third.expect<control::State>(control::Wait{key, Level::committed, 60'000}).level, Level::committed);
    EXPECT_EQ(images_held(third), 2u);
    EXPECT_TRUE(third.expect<control::Stopped>(control::Stop{60'000}).unfinished.empty());
}

// A mount that comes up later than the daemon.
TEST(Version, LeftInScratchIsFinishedWhenPersistentComesBack) {
    Home home;
    const VersionKey key{"heat", 1, {1, 2}};
    ASSERT_NO_FATAL_FAILURE(leave_in_scratch(home, key));
    fs::rename(home.persistent, home.persistent + ".away");
    fs::create_symlink(home.persistent, home.persistent);  // a loop of links: an error, and not that there is none
    ASSERT_EQ(home.start(), 0) << home.errors();
    EXPECT_TRUE(becomes_true([&] { return home.log().find("image-can-not-be-flushed") != std::string::npos; })) << home.log();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_TRUE(fs::exists(home.layout.job({1, 2}))) << "the job of an image that waits is not over";
    fs::remove(home.persistent);
    fs::rename(home.persistent + ".away", home.persistent);
    EXPECT_TRUE(becomes_true([&] { return home.committed(key); })) << home.log();
}

TEST(Version, SealedWhileTheDaemonEndsIsFinishedByTheNextOne) {
    Home home;
    ASSERT_EQ(home.start(), 0) << home.errors();
    Client other(home.layout);
    seal_half(home, other);  // the daemon waits for it when told to stop
    const VersionKey key{"late", 1, {5, 6}};
    Roster roster = home.roster(1, {5, 6});
    roster.name = key.name;
    home.put_on_record(roster);
    Client client(home.layout);
    join(client, roster);
    const auto slot = client.expect<control::Slot>(control::Acquire{key, 0, slot_bytes, 0});
    std::thread stops([&] {
        Client stop(home.layout);
        stop.hello();
        const auto stopped = stop.expect<control::Stopped>(control::Stop{2000});
        EXPECT_NE(std::find(stopped.unfinished.begin(), stopped.unfinished.end(), key), stopped.unfinished.end());
    });
    EXPECT_TRUE(becomes_true([&] { return home.log().find("stopping") != std::string::npos; })) << home.log();
    write_image(slot, roster, 1, 0, image_bytes);
    client.expect<control::Done>(control::Sealed{key, 0, slot.path});
    stops.join();
    ASSERT_TRUE(becomes_true([&] { return home.nobody_lives(); }));
    EXPECT_FALSE(home.committed(key));
    ASSERT_EQ(home.start(), 0) << home.errors();
    EXPECT_TRUE(becomes_true([&] { return home.committed(key); })) << home.log();
}

// Told to an ending daemon after it had looked what is unfinished: the job's records are gone, and its ranks come back with their next call.
TEST(Version, SealedWhileItsJobWasForgottenIsFinishedOnceItsRanksAreBack) {
    Home home;
    const VersionKey key{"heat", 1, {1, 2}};
    ASSERT_NO_FATAL_FAILURE(leave_in_scratch(home, key));
    fs::remove(home.layout.job(key.incarnation));
    fs::remove_all(Layout{home.persistent}.job(key.incarnation));
    ASSERT_EQ(home.start(), 0) << home.errors();
    EXPECT_TRUE(becomes_true([&] { return count_of(home.log(), "image-can-not-be-flushed") == 2; })) << home.log();
    Client client(home.layout);
    join(client, home.roster(2));
    EXPECT_EQ(await_commit(client, home.roster(2), 1).level, Level::committed) << home.log();
}

TEST(Version, CancelledIsFinalAndItsSlotsComeBack) {
    Home home;
    ASSERT_EQ(home.start(), 0) << home.errors();
    Client client(home.layout);
    seal_half(home, client);
    const VersionKey key{"heat", 1, {1, 2}};
    const auto half = client.expect<control::State>(control::Wait{key, Level::committed, 0});
    EXPECT_EQ(half.level, Level::captured);
    EXPECT_EQ(half.text, "node 0 (n0, rank 1)") << "who has not sealed it";
    client.expect<control::Done>(control::Cancel{key});
    const auto state = client.expect<control::State>(control::Wait{key, Level::committed, 60'000});
    EXPECT_TRUE(state.final);
    EXPECT_EQ(state.code, Code::cancelled) << state.text;
    EXPECT_TRUE(becomes_true([&] { return images_held(client) == 0; }));
}

TEST(Version, PersistentRetentionRemovesWhatTheRuleLetsGo) {
    Home home;
    home.set("CAIRN_RETENTION_PERSISTENT_LAST", "2");
    home.set("CAIRN_RETENTION_PERSISTENT_EVERY", "3");
    ASSERT_EQ(home.start(), 0) << home.errors();
    Client client(home.layout);
    join(client, home.roster(1));
    const auto key = [](Version version) { return VersionKey{"heat", version, {1, 2}}; };
    for (Version version = 1; version <= 6; ++version) commit(client, home.roster(1), version);
    const auto kept = [&] {
        std::vector<Version> found;
        for (Version version = 1; version <= 6; ++version)
            if (home.committed(key(version)) || fs::exists(Layout{home.persistent}.version(key(version)))) found.push_back(version);
        return found;
    };
    const std::vector<Version> wanted = {3, 5, 6};
    EXPECT_TRUE(becomes_true([&] { return kept() == wanted; })) << ::testing::PrintToString(kept());
}

// Takes versions 1 to 4 and keeps all of them in scratch.
void commit_four(Home& home) {
    home.set("CAIRN_RETENTION_SCRATCH_LAST", "9");
    ASSERT_EQ(home.start(), 0) << home.errors();
    Client client(home.layout);
    join(client, home.roster(1));
    for (Version version = 1; version <= 4; ++version) commit(client, home.roster(1), version);
}

// What was removed from persistent does not come back out of scratch. Retention leaves nothing that says so.
TEST(Version, WhatRetentionRemovedIsNotCommittedAgainByTheNextDaemon) {
    Home home;
    home.set("CAIRN_RETENTION_PERSISTENT_LAST", "2");
    commit_four(home);
    const Layout persistent{home.persistent};
    const auto is_there = [&](Version version) { return fs::exists(persistent.version("heat", version)); };
    ASSERT_TRUE(becomes_true([&] { return !is_there(1) && !is_there(2); })) << home.log();
    home.kill_daemon();
    ASSERT_EQ(home.start(), 0) << home.errors();
    Client again(home.layout);
    again.hello();
    EXPECT_EQ(images_held(again), 4u) << "for a quick restart";
    EXPECT_TRUE(again.expect<control::Stopped>(control::Stop{60'000}).unfinished.empty());
    EXPECT_FALSE(is_there(1) || is_there(2));
    EXPECT_TRUE(is_there(3) && is_there(4));
}

// `cairn rm` leaves a tombstone.
TEST(Version, WhatWasRemovedByHandIsNotCommittedAgainByTheNextDaemon) {
    Home home;
    commit_four(home);
    home.kill_daemon();
    const Layout persistent{home.persistent};
    const VersionKey key{"heat", 3, {1, 2}};
    {
        auto real = RealWorld::create({});
        ASSERT_TRUE(real.ok());
        World world = (*real)->world();
        const Manifest tombstone = tombstone_of(key, 1, {}, 1);
        const Status removed =
            (*real)->loop().run(remove_version(world, persistent, tombstone, Fence::keep, 60 * second));
        ASSERT_TRUE(removed.ok()) << removed.to_string();
    }
    ASSERT_EQ(home.start(), 0) << home.errors();
    Client again(home.layout);
    again.hello();
    EXPECT_EQ(images_held(again), 3u) << "the image of version 3 is discarded";
    EXPECT_TRUE(again.expect<control::Stopped>(control::Stop{60'000}).unfinished.empty());
    EXPECT_EQ(std::distance(fs::directory_iterator(persistent.version(key)), fs::directory_iterator()), 1)
        << "the tombstone";
}

TEST(Version, JobsAreRememberedPrivatelyAndForgottenWhenDone) {
    Home home;
    ASSERT_EQ(home.start(), 0) << home.errors();
    Client client(home.layout);
    join(client, home.roster(1));
    const Layout persistent{home.persistent};
    for (const std::string& path :
         {home.layout.job({1, 2}), persistent.job_roster({1, 2}), persistent.job_node({1, 2}, 0)}) {
        struct stat about = {};
        ASSERT_EQ(::stat(path.c_str(), &about), 0) << path;
        EXPECT_EQ(about.st_mode & 0777, 0600u) << path;
    }
    client.expect<control::Stopped>(control::Stop{1000});
    ASSERT_TRUE(becomes_true([&] { return home.nobody_lives(); }));
    EXPECT_FALSE(fs::exists(home.layout.job({1, 2})));
    EXPECT_FALSE(fs::exists(persistent.job({1, 2})));
}

}  // namespace
}  // namespace cairn
