// Local images: each block is read once, whoever asks and however often; what scratch does not give back costs its own version only.
#include <gtest/gtest.h>

#include <algorithm>

#include "copies/held.hpp"
#include "proof/cluster.hpp"

namespace cairn {
namespace {

using testing::Cluster;
using testing::ClusterOptions;

ClusterOptions quick_to_give_up() {
    ClusterOptions options;
    options.ranks_per_node = {1, 1};
    options.settings.leaders = 1;
    options.settings.io_wait = 4 * second;
    options.settings.retry_wait = second;
    // node 0 leads, unless it is told off
    options.image_bytes = [](Rank rank, Version) { return rank == 0 ? 2'000'000 : 100'000; };
    return options;
}

// How often a node reads of its own images, and that what it reads does not come back.
struct Watched {
    Cluster& cluster;
    std::string process;
    bool hang = true;
    std::size_t reads = 0;

    Watched(Cluster& c, NodeIndex node) : cluster(c) {
        cluster.sim.faults().hang_io_max = sim::horizon;
        cluster.sim.set_observer([this, node](sim::Process& p, const char* what, const std::string&) {
            const bool reads_here = what == std::string("checksums") && &p == cluster.hosts[node].process;
            reads += reads_here;
            cluster.sim.faults().hang_scratch = hang && reads_here ? 1 : 0;
        });
    }
};

TEST(Local, AnImageThatScratchDoesNotGiveBackHoldsUpNoOtherVersion) {
    for (NodeIndex node : {0u, 1u}) {  // the leader's own; a follower's
        Cluster cluster(quick_to_give_up());
        ASSERT_TRUE(cluster.open_job().ok());
        Watched watched(cluster, node);
        ASSERT_TRUE(cluster.capture_all(1).ok());
        cluster.sim.run_until(cluster.sim.now() + second);
        watched.hang = false;
        ASSERT_TRUE(cluster.capture_all(2).ok());
        ASSERT_TRUE(cluster.run_until_committed(2, 120 * second)) << cluster.state(0, 2).failure.to_string();
        EXPECT_TRUE(cluster.check_committed(cluster.key(2)).ok());
        const auto told = [&] { return !cluster.state(0, 1).failure.ok() && !cluster.state(1, 1).failure.ok(); };
        ASSERT_TRUE(cluster.sim.run_until(told, cluster.sim.now() + 300 * second));
        const std::string why = cluster.state(1, 1).failure.to_string();
        EXPECT_NE(why.find("the image of rank " + std::to_string(node) + ", /scratch/"), std::string::npos) << why;
        ASSERT_TRUE(cluster.capture_all(3).ok());
        ASSERT_TRUE(cluster.run_until_committed(3, 120 * second)) << cluster.state(0, 3).failure.to_string();
        EXPECT_NE(cluster.state(0, 1).level, Level::committed);
    }
}

// Whatever holds the flush back, nobody takes it for trouble with scratch.
TEST(Local, APausedDaemonOrOneThatGivesWayIsNotLate) {
    ClusterOptions options = quick_to_give_up();
    options.settings.peer_wait = 60 * second;
    options.model.checksum_rate = 1e6;  // two seconds of reading
    Cluster cluster(options);
    ASSERT_TRUE(cluster.open_job().ok());
    ASSERT_TRUE(cluster.capture_all(1).ok());
    cluster.sim.run_until(cluster.sim.now() + second / 2);
    cluster.hosts[0].process->pause();
    cluster.sim.run_until(cluster.sim.now() + 30 * second);
    cluster.hosts[0].process->resume();
    PaceLimits closed;
    closed.closed = true;
    cluster.hosts[0].daemon->pace().set_limits(closed);
    cluster.sim.run_until(cluster.sim.now() + 20 * second);
    cluster.hosts[0].daemon->pace().set_limits({});
    ASSERT_TRUE(cluster.run_until_committed(1, 60 * second)) << cluster.state(0, 1).failure.to_string();
    EXPECT_EQ(cluster.hosts[0].daemon->counters().attempts_failed, 0u);
}

// The leader repeats its credit, gives it up, asks under another tag, begins another attempt: one read is enough.
TEST(Local, WhatIsBeingReadIsNotReadBesideItself) {
    Cluster cluster(quick_to_give_up());
    ASSERT_TRUE(cluster.open_job().ok());
    Watched watched(cluster, 1);
    ASSERT_TRUE(cluster.capture_all(1).ok());
    const auto told = [&] { return !cluster.state(0, 1).failure.ok(); };
    ASSERT_TRUE(cluster.sim.run_until(told, cluster.sim.now() + 300 * second));
    EXPECT_GT(cluster.hosts[0].daemon->counters().attempts_failed, 1u);
    const std::size_t blocks = 100'000 / cluster.options.block_bytes + 1;
    EXPECT_LE(watched.reads, blocks);
    EXPECT_GT(watched.reads, 0u);
}

// The checksums of an image that is committed are written into its slot, and scratch hangs: it can let go of the image, but not of what may come late.
TEST(Local, ChecksumsThatAreWrittenLateKeepNoImage) {
    Cluster cluster(quick_to_give_up());
    bool hang = true;
    cluster.sim.faults().hang_io_max = 60 * second;
    cluster.sim.set_observer([&](sim::Process& process, const char* what, const std::string& path) {
        const bool keeps = what == std::string("write") && path.find("/images/") != std::string::npos && process.name() == "cairnd";
        cluster.sim.faults().hang_scratch = hang && keeps ? 1 : 0;
    });
    ASSERT_TRUE(cluster.open_job().ok());
    ASSERT_TRUE(cluster.capture_all(1).ok());
    ASSERT_TRUE(cluster.run_until_committed(1, 120 * second)) << cluster.state(0, 1).failure.to_string();
    cluster.sim.run_until(cluster.sim.now() + 10 * second);
    hang = false;
    ASSERT_TRUE(cluster.capture_all(2).ok());
    ASSERT_TRUE(cluster.run_until_committed(2, 120 * second)) << cluster.state(0, 2).failure.to_string();
    cluster.sim.run_until(cluster.sim.now() + 10 * second);
    for (NodeIndex node : {0u, 1u})
        for (Version version : {1u, 2u}) {
            Node& daemon = *cluster.hosts[node].daemon;
            EXPECT_EQ(daemon.may_be_written(cluster.key(version), node), version == 1);
            EXPECT_FALSE(version == 1 && daemon.forget(cluster.roster.incarnation));  // who drops it would not hear so
            EXPECT_TRUE(daemon.drop_image(cluster.key(version), node).ok());
            EXPECT_EQ(daemon.image(cluster.key(version), node), nullptr);
        }
}

// A page of an image is gone (its disk has lost it, its file was made shorter): when it is first read; when its checksums are made already, and it is
// written or sent. What stands in its place must not become part of a version, and later versions go on.
TEST(Local, BytesThatScratchHasLostAreNotTakenForTheImage) {
    for (NodeIndex node : {0u, 1u})  // the leader's own; a follower's
        for (const char* at : {"checksums", "write", "payload"}) {
            Cluster cluster(quick_to_give_up());
            bool lose = true;
            cluster.sim.set_observer([&](sim::Process& process, const char* what, const std::string& path) {
                if (!lose || what != std::string(at) || process.name() != "cairnd" || path.starts_with("/scratch")) return;
                if (&process != cluster.hosts[node].process && at != std::string("write")) return;
                lose = false;
                const LocalImage* image = cluster.hosts[node].daemon->image(cluster.key(1), node);
                ASSERT_NE(image, nullptr);
                (*cluster.hosts[node].node->scratch().find(image->path))->content->lose(image->header.data_offset + 4096);
            });
            ASSERT_TRUE(cluster.open_job().ok());
            ASSERT_TRUE(cluster.capture_all(1).ok());
            const auto over = [&] { return !cluster.state(0, 1).failure.ok() || cluster.state(0, 1).level == Level::committed; };
            ASSERT_TRUE(cluster.sim.run_until(over, cluster.sim.now() + 300 * second));
            const std::string what = std::string(at) + " of node " + std::to_string(node);
            if (!lose && cluster.state(0, 1).level != Level::committed) {
                const std::string why = cluster.state(0, 1).failure.to_string();
                EXPECT_NE(why.find("a part of it can not be read any more"), std::string::npos) << what << ": " << why;
            } else {  // it was over by then
                EXPECT_TRUE(cluster.check_committed(cluster.key(1)).ok()) << what;
            }
            lose = false;
            ASSERT_TRUE(cluster.capture_all(2).ok());
            ASSERT_TRUE(cluster.run_until_committed(2, 120 * second)) << what << ": " << cluster.state(0, 2).failure.to_string();
            EXPECT_TRUE(cluster.check_committed(cluster.key(2)).ok()) << what;
        }
}

// An answer that was lost is given again, and costs no second read either.
TEST(Local, ALostAnswerIsGivenAgainWithoutReadingAgain) {
    Cluster cluster(quick_to_give_up());
    ASSERT_TRUE(cluster.open_job().ok());
    Watched watched(cluster, 1);
    watched.hang = false;
    ASSERT_TRUE(cluster.capture_all(1).ok());
    cluster.sim.faults().message_loss = 0.5;
    ASSERT_TRUE(cluster.run_until_committed(1, 300 * second)) << cluster.state(0, 1).failure.to_string();
    EXPECT_TRUE(cluster.check_committed(cluster.key(1)).ok());
    EXPECT_LE(watched.reads, 100'000 / cluster.options.block_bytes + 1);
}

// They would be taken for the image's when a daemon that knows nothing of the loss adopts it.
TEST(Local, OfWhatScratchHasLostNoChecksumsAreKept) {
    constexpr std::uint64_t bytes = 3 * 4096;
    sim::Simulation simulation{1, {}, {}};
    World world = simulation.add_node().start_process("cairnd").world();
    const auto content = std::make_shared<sim::Content>();
    content->write(0, sim::runs_of_description(7, 0, bytes));
    LocalImage image;
    image.header.block_bytes = 4096;
    image.header.image.bytes = bytes;
    image.data = {std::make_shared<sim::SimBuffer>(content, bytes), 0, bytes};
    const auto images = std::make_shared<HeldImages>();
    images->emplace(0, held_image(std::move(image)));
    Gate gate(world.clock);
    HeldReads reads(world, gate, 100 * millisecond, 4 * second, 4096);
    simulation.set_observer([&](sim::Process&, const char* what, const std::string&) {
        if (what == std::string("checksums")) content->lose(4096);
    });
    Status read;
    const auto task = [](HeldReads& from, HeldImagesPtr held, Status& out) -> Task<void> {
        const std::function<bool()> goes_on = [] { return false; };
        const Source all{0, 0, bytes};
        const Result<HeldBytes> taken = co_await from.bytes_of(held, all, WantedFor::writing, goes_on);
        out = taken.status();
    };
    ASSERT_TRUE(simulation.run(task(reads, images, read), 60 * second));
    EXPECT_EQ(read.code(), Code::io_error) << read.to_string();
    const std::vector<bool>& known = images->at(0).known;
    EXPECT_EQ(std::count(known.begin(), known.end(), true), 0);
}

}  // namespace
}  // namespace cairn
