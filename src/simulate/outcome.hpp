// What is asked of a cluster, and what came out.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulate/cluster.hpp"
#include "world/sim/bandwidth.hpp"

namespace cairn::simulate {

enum class Strategy : std::uint8_t {
    cairn,          // the production engine
    two_phase,      // synchronous two-phase aggregation: collective MPI-IO, one file after another's round
    at_offset,      // each rank writes its own bytes at its offset of one of K files: GenericIO without collectives, independent MPI-IO
    every_node,     // every node gathers its ranks' bytes and writes them into one of K files: ADIOS2, two levels
    file_per_rank,  // a file for each rank
    vertical,       // the same, all files of a node on one target (orcheck)
    orchestrated,   // the same, and on each node one rank after the other (orcheck, vertical placement and marshaling)
};
inline constexpr Strategy strategies[] = {Strategy::cairn, Strategy::two_phase, Strategy::at_offset, Strategy::every_node, Strategy::file_per_rank, Strategy::vertical, Strategy::orchestrated};
std::string_view name_of(Strategy strategy);
std::optional<Strategy> strategy_of(std::string_view name);

struct Question {
    Strategy strategy = Strategy::cairn;
    std::uint64_t seed = 1;
    std::optional<sim::Bandwidth::Sharing> sharing;  // none: exact up to 128 nodes, else queued
    double limit_s = 1e5;                            // of simulated time, for all of it
    // Now and then: simulated seconds, and bytes that reached storage of all there are. False: stop.
    std::function<bool(double seconds, std::uint64_t bytes, std::uint64_t bytes_total)> progress;
};

struct WriterOutcome {
    double received_s = 0, local_s = 0;
    std::uint64_t received_bytes = 0, local_bytes = 0;
};
struct LeaderOutcome {
    std::uint32_t node = 0;
    double seconds = 0;  // from its first byte until its last was durable, without waits for others
    std::uint64_t bytes = 0;
    std::vector<WriterOutcome> writers;
};
struct VersionOutcome {
    std::uint64_t bytes = 0;
    double capture_s = 0;       // until the last rank had its image in scratch and went on; of a synchronous strategy: until all was written
    double capture_mean_s = 0;  // of the ranks
    double elect_s = 0;         // from the last seal until the first part was made
    double write_s = 0;         // until the manifest was about to be published
    double commit_s = 0;        // until it stood
    std::vector<LeaderOutcome> leaders;
    double flush_s() const { return elect_s + write_s + commit_s; }
    double bytes_per_s() const { return flush_s() > 0 ? static_cast<double>(bytes) / flush_s() : 0; }
};
struct Outcome {
    Strategy strategy = Strategy::cairn;
    std::uint64_t seed = 1;
    std::uint32_t nodes = 0, ranks = 0, files = 0;
    sim::Bandwidth::Sharing sharing = sim::Bandwidth::Sharing::exact;
    std::vector<VersionOutcome> versions;
    std::vector<std::uint64_t> target_bytes;
    std::vector<double> target_busy_s;          // both of the versions
    std::optional<double> restart_s;            // with job.restart: from its start until the last rank had its image
    double seconds = 0;  // simulated, in all
    std::uint64_t events = 0, fingerprint = 0;
};

// The images' sizes, by rank: image_bytes x (1 +- imbalance), drawn from the seed.
std::uint64_t image_bytes_of(const Cluster& cluster, std::uint64_t seed, std::uint32_t rank, std::uint32_t version);

// deadline: not done within limit_s, or nothing more happened; cancelled: progress said so. The error names what was under way.
Result<Outcome> simulate(const Cluster& cluster, const Question& question);
std::uint64_t heap_bytes_of(const Cluster& cluster, Strategy strategy);  // about what that takes

// What bounds a flush of these bytes on this cluster, in bytes per second, slowest first.
struct Bound {
    std::string what;
    double bytes_per_s = 0;
};
std::vector<Bound> bounds_of(const Cluster& cluster, std::uint32_t writing_nodes, std::uint64_t seed = 1);

}  // namespace cairn::simulate
