// MemoryNetwork proves itself: the suite that every network must pass.
#include "tune/memory_network.hpp"

#include "world/network_conformance.hpp"
#include "world/real/test_world.hpp"

namespace cairn::conformance {

struct MemoryBench {
    bool run(Task<void> task) { return loop->run_until_done(std::move(task), loop->in(test::patience)); }
    Clock& clock() { return *loop; }
    Network& network(int endpoint) { return endpoint == 0 ? first : second; }
    Address gone() { return tune::MemoryNetwork(between).self(); }

    std::unique_ptr<Loop> loop = test::make_loop();
    tune::MemorySwitch between{*loop};
    tune::MemoryNetwork first{between}, second{between};
};

INSTANTIATE_TYPED_TEST_SUITE_P(Memory, NetworkConformance, MemoryBench);

}  // namespace cairn::conformance
