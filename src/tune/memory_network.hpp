// MemoryNetwork: the daemons of one process talk to each other. Messages are queued to the peer's inbox; a payload is one memory copy into the posted
// buffer, on a thread of its own: it stands for what a network card does by DMA, which costs memory bandwidth and no processor of the leader's
// loop. A processor it does cost here; it takes no more than what a tcp provider takes for the same bytes.
//
// Nothing is lost but what finds an inbox full, and nobody is slow: what is measured over it is storage.
#pragma once

#include <map>
#include <memory>

#include "world/network.hpp"
#include "world/real/loop.hpp"
#include "world/real/worker_pool.hpp"

namespace cairn::tune {

struct MemoryPort;

// What endpoints are plugged into. Outlives them.
class MemorySwitch {
  public:
    explicit MemorySwitch(Loop& loop);

  private:
    friend class MemoryNetwork;
    Loop& loop_;
    WorkerPool copiers_;
    std::map<Address, std::shared_ptr<MemoryPort>> ports_;
    std::uint64_t plugged_ = 0;
};

class MemoryNetwork final : public Network {
  public:
    explicit MemoryNetwork(MemorySwitch& network_switch);
    ~MemoryNetwork() override;  // its address is never given again

    Address self() const override { return self_; }
    Task<Status> send(Address to, Bytes message, Nanos deadline) override;
    Channel<Bytes>& inbox() override;
    Task<Status> send_payload(Address to, std::uint64_t tag, Slice data, Nanos deadline) override;
    Status post_payload(std::uint64_t tag, Slice into) override;
    Task<Result<std::uint64_t>> wait_payload(std::uint64_t tag, Nanos deadline) override;

  private:
    MemorySwitch& switch_;
    Address self_;
    std::shared_ptr<MemoryPort> port_;
};

}  // namespace cairn::tune
