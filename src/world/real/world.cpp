#include "world/real/world.hpp"

namespace cairn {

namespace {

Status no_network() { return unavailable("this program talks to no other node"); }

}  // namespace

Task<Status> NoNetwork::send(Address, Bytes, Nanos) { co_return no_network(); }
Task<Status> NoNetwork::send_payload(Address, std::uint64_t, Slice, Nanos) { co_return no_network(); }
Status NoNetwork::post_payload(std::uint64_t, Slice) { return no_network(); }
Task<Result<std::uint64_t>> NoNetwork::wait_payload(std::uint64_t, Nanos) { co_return no_network(); }

Result<std::unique_ptr<RealWorld>> RealWorld::create(RealWorldOptions options) {
    TRY_ASSIGN(std::unique_ptr<Loop> loop, Loop::create());
    TRY_ASSIGN(std::unique_ptr<RealStorage> storage, RealStorage::create(*loop, options.storage));
    return std::unique_ptr<RealWorld>(new RealWorld(std::move(loop), std::move(storage), options));
}

RealWorld::RealWorld(std::unique_ptr<Loop> loop, std::unique_ptr<RealStorage> storage, const RealWorldOptions& options)
    : loop_(std::move(loop)),
      storage_(std::move(storage)),
      cpu_(std::make_unique<RealCpu>(*loop_, options.cpu_threads, options.cpu_class)),
      no_network_(*loop_),
      network_(&no_network_) {}

}  // namespace cairn
