// FabricNetwork: the door to FabricCore.
#include "world/real/fabric.hpp"

#include <algorithm>

#include "world/real/fabric_core.hpp"

namespace cairn {

Result<std::unique_ptr<FabricNetwork>> FabricNetwork::open(Loop& loop, const FabricSettings& settings) {
    TRY_ASSIGN(std::unique_ptr<FabricEndpoint> endpoint, FabricEndpoint::open(settings));
    std::unique_ptr<Beacon> beacon;
    if (endpoint->plan().cards.size() > 1) {
        TRY_ASSIGN(beacon, Beacon::open(loop, endpoint->plan().bind, draw_fabric_id()));
    }
    auto core = std::make_shared<FabricCore>(loop, settings, std::move(endpoint), std::move(beacon));
    std::unique_ptr<FabricNetwork> network(new FabricNetwork(core));
    TRY(core->start().within("opening the network between daemons"));
    return network;
}

FabricNetwork::FabricNetwork(std::shared_ptr<FabricCore> core) : core_(std::move(core)) {}
FabricNetwork::~FabricNetwork() { core_->close(); }

Address FabricNetwork::self() const { return core_->self(); }
Channel<Bytes>& FabricNetwork::inbox() { return core_->inbox(); }
FabricCounters FabricNetwork::counters() const { return core_->counters(); }
std::vector<FabricCard> FabricNetwork::cards() const { return core_->cards(); }
const std::string& FabricNetwork::card_choice() const { return core_->card_choice(); }

FabricCard FabricNetwork::card() const {
    const std::vector<FabricCard> all = cards();
    const auto most = std::max_element(all.begin(), all.end(), [](const FabricCard& a, const FabricCard& b) { return a.nodes < b.nodes; });
    return most == all.end() ? FabricCard() : *most;
}

Task<Status> FabricNetwork::send(Address to, Bytes message, Nanos deadline) {
    return FabricCore::send_message(core_, std::move(to), std::move(message), deadline);
}
Task<Status> FabricNetwork::send_payload(Address to, std::uint64_t tag, Slice data, Nanos deadline) {
    return FabricCore::send_payload(core_, std::move(to), tag, std::move(data), deadline);
}
Status FabricNetwork::post_payload(std::uint64_t tag, Slice into) { return core_->post_payload(tag, std::move(into)); }
Task<Result<std::uint64_t>> FabricNetwork::wait_payload(std::uint64_t tag, Nanos deadline) {
    return FabricCore::wait_payload(core_, tag, deadline);
}

}  // namespace cairn
