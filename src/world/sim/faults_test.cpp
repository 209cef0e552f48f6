// Faults as a process meets them: I/O, messages, deaths in the middle of both; and that a seed replays.
#include <gtest/gtest.h>

#include <sstream>

#include "world/conformance.hpp"
#include "world/sim/simulation.hpp"

namespace cairn::sim {
namespace {

using conformance::pattern;

TEST(Faults, AnOperationThatNeverReturnsKeepsItsBuffer) {
    Simulation sim(1);
    Process& process = sim.add_node().start_process("a");
    World world = process.world();
    struct Body {
        static Task<void> run(Simulation& of, World w, BufferPtr buffer, Code& code) {
            OpenOptions options;
            options.mode = OpenMode::create;
            Result<FilePtr> file = co_await w.storage.open("/persistent/f", options, never);
            CO_ASSERT_OK(file);
            of.faults().hang_io = 1;
            Slice data = Slice::whole(buffer);
            Result<std::uint64_t> wrote = co_await w.storage.write_some(*file, 0, data, w.clock.in(second));
            code = wrote.code();
            of.faults().hang_io = 0;
        }
    };
    int kept = 0;
    for (int i = 0; i < 20; ++i) {
        Result<BufferPtr> buffer = world.storage.allocate(4096);
        ASSERT_TRUE(buffer.ok());
        (void)sim.persistent().lose("/persistent/f");
        Code code = Code::ok;
        ASSERT_TRUE(sim.run(Body::run(sim, world, *buffer, code), sim.now() + 10 * second));
        if (code == Code::ok) continue;  // came back in time after all
        EXPECT_EQ(code, Code::deadline);
        EXPECT_GT((*buffer).use_count(), 1);
        sim.run_until(sim.now() + 2 * sim.faults().hang_io_max);
        kept += (*buffer).use_count() > 1;  // never came back
    }
    EXPECT_GT(kept, 0);
    EXPECT_LT(kept, 20);
    EXPECT_EQ(process.buffer_bytes(), static_cast<std::uint64_t>(kept) * 4096);  // the bound counts what is in quarantine
    process.kill();
    EXPECT_EQ(process.buffer_bytes(), 0u);
}

Task<void> one_write(World world, std::string path, Bytes bytes, Status& status) {
    status = co_await write_file(world.storage, path, bytes, 0644, world.clock.in(10 * second));
}

TEST(Faults, EachErrorIsWhatTheSystemWouldSay) {
    const auto with = [](double Faults::*fault) {
        Faults faults;
        faults.*fault = 1;
        Simulation sim(1, Model(), faults);
        Status status;
        EXPECT_TRUE(sim.run(one_write(sim.add_node().start_process("a").world(), "/persistent/f", pattern(10'000), status), 60 * second));
        return status.code();
    };
    EXPECT_EQ(with(&Faults::slow_io), Code::ok);
    EXPECT_EQ(with(&Faults::short_transfer), Code::ok);
    EXPECT_EQ(with(&Faults::write_error), Code::io_error);
    EXPECT_EQ(with(&Faults::metadata_error), Code::io_error);
    EXPECT_EQ(with(&Faults::fsync_error), Code::io_error);
    EXPECT_EQ(with(&Faults::out_of_space), Code::out_of_space);
    EXPECT_EQ(with(&Faults::hang_io), Code::deadline);
}

TEST(Faults, AFullFileSystemRefusesAndBuffersAreBounded) {
    Model model;
    model.scratch_bytes_max = 50'000;
    model.buffer_bytes_max = 8192;
    Simulation sim(1, model);
    World world = sim.add_node().start_process("a").world();
    Status first, second_write, elsewhere;
    EXPECT_TRUE(sim.run(one_write(world, "/scratch/f", pattern(40'000), first), second));
    EXPECT_TRUE(sim.run(one_write(world, "/scratch/g", pattern(40'000), second_write), second));
    EXPECT_TRUE(sim.run(one_write(world, "/elsewhere/g", pattern(1), elsewhere), second));
    EXPECT_TRUE(first.ok());
    EXPECT_EQ(second_write.code(), Code::out_of_space);
    EXPECT_EQ(elsewhere.code(), Code::not_found);
    Result<BufferPtr> buffer = world.storage.allocate(8192);
    EXPECT_TRUE(buffer.ok());
    EXPECT_EQ(world.storage.allocate(1).code(), Code::out_of_space);
    buffer = Status(Code::cancelled, "dropped");
    EXPECT_TRUE(world.storage.allocate(1).ok());
}

TEST(Faults, TheObserverPicksTheOperationToFail) {
    Simulation sim(1);
    World world = sim.add_node().start_process("a").world();
    std::vector<std::string> seen;
    sim.set_observer([&](Process&, const char* what, const std::string& path) {
        seen.push_back(what);
        sim.faults().fsync_error = std::string(what) == "fsync" && path == "/persistent/g" ? 1 : 0;
    });
    Status good, bad;
    EXPECT_TRUE(sim.run(one_write(world, "/persistent/f", pattern(10), good), second));
    EXPECT_TRUE(sim.run(one_write(world, "/persistent/g", pattern(10), bad), second));
    EXPECT_TRUE(good.ok());
    EXPECT_EQ(bad.code(), Code::io_error);
    EXPECT_EQ(seen, (std::vector<std::string>{"create", "write", "fsync", "create", "write", "fsync"}));
}

// kill -9 leaves what was written; what was under way may have happened, or in part, or not; scratch outlives processes, not nodes.
TEST(Faults, KilledProcessesLeaveTheirFiles) {
    std::set<std::uint64_t> sizes;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        Simulation sim(seed);
        SimNode& node = sim.add_node();
        Process& process = node.start_process("a");
        Status done, under_way;
        EXPECT_TRUE(sim.run(one_write(process.world(), "/scratch/done", pattern(5'000), done), second));
        Task<void> writing = one_write(process.world(), "/scratch/f", pattern(5'000), under_way);
        writing.start();
        while (!node.scratch().find("/scratch/f").ok()) sim.step();
        sim.step();
        process.kill();
        writing = {};
        sim.run_until(sim.now() + second);
        Result<InodePtr> file = node.scratch().find("/scratch/f");
        ASSERT_TRUE(file.ok());
        sizes.insert((*file)->content->size());
        Result<InodePtr> kept = node.scratch().find("/scratch/done");
        ASSERT_TRUE(kept.ok());
        EXPECT_TRUE(equal((*kept)->content->read(0, 5'000), runs_of_bytes(pattern(5'000))));
        const Address old = process.address();
        EXPECT_NE(node.start_process("a").address(), old);
        node.crash();
        node.restart();
        EXPECT_EQ(node.scratch().find("/scratch/done").code(), Code::not_found);
    }
    EXPECT_EQ(sizes.count(0), 1u);
    EXPECT_EQ(sizes.count(5'000), 1u);
    EXPECT_GT(sizes.size(), 3u);
}

Task<void> count_messages(Network& network, int& count) {
    for (;;) {
        Result<Bytes> message = co_await network.inbox().receive(never);
        if (!message.ok()) co_return;
        ++count;
    }
}
Task<void> send_many(World world, Address to, int count) {
    for (int i = 0; i < count; ++i) {
        (void)co_await world.network.send(to, pattern(100, static_cast<unsigned>(i)), never);
        co_await world.clock.sleep(millisecond);
    }
}

int messages_of_100(Faults faults, const std::function<void(Simulation&)>& prepare) {
    Simulation sim(5, Model(), faults);
    Process& from = sim.add_node().start_process("from");
    Process& to = sim.add_node().start_process("to");
    prepare(sim);
    int count = 0;
    Gate gate(to.world().clock);
    gate.spawn(count_messages(to.world().network, count));
    EXPECT_TRUE(sim.run(send_many(from.world(), to.address(), 100), 100 * second));
    sim.run_until(sim.now() + 10 * second);
    return count;
}

TEST(Faults, MessagesAreLostRepeatedAndCutOff) {
    const auto nothing = [](Simulation&) {};
    EXPECT_EQ(messages_of_100(Faults(), nothing), 100);
    Faults faults;
    faults.message_loss = 0.5;
    const int some = messages_of_100(faults, nothing);
    EXPECT_GT(some, 20);
    EXPECT_LT(some, 80);
    faults = Faults();
    faults.message_repeat = 1;
    EXPECT_EQ(messages_of_100(faults, nothing), 200);
    EXPECT_EQ(messages_of_100(Faults(), [](Simulation& sim) { sim.partition({0}); }), 0);
    EXPECT_EQ(messages_of_100(Faults(), [](Simulation& sim) { sim.block(1, 0); }), 100);  // the other way only
    const int halved = messages_of_100(Faults(), [](Simulation& sim) {
        sim.partition({1});
        sim.at(50 * millisecond, [&sim] { sim.heal(); });
    });
    EXPECT_GT(halved, 20);
    EXPECT_LT(halved, 80);
}

TEST(Model, TransfersTakeTheTimeTheirRateSays) {
    Model model;
    model.nic_rate = 1e9;
    model.persistent_client_rate = 1e9;
    Simulation sim(1, model);
    Process& from = sim.add_node().start_process("from");
    Process& to = sim.add_node().start_process("to");
    struct Body {
        static Task<void> write(World w) {
            OpenOptions options;
            options.mode = OpenMode::create;
            Result<FilePtr> file = co_await w.storage.open("/persistent/f", options, never);
            CO_ASSERT_OK(file);
            Status status = co_await write_all(w.storage, *file, 0, describe(1, 2'000'000'000), never);
            CO_ASSERT_OK(status);
        }
        static Task<void> ship(World w, Address peer) {
            Status status = co_await w.network.send_payload(peer, 1, describe(1, 3'000'000'000), never);
            CO_ASSERT_OK(status);
        }
    };
    ASSERT_TRUE(sim.run(Body::write(from.world()), 100 * second));
    EXPECT_NEAR(static_cast<double>(sim.now()) / second, 2.0, 0.01);
    EXPECT_EQ(sim.persistent().used_bytes(), 2'000'000'000u);
    Result<BufferPtr> buffer = to.world().storage.allocate(3'000'000'000);
    ASSERT_TRUE(buffer.ok());
    ASSERT_TRUE(to.world().network.post_payload(1, Slice::whole(*buffer)).ok());
    const Nanos start = sim.now();
    ASSERT_TRUE(sim.run(Body::ship(from.world(), to.address()), 100 * second));
    EXPECT_NEAR(static_cast<double>(sim.now() - start) / second, 3.0, 0.01);
    EXPECT_TRUE(content_equal(Slice::whole(*buffer), describe(1, 3'000'000'000)));
}

TEST(Model, ClocksMayBeApart) {
    Model model;
    model.clock_apart_max = 1000 * second;
    Simulation sim(1, model);
    World a = sim.add_node().start_process("a").world(), b = sim.add_node().start_process("b").world();
    EXPECT_NE(a.clock.now(), b.clock.now());
    struct Body {
        static Task<void> run(Clock& clock) {
            const Nanos start = clock.now();
            co_await clock.sleep(second);
            EXPECT_EQ(clock.now(), start + second);
        }
    };
    EXPECT_TRUE(sim.run(Body::run(a.clock), 2 * second));
    EXPECT_EQ(sim.now(), second);
}

// A busy day: every node writes, reads, ships and talks, under every fault; processes and nodes die and come back.
Task<void> busy(World world, std::vector<Address> peers, std::uint64_t number) {
    for (std::uint64_t round = 0; round < 25; ++round) {
        const Nanos deadline = world.clock.in(2 * second);
        const std::string path = "/persistent/" + std::to_string(world.random.next() % 50);
        Bytes bytes = pattern(1 + world.random.next() % 20'000, static_cast<unsigned>(number));
        (void)co_await write_file(world.storage, path, bytes, 0644, deadline);
        (void)co_await read_file(world.storage, path, 1 << 20, deadline);
        (void)co_await world.storage.publish(path, path + ".published", deadline);
        (void)co_await world.storage.fsync_directory("/persistent", deadline);
        const Address peer = peers[world.random.next() % peers.size()];
        (void)co_await world.network.send(peer, bytes, deadline);
        const std::uint64_t tag = number * 1000 + round;
        Result<BufferPtr> buffer = world.storage.allocate(1 << 20);
        if (!buffer.ok()) co_return;
        (void)world.network.post_payload(tag, Slice::whole(*buffer));
        (void)co_await world.network.send_payload(peer, world.random.next() % 20'000, describe(number, 1 << 20), deadline);
        (void)co_await world.network.wait_payload(tag, world.clock.in(100 * millisecond));
        (void)co_await world.cpu.checksums(Slice::whole(*buffer), 65'536);
        if (world.random.next() % 4 == 0) (void)co_await world.storage.remove(path, deadline);
    }
}

Faults everything() {
    Faults faults;
    faults.short_transfer = faults.slow_io = faults.publish_renames = 0.2;
    faults.read_error = faults.write_error = faults.metadata_error = faults.fsync_error = faults.out_of_space = 0.02;
    faults.hang_io = 0.02;
    faults.message_loss = faults.message_repeat = faults.message_delay = 0.2;
    faults.payload_loss = faults.payload_delay = faults.send_error = faults.peer_loss_told = 0.2;
    return faults;
}

struct Outcome {
    std::uint64_t fingerprint, events;
    std::string files;
    bool operator==(const Outcome&) const = default;
};

// Something else on the heap, so that addresses differ from run to run.
Outcome busy_day(std::uint64_t seed, std::size_t ballast) {
    const std::vector<Bytes> elsewhere(ballast, Bytes(100));
    Simulation sim(seed, Model(), everything());
    struct Member {
        Process* process;
        std::unique_ptr<Gate> gate;
    };
    std::vector<Member> members;
    std::vector<Address> addresses;
    for (int i = 0; i < 12; ++i) addresses.push_back(sim.add_node().start_process("busy").address());
    const auto join = [&](Process& process) {
        members.push_back({&process, std::make_unique<Gate>(process.world().clock)});
        for (std::uint64_t i = 0; i < 3; ++i) members.back().gate->spawn(busy(process.world(), addresses, members.size() * 3 + i));
    };
    for (NodeId i = 0; i < 12; ++i) join(*sim.node(i).processes()[0]);
    for (int i = 0; i < 30; ++i) {
        sim.run_until(sim.now() + static_cast<Nanos>(sim.random().below(500 * millisecond)));
        Member& victim = members[sim.random().below(members.size())];
        if (!victim.gate) continue;
        SimNode& node = victim.process->node();
        const std::uint64_t choice = sim.random().below(4);
        if (choice == 0) victim.process->pause();
        if (choice == 1) victim.process->resume();
        if (choice == 2) victim.process->kill();
        if (choice == 3) node.crash();
        if (choice >= 2) victim.gate.reset();
        if (choice == 3) node.restart();
        if (choice >= 2) join(node.start_process("busy again"));
    }
    sim.run_until(sim.now() + 200 * second);
    Outcome outcome{sim.fingerprint(), sim.events_run(), ""};
    Result<std::vector<DirectoryEntry>> files = sim.persistent().list("/persistent");
    for (const DirectoryEntry& entry : *files) outcome.files += entry.name + " " + std::to_string(entry.bytes) + "\n";
    std::ostringstream recent;
    sim.print_recent(recent);
    EXPECT_FALSE(recent.str().empty());
    return outcome;
}

TEST(Faults, ASeedIsARun) {
    std::set<std::uint64_t> different;
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
        const Outcome first = busy_day(seed, 0), again = busy_day(seed, 1000);
        EXPECT_EQ(first.fingerprint, again.fingerprint);
        EXPECT_EQ(first.events, again.events);
        EXPECT_EQ(first.files, again.files);
        EXPECT_GT(first.events, 3'000u);
        different.insert(first.fingerprint);
    }
    EXPECT_EQ(different.size(), 4u);
}

// Everything a coroutine can wait for, at once.
struct Waits {
    explicit Waits(Process& p) : process(p), event(p.world().clock), full(p.world().clock, 1), empty(p.world().clock, 1) {}

    static Task<void> on_event(Waits& w) { (void)co_await w.event.wait(w.process.world().clock.in(second)); }
    static Task<void> on_send(Waits& w) { (void)co_await w.full.send(1, w.process.world().clock.in(second)); }
    static Task<void> on_receive(Waits& w) { (void)co_await w.empty.receive(w.process.world().clock.in(second)); }
    static Task<void> on_gate(Waits& w) {
        Gate inner(w.process.world().clock);
        inner.spawn(on_event(w));
        inner.spawn(on_send(w));
        (void)co_await inner.close(w.process.world().clock.in(2 * second));
    }
    static Task<void> stir(Waits& w) {
        for (int i = 0; i < 4; ++i) {
            co_await w.process.world().clock.sleep(100 * microsecond);
            (void)w.full.try_receive();
            w.event.notify_one();
            (void)w.empty.try_send(i);
        }
        w.full.close();
        w.empty.close();
        w.event.notify_all();
    }
    void spawn(Gate& gate, const Address& peer) {
        for (int i = 0; i < 2; ++i) {
            gate.spawn(on_event(*this));
            gate.spawn(on_send(*this));
            gate.spawn(on_receive(*this));
            gate.spawn(on_gate(*this));
        }
        gate.spawn(stir(*this));
        gate.spawn(busy(process.world(), {peer}, process.id()));
    }

    Process& process;
    Event event;
    Channel<int> full, empty;
};

// For every number of steps: run so far, end one of two processes (or only its coroutines), and let the rest go on. What fails
// here fails under the address sanitizer, or in the other process.
TEST(Faults, CoroutinesMayBeDestroyedAtEveryStep) {
    std::uint64_t steps_taken = 0;
    for (int how = 0; how < 3; ++how) {
        for (int steps = 0; steps < 150; ++steps) {
            Simulation sim(static_cast<std::uint64_t>(steps));
            Process& victim = sim.add_node().start_process("victim");
            Process& other = sim.add_node().start_process("other");
            Waits theirs(other), ours(victim);
            Gate rest(other.world().clock);
            auto gate = std::make_unique<Gate>(victim.world().clock);
            ours.spawn(*gate, other.address());
            theirs.spawn(rest, victim.address());
            for (int i = 0; i < steps; ++i) steps_taken += sim.step();
            if (how == 0) victim.kill();
            if (how == 1) victim.node().crash();
            gate.reset();
            EXPECT_TRUE(sim.run_until([&] { return rest.active() == 0; }, 3600 * second)) << "after " << steps << " steps";
        }
    }
    EXPECT_EQ(steps_taken, 3u * 149 * 150 / 2);
}

}  // namespace
}  // namespace cairn::sim
