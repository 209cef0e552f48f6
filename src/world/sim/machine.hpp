// Machine: cards, servers and targets that share their bandwidth among all that is under way (bandwidth.hpp), where Model serves everything
// first come, first served. For asking how fast a cluster is; the faults of Faults happen on both.
//
// A write passes the node's card out, the server of the target, and the target; a read the card in instead. A payload passes one card out and
// one in. Small messages take their latency only. Every operation on names takes its turn at the metadata server.
#pragma once

#include "world/sim/bandwidth.hpp"
#include "world/sim/simulation.hpp"

namespace cairn::sim {

struct MachineModel {
    Bandwidth::Sharing sharing = Bandwidth::Sharing::exact;
    std::vector<double> nic_out_rates, nic_in_rates;  // of each node, bytes per second; 0: no limit
    double scratch_rate = 0;                          // of a node
    double client_rate = 0;                           // what one node's client of the file system can write or read, beside its card
    double client_crowd = 0;                          // of it: Capacity, of requests under way
    std::uint32_t client_crowd_from = 1;
    double writer_rate = 0;                           // that one request reaches by itself
    std::vector<double> server_rates;  // at least one
    std::vector<double> target_rates;  // target t belongs to server t modulo how many there are
    double crowd = 0;                  // of a target: Capacity
    std::uint32_t crowd_from = 1;
    Nanos request_time = 0;            // that a request costs its target, beside the bytes
    std::uint32_t stripes = 1;         // of a file, over as many targets
    std::uint64_t stripe_bytes = 1 << 20;
    double metadata_ops_per_s = 0;     // 0: no limit
    bool connections = false;          // one from each node to each other one, to each server, and back: what takes the same goes in turn
    std::uint64_t write_behind_bytes = 0;  // of a file, that a node's client holds while their writes are over for the writer; 0: none
};

class Machine {
  public:
    Machine(Simulation& sim, MachineModel model);

    const MachineModel& model() const { return model_; }
    // Each calls done() when it is through. `efficiency`: the part of its card's rate that the writer can use.
    void send(NodeId from, NodeId to, std::uint64_t bytes, std::function<void()> done);
    void write(NodeId from, std::uint64_t file, std::size_t target, std::uint64_t offset, std::uint64_t bytes, double efficiency,
               std::function<void()> done);
    // As write(), but done() comes when no more than write_behind_bytes of what this node wrote into the file are still on their way: its client holds those.
    void write_behind(NodeId from, std::uint64_t file, std::size_t target, std::uint64_t offset, std::uint64_t bytes, std::function<void()> done);
    void finish(NodeId from, std::uint64_t file, std::function<void()> done);  // when all that it wrote so far is through
    // What one node writes into one file is one stream; of reads so many bytes of a file are one, whoever reads them: they are near each other, and who comes second finds them in memory.
    static constexpr std::uint64_t place_bytes = 64 << 20;
    void read(NodeId to, std::uint64_t file, std::size_t target, std::uint64_t offset, std::uint64_t bytes, double efficiency, std::function<void()> done);
    void scratch(NodeId node, std::uint64_t bytes, std::function<void()> done);
    // From now on this file's stripes go round these targets, which somebody asked for, and not round those of the model.
    void lay(std::uint64_t file, std::vector<std::size_t> targets, std::uint64_t stripe_bytes);
    // When one operation on a name is over that begins now.
    Nanos metadata();
    // From now on a target gives less: somebody else uses it.
    void set_target_rate(std::size_t target, double rate);
    void set_card_share(NodeId node, double share);  // of its card; the rest is the application's

    double target_busy_s(std::size_t target) const { return bandwidth_.busy_s(targets_[target]); }
    std::uint64_t target_bytes(std::size_t target) const { return bandwidth_.carried_bytes(targets_[target]); }

  private:
    void storage(NodeId node, Bandwidth::Resource card, std::uint64_t file, std::size_t target, std::uint64_t offset, std::uint64_t bytes,
                 std::uint64_t stream, double efficiency, std::function<void()> done);
    // One after the other on each connection; 0: on none.
    void pass(std::uint64_t connection, const Bandwidth::Uses& uses, std::uint64_t stream, std::function<void()> done);
    std::uint64_t connection(NodeId from, std::uint64_t to) const { return model_.connections ? (std::uint64_t{from} + 1) << 32 | to : 0; }
    struct Behind {
        std::uint64_t written = 0, through = 0;
        std::multimap<std::uint64_t, std::function<void()>> waiting;  // by how much must be through
    };
    void tell(Behind& behind);

    Simulation& sim_;
    MachineModel model_;
    Bandwidth bandwidth_;
    struct Stripes {
        std::vector<std::size_t> targets;
        std::uint64_t bytes = 0;
    };
    std::map<std::uint64_t, Stripes> laid_;  // by file
    struct Waiting {
        Bandwidth::Uses uses;
        std::uint64_t stream = 0;
        std::function<void()> done;
    };
    std::unordered_map<std::uint64_t, std::deque<Waiting>> connections_;  // that are in use, with who waits for them
    std::map<std::pair<NodeId, std::uint64_t>, Behind> behind_;           // by node and file
    std::vector<Bandwidth::Resource> out_, in_, scratch_, client_, servers_, targets_;
    Pipe metadata_;
};

}  // namespace cairn::sim
