// In this order: rank 0 looks which versions there are, and tells all ranks, as in the client library (client/survey.cpp); then every rank fetches its image into its memory
// (client/restore.cpp). What several ranks of a node need one of them reads (copies/shared_runs.hpp).
//
// A node has one process for all its ranks: so they share what the node can decode and verify. What each receives is compared with what it captured.
#include "simulate/restart.hpp"

#include <algorithm>

#include "read/fetch.hpp"
#include "read/restorable.hpp"
#include "world/gate.hpp"
#include "world/sim/content.hpp"
#include "world/sim/prng.hpp"

namespace cairn::simulate {

namespace {

constexpr Nanos wait_max = 100'000'000 * second;  // several of them are still less than Nanos has room for
constexpr std::uint64_t read_bytes = 8 << 20, table_bytes_max = 1 << 20;

// Everything, into memory.
Result<HandOut> hand_out(const ImageInfo& image, std::uint64_t bytes, std::uint64_t seed) {
    if (image.bytes != bytes) return Status(Code::internal, "the image has another size than was captured");
    HandOut out;
    for (const Region& region : image.regions) {
        const auto take = [seed, from = region.offset](std::uint64_t at, const Slice& data) {
            return sim::content_equal(data, sim::describe(seed, data.length, from + at)) ? Status() : Status(Code::internal, "other bytes than were captured");
        };
        out.add(image.rank, {region.offset, region.length}, "region " + region.name, take);
    }
    return out;
}

class Restart {
  public:
    Restart(const Cluster& cluster, const Question& question, sim::Simulation& sim, const Left& left);
    Restart(const Restart&) = delete;
    ~Restart();
    Result<double> run();

  private:
    struct Host {
        sim::Process* ranks = nullptr;
        std::vector<Rank> own;
        std::unique_ptr<Gate> gate;
    };
    Nanos limit() const { return std::min(wait_max, sim::span_of(question_.limit_s)); }
    RestoreSettings settings() const;
    ImagePlaces places_of(std::uint32_t node, Rank rank) const;
    Task<void> look();
    Status check_found() const;
    Task<Status> fetch_image_of(std::uint32_t node, Rank rank);
    Task<void> fetch(std::uint32_t node, Rank rank);

    const Cluster& cluster_;
    const Question& question_;
    sim::Simulation& sim_;
    const Left& left_;
    std::vector<Host> hosts_;
    bool looked_ = false;
    Result<RestorableSeries> found_{Status(Code::internal, "not looked")};
    std::uint64_t waiting_ = 0;  // ranks that have not got theirs
    Status failed_;
};

Restart::Restart(const Cluster& cluster, const Question& question, sim::Simulation& sim, const Left& left) : cluster_(cluster), question_(question), sim_(sim), left_(left) {
    sim.model().map_bytes_max = table_bytes_max;  // of what ranks of a node share
    Rank rank = 0;
    for (sim::SimNode* node : left.nodes) {
        Host host;
        host.ranks = &node->start_process("restart");
        for (std::uint32_t i = 0; i < cluster.ranks_per_node; ++i) host.own.push_back(rank++);
        host.gate = std::make_unique<Gate>(host.ranks->world().clock);
        hosts_.push_back(std::move(host));
    }
    waiting_ = rank;
}

Restart::~Restart() {  // processes die first, then their memory goes
    for (Host& host : hosts_) {
        host.ranks->kill();
        host.gate.reset();
    }
}

// What is slow is waited for.
RestoreSettings Restart::settings() const {
    RestoreSettings settings;
    settings.buffer_bytes = read_bytes;  // as the client library has
    settings.io_wait = limit();
    return settings;
}

ImagePlaces Restart::places_of(std::uint32_t node, Rank rank) const {
    ImagePlaces places;
    places.key = left_.newest;
    places.rank = rank;
    places.committed = true;
    const ScratchLayout scratch = ScratchLayout::of("/scratch", 0, node_text(node), left_.layout.persistent);
    if (hosts_[node].own.size() > 1) places.shared = SharedPlace{scratch.shared(), "simulated", "restart", hosts_[node].own, rank};
    return places;
}

Task<void> Restart::look() {
    World world = hosts_.front().ranks->world();
    const Id128 nobody;
    std::vector<SealedVersion> sealed;  // scratch is empty
    const Nanos deadline = world.clock.in(limit());
    Result<RestorableSeries> found = co_await load_restorable(world, left_.layout, left_.newest.name, std::move(sealed), nobody, deadline);
    found_ = std::move(found);
    looked_ = true;
}

Status Restart::check_found() const {
    TRY(found_.status());
    const Version newest = newest_of(found_->versions);
    if (newest == left_.newest.version) return {};
    return {Code::internal, "a restart would take version " + std::to_string(newest) + ", and the newest is " + std::to_string(left_.newest.version)};
}

Task<Status> Restart::fetch_image_of(std::uint32_t node, Rank rank) {
    World world = hosts_[node].ranks->world();
    const auto told = static_cast<Nanos>(2 * cluster_.network_latency_us * microsecond);  // which versions there are
    co_await world.clock.sleep(told);
    const Nanos begun = world.clock.now(), deadline = world.clock.in(limit());
    const std::uint64_t bytes = image_bytes_of(cluster_, question_.seed, rank, static_cast<std::uint32_t>(left_.newest.version));
    const std::uint64_t seed = content_seed(question_, left_.newest.version, rank);
    const Aim aim = [bytes, seed](const ImageInfo& image) { return hand_out(image, bytes, seed); };
    ImagePlaces places = places_of(node, rank);
    const RestoreSettings how = settings();
    Fetched fetched = co_await fetch_image(world, left_.layout, std::move(places), aim, how, deadline);
    if (!fetched.status.ok()) co_return std::move(fetched.status);
    if (!fetched.not_shared.ok()) co_return std::move(fetched.not_shared);
    const Nanos copied = begun + sim::span_of(static_cast<double>(bytes) / cluster_.memory_bytes_per_s);
    if (copied > world.clock.now()) co_await world.clock.sleep_until(copied);
    co_return Status();
}

Task<void> Restart::fetch(std::uint32_t node, Rank rank) {
    Status status = co_await fetch_image_of(node, rank);
    if (!status.ok() && failed_.ok()) failed_ = std::move(status).within("rank " + std::to_string(rank) + " restarting");
    --waiting_;
}

Result<double> Restart::run() {
    const std::string what = "restarting from version " + std::to_string(left_.newest.version);
    const Nanos begun = sim_.now();
    hosts_.front().gate->spawn(look());
    TRY(run_until(sim_, question_, 0, what, [&] { return looked_; }));
    TRY(check_found());
    for (std::uint32_t node = 0; node < hosts_.size(); ++node)
        for (const Rank rank : hosts_[node].own) hosts_[node].gate->spawn(fetch(node, rank));
    TRY(run_until(sim_, question_, 0, what, [&] { return waiting_ == 0 || !failed_.ok(); }));
    TRY(failed_);
    return static_cast<double>(sim_.now() - begun) / second;
}

}  // namespace

std::string node_text(std::uint32_t node) { return "n" + std::to_string(node); }

std::uint64_t content_seed(const Question& question, Version version, Rank rank) { return sim::mix(question.seed) ^ sim::mix(version << 32 | rank); }

Result<double> restart_s(const Cluster& cluster, const Question& question, sim::Simulation& sim, const Left& left) {
    Restart restart(cluster, question, sim, left);
    return restart.run();
}

}  // namespace cairn::simulate
