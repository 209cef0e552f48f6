// Cluster: what `cairn simulate` is told of a machine and a job, from a TOML file. docs/simulate.md is made from the same table of keys.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "engine/router/node.hpp"

namespace cairn::simulate {

struct Span {  // of a rate that differs from node to node: each draws its own
    double low = 0, high = 0;
};

struct Cluster {
    enum class Codec : std::uint8_t { off, fast, automatic };
    std::string name, file;

    // [job]
    std::uint32_t nodes = 0, io_nodes = 0, ranks_per_node = 1, files = 0, versions = 1;
    std::uint64_t image_bytes = 0;
    std::vector<double> images_bytes;  // of each rank in turn, again and again; none: image_bytes and imbalance
    double imbalance = 0;       // images are image_bytes x (1 - imbalance ... 1 + imbalance)
    double compute_s = 0;       // between two checkpoints
    double network_share = 0;   // of every card, that the application takes while it computes
    std::uint32_t restart = 0;  // 1: after the last version all ranks read it back

    // [node], bytes per second
    Span nic_out_bytes_per_s, nic_in_bytes_per_s;
    double memory_bytes_per_s = 0;    // one process copies into scratch
    double scratch_bytes_per_s = 0;   // all processes of a node together
    double checksum_bytes_per_s = 0;  // of a daemon
    double client_bytes_per_s = 0;    // what the file system's client on one node can do; 0: no limit
    double client_crowd = 0;          // as crowd, of its requests under way
    std::uint32_t client_crowd_from = 1;
    double writer_bytes_per_s = 0;    // what one request reaches by itself; 0: no limit
    double network_latency_us = 5;
    std::uint32_t connections = 0;    // 1: one each way between two nodes, and between a node and a server; what takes the same goes in turn

    // [storage]
    std::uint32_t servers = 1, targets = 1, stripes = 1;
    double server_bytes_per_s = 0, target_bytes_per_s = 0;
    std::vector<double> servers_bytes_per_s;  // of each; none: server_bytes_per_s
    std::uint64_t stripe_bytes = 1 << 20;
    std::uint32_t spans = 0;  // 1: Cairn says on which targets a file's stripes lie
    double whole_files = 1;  // part of a target's rate that is reached where each file lies whole on one
    double request_us = 0, crowd = 0;
    std::uint32_t crowd_from = 1;
    double latency_us = 200, fsync_ms = 2;
    double metadata_ops_per_s = 0;
    std::uint64_t write_behind_bytes = 0;  // of a file, that a node's client holds while their writes are told to be over
    std::uint32_t placeable = 1;  // whether Cairn can say on which target a part lies
    double background = 0;       // share of every target that others take
    double background_spread = 0;  // targets differ: their share is background x (1 - spread ... 1 + spread)

    // [flush], as in cairn.toml
    FlushSettings flush;
    std::uint64_t block_bytes = 1 << 20;

    Codec codec = Codec::off;

    // [codec]
    double codec_ratio = 1.5, codec_bytes_per_s = 500e6, decode_bytes_per_s = 2e9;
    double hard_share = 0, hard_ratio = 1.1, hard_bytes_per_s = 50e6;  // of so much of the data

    // [rivals]: of each strategy, the part of the cards' rate that it reaches where nothing else binds; under NAME_uneven, the part of that which is
    // left where images differ in size
    std::map<std::string, double> efficiency;

    std::uint64_t ranks() const { return std::uint64_t{nodes} * ranks_per_node; }
};

// All that is wrong in one error, a line each with file, line, key and what is allowed.
Result<Cluster> read_cluster(const std::string& path);
Result<Cluster> parse_cluster(const std::string& text, const std::string& path);
// What concerns several values together; also after options of the command line changed some.
Status check_cluster(const Cluster& cluster);
// "job.nodes=128": one key, as if it stood in the file.
Status set_key(Cluster& cluster, const std::string& assignment);

std::string cluster_markdown();  // the table of keys

}  // namespace cairn::simulate
