// Storage that gives other bytes than were written, scratch that hangs, and clocks that lie.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "world/conformance.hpp"
#include "world/sim/simulation.hpp"

namespace cairn::sim {
namespace {

using conformance::pattern;

Task<void> one_write(World world, std::string path, Bytes bytes, Status& status) {
    status = co_await write_file(world.storage, path, bytes, 0644, world.clock.in(10 * second));
}

Task<void> one_read(World world, std::string path, Bytes& bytes, Status& status) {
    Result<Bytes> read = co_await read_file(world.storage, path, 1 << 20, world.clock.in(10 * second));
    status = read.status();
    if (read.ok()) bytes = std::move(*read);
}

// Of the shared file system alone, and of the reads alone: what lies there is whole.
TEST(StorageFaults, AReadGivesWhatStoodThereBeforeOrAnotherPage) {
    const Bytes whole = pattern(10'000);
    const auto read_with = [&](double Faults::*fault, const std::string& path) {
        Simulation sim(1);
        World world = sim.add_node().start_process("a").world();
        Status status;
        Bytes read;
        EXPECT_TRUE(sim.run(one_write(world, path, whole, status), second));
        sim.faults().*fault = 1;
        EXPECT_TRUE(sim.run(one_read(world, path, read, status), 2 * second));
        EXPECT_TRUE(status.ok()) << status.to_string();
        sim.faults() = Faults();
        Bytes again;
        EXPECT_TRUE(sim.run(one_read(world, path, again, status), 3 * second));
        EXPECT_EQ(again, whole);
        return read;
    };
    EXPECT_EQ(read_with(&Faults::stale_read, "/scratch/f"), whole);
    EXPECT_EQ(read_with(&Faults::other_read, "/scratch/f"), whole);
    const Bytes stale = read_with(&Faults::stale_read, "/persistent/f");
    ASSERT_EQ(stale.size(), whole.size());
    EXPECT_EQ(stale.back(), std::byte{0});
    const auto from = static_cast<std::size_t>(std::mismatch(stale.begin(), stale.end(), whole.begin()).first - stale.begin());
    EXPECT_TRUE(std::all_of(stale.begin() + static_cast<std::ptrdiff_t>(from), stale.end(), [](std::byte b) { return b == std::byte{0}; }));
    const Bytes other = read_with(&Faults::other_read, "/persistent/f");
    EXPECT_NE(other, whole);
    ASSERT_GE(other.size(), 1000u);
    const bool second_page = std::equal(other.begin(), other.begin() + 1000, whole.begin() + 4096);
    const bool third_page = std::equal(other.begin(), other.begin() + 1000, whole.begin() + 8192);
    EXPECT_TRUE(second_page || third_page);
}

TEST(StorageFaults, ScratchThatHangsTakesNothingFromTheSharedFileSystem) {
    Faults faults;
    faults.hang_scratch = 1;
    Simulation sim(1, Model(), faults);
    Process& process = sim.add_node().start_process("a");
    Status status;
    EXPECT_TRUE(sim.run(one_write(process.world(), "/persistent/f", pattern(10'000), status), 60 * second));
    EXPECT_TRUE(status.ok()) << status.to_string();
    EXPECT_TRUE(sim.run(one_write(process.world(), "/scratch/f", pattern(10'000), status), 60 * second));
    EXPECT_EQ(status.code(), Code::deadline);
}

// Memory that is mapped of scratch comes late, or never; what a process allocated for itself comes at once.
TEST(StorageFaults, MappedScratchMayNeverBeRead) {
    Simulation sim(1);
    Process& process = sim.add_node().start_process("a");
    World world = process.world();
    Status status;
    ASSERT_TRUE(sim.run(one_write(world, "/scratch/f", pattern(10'000), status), second));
    sim.faults().hang_scratch = 1;
    sim.faults().hang_io_max = 10 * second;
    struct Body {
        static Task<void> run(World w, Slice data) {
            const std::vector<std::uint64_t> made = co_await w.cpu.checksums(data, 4096);
            EXPECT_EQ(made.size(), 3u);
        }
        static Task<void> map(World w, BufferPtr& buffer) {
            Result<BufferPtr> mapped = co_await w.storage.map("/scratch/f", false, w.clock.in(second));
            CO_ASSERT_OK(mapped);
            buffer = std::move(*mapped);
        }
    };
    BufferPtr mapped;
    sim.faults().hang_scratch = 0;
    ASSERT_TRUE(sim.run(Body::map(world, mapped), sim.now() + second));
    sim.faults().hang_scratch = 1;
    Result<BufferPtr> own = world.storage.allocate(10'000);
    ASSERT_TRUE(own.ok());
    EXPECT_TRUE(sim.run(Body::run(world, Slice::whole(*own)), sim.now() + millisecond));
    int late = 0;
    for (int i = 0; i < 20; ++i) late += sim.run(Body::run(world, Slice::whole(mapped)), sim.now() + 20 * second);
    EXPECT_GT(late, 0);
    EXPECT_EQ(process.reads_lost(), 20u - static_cast<unsigned>(late));
    EXPECT_GT(process.reads_lost(), 0u);
}

TEST(StorageFaults, WallClocksAreApartAndAreSet) {
    Model model;
    model.wall_time_s = 1'000'000;
    model.wall_apart_max_s = 1000;
    Simulation sim(1, model);
    std::vector<std::uint64_t> times;
    for (int i = 0; i < 10; ++i) times.push_back(sim.add_node().wall_time_s());
    EXPECT_GT(std::set<std::uint64_t>(times.begin(), times.end()).size(), 5u);
    for (const std::uint64_t time : times) EXPECT_NEAR(static_cast<double>(time), 1e6, 1000);
    Clock& clock = sim.node(0).start_process("a").world().clock;
    EXPECT_EQ(clock.wall_time_s(), times[0]);
    sim.run_until(5 * second);
    EXPECT_EQ(clock.wall_time_s(), times[0] + 5);
    sim.faults().wall_set = 1;
    bool back = false;
    for (int i = 0; i < 10; ++i) back |= clock.wall_time_s() < times[0];
    EXPECT_TRUE(back);
    EXPECT_EQ(Simulation(1).add_node().wall_time_s(), 0u);
}

}  // namespace
}  // namespace cairn::sim
