// From the cluster file to rates of cards, servers and targets.
#include "simulate/machine.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <numeric>

#include "base/heap.hpp"
#include "base/text_table.hpp"
#include "base/units.hpp"
#include "storage/placement.hpp"
#include "world/sim/prng.hpp"

namespace cairn::simulate {

namespace {

constexpr std::uint64_t heap_many_bytes = 100 << 20;

struct Row {
    Strategy strategy;
    std::string_view name;
};
constexpr Row rows[] = {{Strategy::cairn, "cairn"},
                        {Strategy::two_phase, "two_phase"},
                        {Strategy::at_offset, "at_offset"},
                        {Strategy::every_node, "every_node"},
                        {Strategy::file_per_rank, "file_per_rank"},
                        {Strategy::vertical, "vertical"},
                        {Strategy::orchestrated, "orchestrated"}};

double share_of(sim::Prng& prng) { return static_cast<double>(prng.next() >> 11) * 0x1p-53; }  // in [0, 1)

constexpr std::uint32_t exact_nodes_max = 128;

std::vector<double> server_rates(const Cluster& cluster) {
    std::vector<double> rates(cluster.servers, cluster.server_bytes_per_s);
    for (std::size_t server = 0; server < rates.size() && !cluster.servers_bytes_per_s.empty(); ++server)
        rates[server] = cluster.servers_bytes_per_s[server % cluster.servers_bytes_per_s.size()];
    return rates;
}

double target_rate(const Cluster& cluster) { return cluster.target_bytes_per_s * (cluster.stripes == 1 ? cluster.whole_files : 1); }

// What the seed draws: in the same order whoever asks.
struct Rates {
    std::vector<double> out, in, targets;
};
Rates rates_of(const Cluster& cluster, std::uint64_t seed) {
    sim::Prng prng(sim::mix(seed ^ 0x6d61));
    const auto drawn = [&](const Span& span) { return span.low + (span.high - span.low) * share_of(prng); };
    Rates rates;
    for (std::uint32_t node = 0; node < cluster.nodes + cluster.io_nodes; ++node) {
        rates.out.push_back(drawn(cluster.nic_out_bytes_per_s) * (1 - cluster.network_share));
        rates.in.push_back(drawn(cluster.nic_in_bytes_per_s) * (1 - cluster.network_share));
    }
    for (std::uint32_t target = 0; target < cluster.targets; ++target) {
        const double others = cluster.background * (1 + cluster.background_spread * (2 * share_of(prng) - 1));
        rates.targets.push_back(target_rate(cluster) * (1 - others));
    }
    return rates;
}

// Of the fastest so many.
double most_of(std::vector<double> rates, std::uint64_t count) {
    std::sort(rates.begin(), rates.end(), std::greater<>());
    return std::accumulate(rates.begin(), rates.begin() + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(count, rates.size())), 0.0);
}

}  // namespace

std::string_view name_of(Strategy strategy) {
    return std::find_if(std::begin(rows), std::end(rows), [&](const Row& row) { return row.strategy == strategy; })->name;
}

std::optional<Strategy> strategy_of(std::string_view name) {
    for (const Row& row : rows)
        if (row.name == name) return row.strategy;
    return std::nullopt;
}

std::uint64_t image_bytes_of(const Cluster& cluster, std::uint64_t seed, std::uint32_t rank, std::uint32_t version) {
    if (!cluster.images_bytes.empty()) return static_cast<std::uint64_t>(cluster.images_bytes[rank % cluster.images_bytes.size()]);
    sim::Prng prng(sim::mix(seed ^ 0x696d) ^ sim::mix((std::uint64_t{version} << 32) | rank));
    const double share = 1 + cluster.imbalance * (2 * share_of(prng) - 1);
    return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(static_cast<double>(cluster.image_bytes) * share));
}

sim::Bandwidth::Sharing sharing_of(const Cluster& cluster, const Question& question) {
    if (question.sharing) return *question.sharing;
    return cluster.nodes + cluster.io_nodes <= exact_nodes_max ? sim::Bandwidth::Sharing::exact : sim::Bandwidth::Sharing::queued;
}

sim::Model model_of(const Cluster& cluster) {
    sim::Model model;
    model.checksum_rate = cluster.checksum_bytes_per_s;
    model.codec_rate = cluster.codec_bytes_per_s;
    model.decode_rate = cluster.decode_bytes_per_s;
    model.codec_shrinks = cluster.codec != Cluster::Codec::off;
    model.stored_min = model.stored_max = 1 / cluster.codec_ratio;
    if (cluster.hard_share > 0)
        model.codec_keys = {{1 - cluster.hard_share, cluster.codec_bytes_per_s, 1 / cluster.codec_ratio, 1 / cluster.codec_ratio},
                            {cluster.hard_share, cluster.hard_bytes_per_s, 1 / cluster.hard_ratio, 1 / cluster.hard_ratio}};
    model.scratch_latency = microsecond;
    model.persistent_latency = static_cast<Nanos>(cluster.latency_us * microsecond);
    model.fsync_latency = static_cast<Nanos>(cluster.fsync_ms * millisecond);
    model.network_latency = static_cast<Nanos>(cluster.network_latency_us * microsecond);
    model.target_rates.assign(cluster.targets, target_rate(cluster));
    model.map_bytes_max = 0;
    model.persistent_forgets = false;
    return model;
}

std::unique_ptr<sim::Machine> make_machine(sim::Simulation& sim, const Cluster& cluster, const Question& question) {
    Rates rates = rates_of(cluster, question.seed);
    sim::MachineModel model;
    model.sharing = sharing_of(cluster, question);
    model.nic_out_rates = std::move(rates.out);
    model.nic_in_rates = std::move(rates.in);
    model.scratch_rate = cluster.scratch_bytes_per_s;
    model.client_rate = cluster.client_bytes_per_s;
    model.client_crowd = cluster.client_crowd;
    model.client_crowd_from = cluster.client_crowd_from;
    model.writer_rate = cluster.writer_bytes_per_s;
    model.server_rates = server_rates(cluster);
    model.target_rates = std::move(rates.targets);
    model.crowd = cluster.crowd;
    model.crowd_from = cluster.crowd_from;
    model.request_time = static_cast<Nanos>(cluster.request_us * microsecond);
    model.stripes = cluster.stripes;
    model.stripe_bytes = cluster.stripe_bytes;
    model.metadata_ops_per_s = cluster.metadata_ops_per_s;
    model.connections = cluster.connections != 0;
    model.write_behind_bytes = cluster.write_behind_bytes;
    return std::make_unique<sim::Machine>(sim, std::move(model));
}

void take_targets(const sim::Machine& machine, Outcome& outcome) {
    for (std::size_t target = 0; target < machine.model().target_rates.size(); ++target) {
        outcome.target_bytes.push_back(machine.target_bytes(target));
        outcome.target_busy_s.push_back(machine.target_busy_s(target));
    }
}

Status not_over(const std::string& what, Nanos now) {
    return deadline_passed(what + " was not over after " + format_duration(static_cast<double>(now) / second) + " of simulated time (--limit-s)");
}

Status run_until(sim::Simulation& sim, const Question& question, std::uint64_t bytes_total, const std::string& what, const std::function<bool()>& done) {
    using Time = std::chrono::steady_clock;
    const Nanos limit = sim::span_of(question.limit_s);
    Time::time_point told = Time::now();
    bool cancelled = false;
    std::uint64_t events = 0;
    const auto look = [&] {
        if (done()) return true;
        if (++events % 4096 != 0 || !question.progress || Time::now() - told < std::chrono::milliseconds(200)) return false;
        told = Time::now();
        std::uint64_t bytes = 0;
        for (std::size_t target = 0; target < sim.machine()->model().target_rates.size(); ++target) bytes += sim.machine()->target_bytes(target);
        cancelled = !question.progress(static_cast<double>(sim.now()) / second, bytes, bytes_total);
        return cancelled;
    };
    const bool held = sim.run_until(look, limit);
    if (cancelled) return Status(Code::cancelled, "stopped while " + what);
    if (held) return {};
    if (sim.now() < limit)
        return Status(Code::internal, what + ": nothing more happens after " + format_duration(static_cast<double>(sim.now()) / second) + " of simulated time");
    return not_over(what, sim.now());
}

// Of one version of the engine, from runs of 1,024 to 65,536 nodes: of a node and a rank all that describes them, of a block its checksums on both sides. Of a restart, from
// one of 15,408 ranks: each has the blocks of all who are in its parts.
std::uint64_t heap_bytes_of(const Cluster& cluster, Strategy strategy) {
    if (strategy != Strategy::cairn) return cluster.nodes * (std::uint64_t{2} << 10) + cluster.ranks() * 300;
    const std::vector<double>& images = cluster.images_bytes;
    const double image = images.empty() ? static_cast<double>(cluster.image_bytes) : std::accumulate(images.begin(), images.end(), 0.0) / static_cast<double>(images.size());
    const std::uint64_t blocks = cluster.ranks() * (static_cast<std::uint64_t>(image) / cluster.block_bytes + 1);
    const double held = static_cast<double>(blocks) * static_cast<double>(cluster.ranks() / cluster.files + 1) * 60;
    const std::uint64_t footers = cluster.restart != 0 ? static_cast<std::uint64_t>(std::min(held, 1e18)) : 0;
    return cluster.nodes * (std::uint64_t{30} << 10) + cluster.ranks() * (std::uint64_t{9} << 10) + blocks * 38 + footers;
}

Result<Outcome> simulate(const Cluster& cluster, const Question& question) {
    TRY(check_cluster(cluster));
    const std::uint64_t heap = heap_bytes_of(cluster, question.strategy);
    if (heap > heap_many_bytes) expect_heap(heap);
    sim::Simulation sim(question.seed, model_of(cluster));
    sim.set_machine(make_machine(sim, cluster, question));
    Outcome outcome;
    outcome.strategy = question.strategy;
    outcome.seed = question.seed;
    outcome.nodes = cluster.nodes;
    outcome.ranks = static_cast<std::uint32_t>(cluster.ranks());
    outcome.files = question.strategy == Strategy::cairn || question.strategy < Strategy::file_per_rank ? cluster.files : outcome.ranks;
    if (question.strategy == Strategy::every_node) outcome.files = std::min(outcome.files, cluster.nodes);  // one writer a node
    outcome.sharing = sharing_of(cluster, question);
    TRY(question.strategy == Strategy::cairn ? run_cairn(cluster, question, sim, outcome) : run_rival(cluster, question, sim, outcome));
    outcome.seconds = static_cast<double>(sim.now()) / second;
    outcome.events = sim.events_run();
    outcome.fingerprint = sim.fingerprint();
    return outcome;
}

namespace {

// Raw bytes to stored ones, and how many raw ones all nodes encode in a second; 0: nothing is encoded.
struct CodecBound {
    double ratio = 1, bytes_per_s = 0;
};
// Of all data, or of those alone that are not hard, whichever promises more; where storage takes so many raw bytes. Fast does not ask.
CodecBound codec_bound(const Cluster& cluster, double storage_bytes_per_s, std::uint32_t writing_nodes) {
    if (cluster.codec == Cluster::Codec::off) return {};
    const double hard = cluster.hard_share, stored = (1 - hard) / cluster.codec_ratio, took_s = (1 - hard) / cluster.codec_bytes_per_s;
    const CodecBound all{std::max(1.0, 1 / (stored + hard / cluster.hard_ratio)), writing_nodes / (took_s + hard / cluster.hard_bytes_per_s)};
    if (cluster.codec == Cluster::Codec::fast) return all;
    const auto durable = [&](const CodecBound& bound) { return std::min(bound.ratio * storage_bytes_per_s, bound.bytes_per_s); };
    const CodecBound some{std::max(1.0, 1 / (stored + hard)), hard < 1 ? writing_nodes / took_s : 0};
    const CodecBound& best = durable(some) > durable(all) ? some : all;
    return durable(best) > storage_bytes_per_s ? best : CodecBound();
}

}  // namespace

std::vector<Bound> bounds_of(const Cluster& cluster, std::uint32_t writing_nodes, std::uint64_t seed) {
    const Rates rates = rates_of(cluster, seed);
    const std::vector<double> servers = server_rates(cluster);
    const bool guests = cluster.io_nodes >= writing_nodes;  // I/O nodes lead: all that they write comes in first
    const auto cards = [&](const std::vector<double>& all) {
        const auto first_guest = all.begin() + cluster.nodes;
        return most_of(guests ? std::vector<double>(first_guest, all.end()) : std::vector<double>(all.begin(), first_guest), writing_nodes);
    };
    const std::string writing = plural(writing_nodes, "writing node");
    std::vector<Bound> bounds = {{"cards out of " + writing, cards(rates.out)},
                                 {plural(cluster.servers, "server"), most_of(servers, servers.size())},
                                 {plural(cluster.targets, "target"), most_of(rates.targets, cluster.targets)}};
    if (cluster.client_bytes_per_s > 0) bounds.push_back({"file system clients of " + writing, cluster.client_bytes_per_s * writing_nodes});
    const std::uint64_t file_bytes = cluster.image_bytes * cluster.ranks() / cluster.files;
    const std::uint32_t stripes = cluster.spans != 0 ? std::max(1u, spread(cluster.files, cluster.targets, file_bytes).count) : cluster.stripes;
    const std::uint64_t held = std::uint64_t{cluster.files} * stripes;  // targets that the files lie on
    const std::string lie_on = " that " + plural(cluster.files, "file") + (cluster.files == 1 ? " lies on" : " lie on");
    if (held < cluster.targets) bounds.push_back({plural(held, "target") + lie_on, most_of(rates.targets, held)});
    if (held < cluster.servers) bounds.push_back({plural(held, "server") + lie_on, most_of(servers, held)});
    const auto is_lower = [](const Bound& a, const Bound& b) { return a.bytes_per_s < b.bytes_per_s; };
    const double raw = std::min_element(bounds.begin(), bounds.end(), is_lower)->bytes_per_s;
    const bool at_followers = cluster.flush.encode_at == EncodeAt::follower;  // each node encodes what it has
    const CodecBound codec = codec_bound(cluster, raw, at_followers ? cluster.nodes : writing_nodes);
    for (Bound& bound : bounds) bound.bytes_per_s *= codec.ratio;  // in raw bytes, as all else
    if (codec.bytes_per_s > 0) bounds.push_back({"encoding on " + (at_followers ? plural(cluster.nodes, "node") : writing), codec.bytes_per_s});
    if (guests) bounds.push_back({"cards into " + writing, cards(rates.in) * (at_followers ? codec.ratio : 1)});
    std::sort(bounds.begin(), bounds.end(), is_lower);
    return bounds;
}

}  // namespace cairn::simulate
