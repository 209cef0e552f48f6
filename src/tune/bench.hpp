// Bench: one node that flushes, for real, again and again. A leader's Node with images in scratch and the Nodes of its followers with images prepared
// in memory, all in this process, over the real clock, storage and processors and a network that copies memory. So the engine's own writers are what is
// measured, with the settings of a variant.
//
// One run: daemons come up, all images are said to be sealed, node 0 coordinates and leads (all nodes hold the same bytes, and of equals the first
// is elected), writes, commits; its counters tell the times; the daemons go, and the version's directory with them. Nothing of a run is left when it has
// ended, however it ended.
//
// ispdc23, Section IV-A, is what is imitated: K local files of a size plus or minus 20 %, the same again from each follower, checksums of
// received data made beforehand (its follower would) and of local data during the run (the leader does).
#pragma once

#include <functional>
#include <memory>

#include "tune/memory_network.hpp"
#include "tune/variant.hpp"
#include "tune/warm_storage.hpp"
#include "world/real/world.hpp"

namespace cairn::tune {

struct BenchOptions {
    std::string target;   // existing directory for parts; runs make directories in it
    std::string scratch;  // existing directory for local files
    std::uint32_t files_local = 8;
    std::uint64_t seed = 1;
    FlushSettings flush;       // what is not varied
    unsigned cpu_threads = 0;  // as daemon.cpu_threads
    std::uint64_t memory_bytes_max = 1ull << 30;  // of all buffers
    std::function<bool()> stop = [] { return false; };  // asked every now and then: the run ends as cancelled
};

// Of the local files of this mean size, and of those that each follower would send: known before anything is made.
std::vector<std::uint64_t> image_sizes(std::uint32_t files_local, std::uint64_t seed, std::uint64_t file_bytes);

class Bench {
  public:
    static Result<std::unique_ptr<Bench>> create(BenchOptions options);
    ~Bench();  // takes the local files away

    bool has_uring() const noexcept { return uring_ != nullptr; }
    const std::string& uring_reason() const noexcept { return uring_reason_; }  // why it has not
    Loop& loop() noexcept { return *loop_; }
    void set_targets(PlacementTargets targets) { targets_ = std::move(targets); }

    // Files of this mean size, for the runs to come. Blocks. deadline: they were not made by `until`.
    Status prepare(std::uint64_t file_bytes, Nanos until = never);
    std::uint64_t file_bytes() const noexcept { return file_bytes_; }
    // What prepare() takes in scratch, and what a run writes of one node's.
    std::uint64_t local_bytes(std::uint64_t file_bytes) const;

    Result<Measured> run(const Variant& variant, std::uint32_t followers);

  private:
    struct Local {
        std::string path;
        std::uint64_t bytes = 0;
        BufferPtr map;
    };
    struct Cluster;

    explicit Bench(BenchOptions options) : options_(std::move(options)) {}
    Status make_local(std::size_t number, std::uint64_t bytes, Nanos until);
    Task<Status> map_locals();
    void remove_locals();
    const std::vector<std::uint64_t>& received_checksums(std::uint64_t bytes, std::uint64_t block_bytes);
    Task<Result<Measured>> flush(Cluster& cluster);
    Task<void> let_go(Cluster& cluster);
    Status clear(const std::string& directory);

    BenchOptions options_;
    std::unique_ptr<Loop> loop_;  // first: outlives the others
    std::unique_ptr<RealStorage> uring_, threads_;
    std::string uring_reason_;
    std::unique_ptr<RealCpu> cpu_;
    SystemRandom random_;
    std::unique_ptr<MemorySwitch> switch_;
    std::shared_ptr<BufferStock> stock_;
    PlacementTargets targets_;
    std::uint64_t file_bytes_ = 0;
    std::uint64_t runs_ = 0;
    std::vector<Local> locals_;
    BufferPtr received_;  // what every image of a follower begins with
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<std::uint64_t>> received_checksums_;
};

}  // namespace cairn::tune
