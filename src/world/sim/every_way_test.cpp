// What a test needs that tries every way: which way a fault goes is said and not drawn, every state can be looked at, and what runs elsewhere changes
// no name.
#include <gtest/gtest.h>

#include "world/conformance.hpp"
#include "world/sim/simulation.hpp"

namespace cairn::sim {
namespace {

using conformance::pattern;

Task<void> one_create(World world, Status& status) {
    OpenOptions options;
    options.mode = OpenMode::create;
    Result<FilePtr> file = co_await world.storage.open("/persistent/f", options, world.clock.in(4 * second));
    status = file.status();
}

// Of a create with these faults: what its caller heard, whether the file was there then, and ten seconds later.
std::set<std::tuple<Code, bool, bool>> fates(const std::function<void(Faults&)>& set) {
    std::set<std::tuple<Code, bool, bool>> all;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        Faults faults;
        set(faults);
        Simulation sim(seed, Model(), faults);
        Status status;
        EXPECT_TRUE(sim.run(one_create(sim.add_node().start_process("a").world(), status), 60 * second));
        const bool then = sim.persistent().find("/persistent/f").ok();
        sim.run_until(sim.now() + 10 * second);
        all.emplace(status.code(), then, sim.persistent().find("/persistent/f").ok());
    }
    return all;
}

TEST(EveryWay, WhatFailsOrHangsTakesEffectOrNotAsIsSaid) {
    using Ways = std::set<std::tuple<Code, bool, bool>>;
    EXPECT_EQ(fates([](Faults& f) { f.metadata_error = 1; }).size(), 2u);
    EXPECT_EQ(fates([](Faults& f) { f.metadata_error = 1, f.error_done = 0; }), (Ways{{Code::io_error, false, false}}));
    EXPECT_EQ(fates([](Faults& f) { f.metadata_error = f.error_done = 1; }), (Ways{{Code::io_error, true, true}}));
    EXPECT_EQ(fates([](Faults& f) { f.hang_io = f.hang_never = 1; }), (Ways{{Code::deadline, false, false}}));
    EXPECT_EQ(fates([](Faults& f) { f.hang_io = 1, f.hang_never = 0, f.hang_io_min = 5 * second, f.hang_io_max = 6 * second; }),
              (Ways{{Code::deadline, false, true}}));
}

Task<void> write_forever(World world, FilePtr* out) {
    OpenOptions options;
    options.mode = OpenMode::create;
    Result<FilePtr> file = co_await world.storage.open("/persistent/f", options, never);
    if (!file.ok()) co_return;
    *out = *file;
    Slice data = Slice::of(pattern(4096));
    (void)co_await write_all(world.storage, *file, 0, data, never);
}

// How much of a write stays whose process dies, or whose node does, in its middle.
std::set<std::uint64_t> sizes_left(bool crash, Faults::Left left, Faults::Unsynced unsynced) {
    std::set<std::uint64_t> sizes;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        Simulation sim(seed);
        SimNode& node = sim.add_node();
        Process& process = node.start_process("a");
        FilePtr file;
        Task<void> writing = write_forever(process.world(), &file);
        writing.start();
        sim.run_until([&] { return file != nullptr; }, second);
        EXPECT_TRUE(sim.persistent().fsync_directory("/persistent").ok());
        sim.faults().left = left;
        sim.faults().unsynced = unsynced;
        if (crash) node.crash();
        else process.kill();
        writing = {};
        sim.run_until(sim.now() + second);
        const auto inode = sim.persistent().find("/persistent/f");
        EXPECT_TRUE(inode.ok());
        sizes.insert((*inode)->content->size());
    }
    return sizes;
}

TEST(EveryWay, WhatTheDeadLeaveIsAsIsSaid) {
    using Left = Faults::Left;
    using Unsynced = Faults::Unsynced;
    using Sizes = std::set<std::uint64_t>;
    EXPECT_EQ(sizes_left(false, Left::nothing, Unsynced::drawn), Sizes{0});
    EXPECT_EQ(sizes_left(false, Left::all, Unsynced::drawn), Sizes{4096});
    EXPECT_EQ(sizes_left(false, Left::under_way, Unsynced::drawn), Sizes{4096});  // a little later
    EXPECT_GT(sizes_left(false, Left::part, Unsynced::drawn).size(), 2u);
    EXPECT_EQ(sizes_left(true, Left::all, Unsynced::kept), Sizes{4096});
    EXPECT_EQ(sizes_left(true, Left::all, Unsynced::lost), Sizes{0});
    EXPECT_GT(sizes_left(true, Left::all, Unsynced::some).size(), 2u);
}

TEST(EveryWay, EveryStateCanBeLookedAt) {
    Simulation sim(1);
    Process& from = sim.add_node().start_process("a");
    Process& to = sim.add_node().start_process("b");
    std::uint64_t looks = 0, most = 0;
    std::vector<std::string> before, seen;
    sim.set_after_event([&] {
        ++looks;
        most = std::max<std::uint64_t>(most, sim.under_way().size());
        for (const auto& [number, sent] : sim.under_way()) EXPECT_EQ(sent.to, to.address());
    });
    sim.set_before([&](Process&, const char* what, const std::string&) { before.push_back(what); });
    sim.set_observer([&](Process&, const char* what, const std::string&) {
        EXPECT_EQ(before.size(), seen.size() + 1);
        seen.push_back(what);
    });
    const auto send = [](World world, Address address) -> Task<void> { (void)co_await world.network.send(address, pattern(10), never); };
    EXPECT_TRUE(sim.run(send(from.world(), to.address()), second));
    EXPECT_EQ(sim.under_way().size(), 1u);
    sim.run_until(second);
    EXPECT_TRUE(sim.under_way().empty());
    EXPECT_EQ(looks, sim.events_run());
    EXPECT_EQ(before, std::vector<std::string>{"send"});
    EXPECT_EQ(seen, before);
}

TEST(EveryWay, NoOtherProcessChangesANamedOnes) {
    const auto second_daemon = [](bool named, int others) {
        Model model;
        model.named_processes = named;
        Simulation sim(1, model);
        SimNode& node = sim.add_node();
        node.start_process("daemon").kill();
        for (int i = 0; i < others; ++i) node.start_process("other");
        Process& process = node.start_process("daemon");
        return std::pair(process.address(), process.world().random.next());
    };
    EXPECT_EQ(second_daemon(true, 0), second_daemon(true, 3));
    EXPECT_NE(second_daemon(false, 0), second_daemon(false, 3));
    Model model;
    model.named_processes = true;
    Simulation sim(1, model);
    SimNode& node = sim.add_node();
    Process& first = node.start_process("daemon");
    Process& another = node.start_process("daemon");
    EXPECT_NE(first.address(), another.address());
    EXPECT_NE(first.world().random.next(), another.world().random.next());
}

TEST(EveryWay, AFileSystemSaysWhenItChanged) {
    FileSystem fs("/persistent", true, UINT64_MAX);
    Prng prng(1);
    std::uint64_t before = fs.changes();
    const auto changed = [&] { return std::exchange(before, fs.changes()) != before; };
    const auto file = fs.create("/persistent/f", 0);
    ASSERT_TRUE(file.ok());
    EXPECT_TRUE(changed());
    fs.write(**file, 0, runs_of_bytes(pattern(100)), 0);
    EXPECT_TRUE(changed());
    EXPECT_TRUE(fs.find("/persistent/f").ok() && fs.list("/persistent").ok());
    EXPECT_FALSE(changed());
    fs.resize(**file, 50, 0);
    EXPECT_TRUE(changed());
    fs.fsync(**file, 0);
    EXPECT_TRUE(changed());
    EXPECT_TRUE(fs.flip_bit("/persistent/f", 0, 0).ok());
    EXPECT_TRUE(changed());
    EXPECT_TRUE(fs.publish("/persistent/f", "/persistent/g", false, 0).ok());
    EXPECT_TRUE(changed());
    EXPECT_TRUE(fs.fsync_directory("/persistent").ok());
    EXPECT_TRUE(changed());
    fs.write(**file, 0, runs_of_bytes(pattern(10)), 0);
    EXPECT_TRUE(changed());
    fs.crash(0, prng, Faults::Unsynced::lost);
    EXPECT_TRUE(changed());
    EXPECT_TRUE(fs.remove("/persistent/g", 0).ok());
    EXPECT_TRUE(changed());
}

}  // namespace
}  // namespace cairn::sim
