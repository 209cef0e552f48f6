// FabricNetwork proves itself: the network suite over the tcp provider.
#include <memory>

#include "world/network_conformance.hpp"
#include "world/real/fabric.hpp"
#include "world/real/test_world.hpp"

namespace cairn::conformance {

struct FabricBench {
    FabricBench() {
        for (auto& network : networks) network = open();
        gone_address = open()->self();
    }
    std::unique_ptr<FabricNetwork> open() {
        FabricSettings settings;
        settings.interface = "lo";
        Result<std::unique_ptr<FabricNetwork>> opened = FabricNetwork::open(*loop, settings);
        CAIRN_CHECK(opened.ok());
        return std::move(opened).value();
    }
    bool run(Task<void> task) { return loop->run_until_done(std::move(task), loop->in(test::patience)); }
    Clock& clock() { return *loop; }
    Network& network(int endpoint) { return *networks[endpoint]; }
    Address gone() { return gone_address; }

    std::unique_ptr<Loop> loop = test::make_loop();
    std::unique_ptr<FabricNetwork> networks[2];
    Address gone_address;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Fabric, NetworkConformance, FabricBench);

}  // namespace cairn::conformance
