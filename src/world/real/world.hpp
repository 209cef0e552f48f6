// RealWorld: the real clock, storage, processor and randomness in one, and room for a network.
#pragma once

#include <memory>

#include "world/real/cpu.hpp"
#include "world/real/loop.hpp"
#include "world/real/random.hpp"
#include "world/real/storage.hpp"
#include "world/world.hpp"

namespace cairn {

// For programs that talk to no other node: clients and the command. Everything fails with Code::unavailable; nothing
// arrives.
class NoNetwork final : public Network {
  public:
    explicit NoNetwork(Clock& clock) : inbox_(clock, 1) {}
    Address self() const override { return {}; }
    Task<Status> send(Address to, Bytes message, Nanos deadline) override;
    Channel<Bytes>& inbox() override { return inbox_; }
    Task<Status> send_payload(Address to, std::uint64_t tag, Slice data, Nanos deadline) override;
    Status post_payload(std::uint64_t tag, Slice into) override;
    Task<Result<std::uint64_t>> wait_payload(std::uint64_t tag, Nanos deadline) override;

  private:
    Channel<Bytes> inbox_;
};

struct RealWorldOptions {
    StorageOptions storage;
    unsigned cpu_threads = 0;  // 0: half of the processors
    ThreadClass cpu_class;     // of these
};

class RealWorld {
  public:
    static Result<std::unique_ptr<RealWorld>> create(RealWorldOptions options);

    Loop& loop() noexcept { return *loop_; }
    RealStorage& storage() noexcept { return *storage_; }
    RealCpu& cpu() noexcept { return *cpu_; }
    SystemRandom& random() noexcept { return random_; }

    // From now on world() has this network; it outlives what is given that world. Before, there is none (NoNetwork).
    void use_network(Network& network) noexcept { network_ = &network; }
    World world() noexcept { return {*loop_, *storage_, *network_, random_, *cpu_}; }

  private:
    RealWorld(std::unique_ptr<Loop> loop, std::unique_ptr<RealStorage> storage, const RealWorldOptions& options);

    std::unique_ptr<Loop> loop_;  // first: outlives the others
    std::unique_ptr<RealStorage> storage_;
    std::unique_ptr<RealCpu> cpu_;
    SystemRandom random_;
    NoNetwork no_network_;
    Network* network_;
};

}  // namespace cairn
