// The simulated world proves itself: as it is, and where transfers are short, slow and out of order.
#include <memory>

#include "world/checksummed_conformance.hpp"
#include "world/clock_conformance.hpp"
#include "world/cpu_conformance.hpp"
#include "world/network_conformance.hpp"
#include "world/sim/simulation.hpp"
#include "world/storage_conformance.hpp"

namespace cairn::sim {

struct SimBench {
    explicit SimBench(Faults faults = {}) : sim(20240229, Model(), faults) {
        for (int i = 0; i < 3; ++i) processes[i] = &sim.add_node().start_process("bench");
        processes[2]->kill();
    }
    bool run(Task<void> task) { return sim.run(std::move(task), sim.now() + 1000 * second); }
    World world(int endpoint) { return processes[endpoint]->world(); }
    Clock& clock() { return world(0).clock; }
    Storage& storage() { return world(0).storage; }
    std::string scratch() { return "/scratch"; }
    std::string persistent() { return "/persistent"; }
    Network& network(int endpoint) { return world(endpoint).network; }
    Address gone() { return processes[2]->address(); }
    Cpu& cpu() { return world(0).cpu; }

    Simulation sim;
    Process* processes[3];
};

struct UnevenSimBench : SimBench {
    static Faults uneven() {
        Faults faults;
        faults.short_transfer = 0.7;
        faults.slow_io = 0.3;
        faults.slow_io_max = 5 * millisecond;
        faults.publish_renames = 0.5;
        faults.message_loss = 0.2;
        faults.message_repeat = 0.2;
        faults.message_delay = 0.3;
        faults.message_delay_max = 100 * millisecond;
        faults.payload_loss = 0.2;
        faults.payload_delay = 0.3;
        faults.send_error = 0.1;
        faults.peer_loss_told = 0.5;
        return faults;
    }
    UnevenSimBench() : SimBench(uneven()) {}
};

}  // namespace cairn::sim

namespace cairn::conformance {
using Benches = ::testing::Types<sim::SimBench, sim::UnevenSimBench>;
INSTANTIATE_TYPED_TEST_SUITE_P(Sim, StorageConformance, Benches);
INSTANTIATE_TYPED_TEST_SUITE_P(Sim, ChecksummedConformance, Benches);
INSTANTIATE_TYPED_TEST_SUITE_P(Sim, NetworkConformance, Benches);
INSTANTIATE_TYPED_TEST_SUITE_P(Sim, ClockConformance, sim::SimBench);
INSTANTIATE_TYPED_TEST_SUITE_P(Sim, CpuConformance, sim::SimBench);
}  // namespace cairn::conformance
