// SimNetwork: one endpoint of the simulated network. Messages and payloads pass the sender's and the receiver's NIC, each first come, first
// served; on the way they are lost, delayed, repeated and overtaken as Faults says.
#pragma once

#include <algorithm>

#include "world/sim/simulation.hpp"

namespace cairn::sim {

class SimNetwork final : public Network {
  public:
    SimNetwork(Process& process, Clock& clock);

    Address self() const override { return process_.address(); }
    Task<Status> send(Address to, Bytes message, Nanos deadline) override;
    Channel<Bytes>& inbox() override { return inbox_; }
    Task<Status> send_payload(Address to, std::uint64_t tag, Slice data, Nanos deadline) override;
    Status post_payload(std::uint64_t tag, Slice into) override;
    Task<Result<std::uint64_t>> wait_payload(std::uint64_t tag, Nanos deadline) override;

    // Posted, and neither come nor withdrawn.
    std::size_t postings_open() const {
        return static_cast<std::size_t>(std::count_if(postings_.begin(), postings_.end(), [](const auto& entry) { return !entry.second->withdrawn; }));
    }
    // The process is dead: nothing is posted any more.
    void drop_postings() { postings_.clear(); }

  private:
    struct Posting {
        Slice into;
        unsigned transfers = 0;  // under way
        bool done = false;
        bool withdrawn = false;  // kept only for what is under way
        Status status;
        std::uint64_t length = 0;
        Event changed;
        explicit Posting(Clock& clock) : changed(clock) {}
    };
    struct Transfer {
        Slice data;
        std::optional<Runs> captured;
        bool matched = false;  // a posting was there when it began
        bool done = false;
        Status status;
        Event changed;
        explicit Transfer(Clock& clock) : changed(clock) {}
    };
    Nanos latency();
    Nanos arrival(Process& to, std::uint64_t bytes, Nanos& left);
    bool cut_off(const Process* to);
    void deliver_later(Process& to, Bytes message, Nanos when);
    void begin_transfer(const std::shared_ptr<Transfer>& transfer, const Address& to, std::uint64_t tag, Nanos deadline);
    void arrive(const std::shared_ptr<Transfer>& transfer, Process& to, std::uint64_t tag);
    void take(std::uint64_t tag, const Runs* runs);
    void withdraw(std::uint64_t tag);

    Process& process_;
    Simulation& sim_;
    Clock& clock_;
    Channel<Bytes> inbox_;
    std::map<std::uint64_t, std::shared_ptr<Posting>> postings_;
};

}  // namespace cairn::sim
