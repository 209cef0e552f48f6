// What goes in turn, what a client holds, and when a writer hears of it.
#include "world/sim/machine.hpp"

#include <gtest/gtest.h>

namespace cairn::sim {
namespace {

// Two nodes and a server of 100 bytes a second each.
MachineModel of_hundred(bool connections, std::uint64_t write_behind_bytes = 0) {
    MachineModel model;
    model.nic_out_rates = model.nic_in_rates = {100, 100};
    model.server_rates = model.target_rates = {100};
    model.connections = connections;
    model.write_behind_bytes = write_behind_bytes;
    return model;
}

class Times {
  public:
    explicit Times(Simulation& sim) : sim_(sim) {}
    std::function<void()> note() {
        return [this] { seconds.push_back(static_cast<double>(sim_.now()) / second); };
    }
    std::vector<double> seconds;

  private:
    Simulation& sim_;
};

void expect_times(const Times& times, const std::vector<double>& expected) {
    ASSERT_EQ(times.seconds.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(times.seconds[i], expected[i], 1e-6) << i;
}

// Four sends and a write leave by one card: of five requests each has a fifth, of two connections each half.
TEST(MachineConnections, AreWhatACardIsFairTo) {
    for (const bool connections : {false, true}) {
        Simulation sim(1);
        Machine machine(sim, of_hundred(connections));
        Times sent(sim), written(sim);
        for (int i = 0; i < 4; ++i) machine.send(0, 1, 100, sent.note());
        machine.write(0, 7, 0, 0, 400, 1, written.note());
        sim.run_until(100 * second);
        if (connections) expect_times(sent, {2, 4, 6, 8});
        else expect_times(sent, {5, 5, 5, 5});
        expect_times(written, {8});
    }
}

TEST(MachineConnections, WaitForNobodyElse) {
    Simulation sim(1);
    Machine machine(sim, of_hundred(true));
    Times there(sim), back(sim);
    machine.send(0, 1, 100, there.note());
    machine.send(0, 1, 100, there.note());
    machine.send(1, 0, 100, back.note());
    sim.run_until(100 * second);
    expect_times(there, {1, 2});
    expect_times(back, {1});
    machine.send(0, 1, 100, back.note());  // one that was in use is free again
    sim.run_until(200 * second);
    expect_times(back, {1, 101});
}

TEST(MachineWriteBehind, AWriterWaitsForRoomAndTheLastForAll) {
    Simulation sim(1);
    Machine machine(sim, of_hundred(true, 150));
    Times told(sim), finished(sim), other(sim);
    for (std::uint64_t i = 0; i < 3; ++i) machine.write_behind(0, 7, 0, 100 * i, 100, told.note());
    machine.finish(0, 7, finished.note());
    machine.finish(0, 8, other.note());
    machine.finish(1, 7, other.note());
    sim.run_until(100 * second);
    expect_times(told, {0, 1, 2});  // 100 held; 200 when 50 are through, which go in one piece; 300 at 150
    expect_times(finished, {3});
    expect_times(other, {0, 0});  // of another file, and of another node
}

TEST(MachineWriteBehind, NothingIsHeldUnlessAsked) {
    Simulation sim(1);
    Machine machine(sim, of_hundred(false));
    Times told(sim), finished(sim);
    machine.write_behind(0, 7, 0, 0, 100, told.note());
    machine.finish(0, 7, finished.note());
    sim.run_until(100 * second);
    expect_times(told, {1});
    expect_times(finished, {0});  // fsync of such a machine asks nobody
}

}  // namespace
}  // namespace cairn::sim
