// Other strategies on the same cards, servers and targets: models of their I/O pattern, not of their code. What such a model leaves out (headers,
// locks, copies) is one constant for each, the part of the cards' rate that it reaches where nothing else binds ([rivals] of the cluster file).
//
//   file_per_rank  every rank makes a file of its own and writes it front to back, a buffer at a time
//   vertical       the same with all files of a node on one target, unstriped (orcheck, Section III-B)
//   orchestrated   the same, and a node's ranks write one after the other (orcheck, staged marshaling)
//   at_offset      ranks share K files, N / K of them each; every rank writes its own bytes at its offset, a buffer at a time (GenericIO without
//                  collectives, independent MPI-IO). Synchronous: ranks wait for all of it
//   every_node     nodes share K files; on each node one writer gathers the ranks' bytes in memory, a buffer at a time, and writes them (ADIOS2's
//                  two-level aggregation)
//   two_phase      K leaders; in rounds each is sent a buffer's worth of its file by its ranks and, when it is there, writes it; the next round
//                  begins when all of a file's ranks are done with this one (ROMIO's two-phase I/O). Synchronous
//
// A restart is the way back of each: whoever wrote a range reads it, in the same order and with the same constant; with two_phase leaders read, and
// send each rank what is its own before the next round.
#include <algorithm>
#include <deque>

#include "simulate/machine.hpp"

namespace cairn::simulate {

namespace {

// One that writes front to back, a buffer after the other, or reads.
struct Stream {
    std::uint32_t node = 0;  // whose card
    std::uint64_t file = 0, offset = 0, left = 0;
    bool creates = false;    // its file; others wait for nobody, an open is an operation too
    // two_phase: who sends what it writes, or is sent what it reads, in the order of the file
    std::deque<std::pair<std::uint32_t, std::uint64_t>> sources;
    Nanos begun = 0, ended = 0;
    std::uint64_t bytes = 0;
};

class Rival {
  public:
    Rival(const Cluster& cluster, const Question& question, sim::Simulation& sim)
        : cluster_(cluster), question_(question), sim_(sim), machine_(*sim.machine()) {
        const std::string name(name_of(question.strategy));
        const auto part = [&](const std::string& key) {
            const auto found = cluster.efficiency.find(key);
            return found == cluster.efficiency.end() ? 1 : found->second;
        };
        efficiency_ = part(name) * (cluster.imbalance > 0 || !cluster.images_bytes.empty() ? part(name + "_uneven") : 1);
    }
    Result<VersionOutcome> version(std::uint32_t version);
    Result<double> restart(std::uint32_t version);  // seconds

  private:
    bool synchronous() const { return question_.strategy == Strategy::two_phase || question_.strategy == Strategy::at_offset; }
    void lay_out(std::uint32_t version);
    Status capture(std::uint32_t version, VersionOutcome& outcome);
    void open(std::size_t stream);
    void next(std::size_t stream);
    void transfer(std::size_t stream, std::uint64_t bytes, std::function<void()> then);
    void exchange(std::size_t stream, std::uint64_t bytes, std::function<void()> then);
    void done(std::size_t stream);
    Status run(std::uint64_t bytes_total, const std::string& what);

    const Cluster& cluster_;
    const Question& question_;
    sim::Simulation& sim_;
    sim::Machine& machine_;
    double efficiency_ = 1;
    std::vector<Stream> streams_;
    std::size_t open_ = 0;
    bool reading_ = false;
};

void Rival::lay_out(std::uint32_t version) {
    const auto ranks = static_cast<std::uint32_t>(cluster_.ranks());
    const auto file_of_rank = [&](std::uint32_t rank) { return std::uint64_t{rank} * cluster_.files / ranks; };
    std::vector<std::uint64_t> ends(std::max(cluster_.files, ranks), 0);
    streams_.clear();
    if (question_.strategy == Strategy::two_phase)
        for (std::uint32_t file = 0; file < cluster_.files; ++file) streams_.push_back({static_cast<std::uint32_t>(std::uint64_t{file} * cluster_.nodes / cluster_.files), file, 0, 0, true, {}, 0, 0, 0});
    if (question_.strategy == Strategy::every_node)
        for (std::uint32_t node = 0; node < cluster_.nodes; ++node) streams_.push_back({node, std::uint64_t{node} * std::min(cluster_.files, cluster_.nodes) / cluster_.nodes, 0, 0, false, {}, 0, 0, 0});
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        const std::uint64_t bytes = image_bytes_of(cluster_, question_.seed, rank, version);
        const std::uint32_t node = rank / cluster_.ranks_per_node;
        switch (question_.strategy) {
            case Strategy::file_per_rank:
            case Strategy::vertical:
            case Strategy::orchestrated: streams_.push_back({node, rank, 0, bytes, true, {}, 0, 0, bytes}); break;
            case Strategy::at_offset: streams_.push_back({node, file_of_rank(rank), 0, bytes, false, {}, 0, 0, bytes}); break;
            case Strategy::every_node:
                streams_[node].left += bytes;
                streams_[node].bytes += bytes;
                break;
            case Strategy::two_phase: {
                Stream& file = streams_[file_of_rank(rank)];
                file.left += bytes;
                file.bytes += bytes;
                file.sources.emplace_back(node, bytes);
                break;
            }
            case Strategy::cairn: break;
        }
    }
    for (Stream& stream : streams_) {
        std::uint64_t& end = ends[stream.file];
        stream.creates = stream.creates || end == 0;
        stream.offset = end;
        end += stream.bytes;
    }
}

// Into scratch, for those that write in the background.
Status Rival::capture(std::uint32_t version, VersionOutcome& outcome) {
    const Nanos begun = sim_.now();
    std::uint32_t left = static_cast<std::uint32_t>(cluster_.ranks());
    double sum = 0;
    for (std::uint32_t rank = 0; rank < cluster_.ranks(); ++rank) {
        const std::uint64_t bytes = image_bytes_of(cluster_, question_.seed, rank, version);
        const Nanos copied = begun + sim::span_of(static_cast<double>(bytes) / cluster_.memory_bytes_per_s);
        machine_.scratch(rank / cluster_.ranks_per_node, bytes, [&, copied] {
            sim_.at(std::max(copied, sim_.now()), [&] {
                sum += static_cast<double>(sim_.now() - begun) / second;
                --left;
            });
        });
    }
    TRY(run_until(sim_, question_, 0, "capturing version " + std::to_string(version), [&] { return left == 0; }));
    outcome.capture_s = static_cast<double>(sim_.now() - begun) / second;
    outcome.capture_mean_s = sum / static_cast<double>(cluster_.ranks());
    return {};
}

void Rival::open(std::size_t at) {
    sim_.at(machine_.metadata() + static_cast<Nanos>(cluster_.latency_us * microsecond), [this, at] {
        streams_[at].begun = sim_.now();
        next(at);
    });
}

void Rival::next(std::size_t at) {
    const std::uint64_t bytes = std::min(streams_[at].left, cluster_.flush.buffer_bytes);
    if (bytes == 0) return done(at);
    const auto after = [this, at] { next(at); };
    if (question_.strategy != Strategy::two_phase) transfer(at, bytes, after);
    else if (reading_) transfer(at, bytes, [this, at, bytes, after] { exchange(at, bytes, after); });
    else exchange(at, bytes, [this, at, bytes, after] { transfer(at, bytes, after); });
}

// To storage, or from there.
void Rival::transfer(std::size_t at, std::uint64_t bytes, std::function<void()> then) {
    Stream& stream = streams_[at];
    const std::uint64_t offset = stream.offset;
    stream.left -= bytes;
    stream.offset += bytes;
    const bool by_node = question_.strategy == Strategy::vertical || question_.strategy == Strategy::orchestrated;
    const std::size_t target = (by_node ? stream.node : stream.file * cluster_.stripes) % cluster_.targets;
    const auto through = [this, after = std::move(then)] { sim_.at(sim_.now() + static_cast<Nanos>(cluster_.latency_us * microsecond), after); };
    if (reading_) machine_.read(stream.node, stream.file + 1, target, offset, bytes, efficiency_, through);
    else machine_.write(stream.node, stream.file + 1, target, offset, bytes, efficiency_, through);
}

// The first phase of a round: the pieces of this buffer come from their ranks, all at once; or the second one of a restart: they go there.
void Rival::exchange(std::size_t at, std::uint64_t bytes, std::function<void()> then) {
    Stream& stream = streams_[at];
    auto coming = std::make_shared<std::uint64_t>(1);
    const auto came = [coming, all = std::move(then)] {
        if (--*coming == 0) all();
    };
    for (std::uint64_t wanted = bytes; wanted > 0;) {
        auto& [node, left] = stream.sources.front();
        const std::uint64_t piece = std::min(wanted, left);
        wanted -= piece;
        left -= piece;
        if (node != stream.node) {
            ++*coming;
            machine_.send(reading_ ? stream.node : node, reading_ ? node : stream.node, piece, came);
        }
        if (left == 0) stream.sources.pop_front();
    }
    sim_.at(sim_.now() + static_cast<Nanos>(2 * cluster_.network_latency_us * microsecond), came);
}

void Rival::done(std::size_t at) {
    sim_.at(sim_.now() + static_cast<Nanos>(reading_ ? 0 : cluster_.fsync_ms * millisecond), [this, at] {
        streams_[at].ended = sim_.now();
        --open_;
        const bool more = question_.strategy == Strategy::orchestrated && at + 1 < streams_.size() && streams_[at + 1].node == streams_[at].node;
        if (more) open(at + 1);  // its turn
    });
}

Status Rival::run(std::uint64_t bytes_total, const std::string& what) {
    open_ = streams_.size();
    const std::size_t step = question_.strategy == Strategy::orchestrated ? cluster_.ranks_per_node : 1;
    for (std::size_t at = 0; at < streams_.size(); at += step) open(at);
    return run_until(sim_, question_, bytes_total, what, [&] { return open_ == 0; });
}

Result<VersionOutcome> Rival::version(std::uint32_t version) {
    VersionOutcome outcome;
    lay_out(version);
    for (const Stream& stream : streams_) outcome.bytes += stream.bytes;
    if (!synchronous()) TRY(capture(version, outcome));
    const Nanos begun = sim_.now();
    TRY(run(outcome.bytes * version, "writing version " + std::to_string(version)));
    outcome.write_s = static_cast<double>(sim_.now() - begun) / second;
    if (synchronous()) outcome.capture_s = outcome.capture_mean_s = outcome.write_s;
    for (const Stream& stream : streams_) {
        LeaderOutcome leader;
        leader.node = stream.node;
        leader.seconds = static_cast<double>(stream.ended - begun) / second;
        leader.bytes = stream.bytes;
        outcome.leaders.push_back(std::move(leader));
    }
    return outcome;
}

Result<double> Rival::restart(std::uint32_t version) {
    lay_out(version);
    reading_ = true;
    const Nanos begun = sim_.now();
    TRY(run(0, "restarting from version " + std::to_string(version)));
    return static_cast<double>(sim_.now() - begun) / second;
}

}  // namespace

Status run_rival(const Cluster& cluster, const Question& question, sim::Simulation& sim, Outcome& outcome) {
    for (std::uint32_t node = 0; node < cluster.nodes + cluster.io_nodes; ++node) sim.add_node();
    Rival rival(cluster, question, sim);
    for (std::uint32_t version = 1; version <= cluster.versions; ++version) {
        const Nanos begun = sim.now();
        TRY_ASSIGN(VersionOutcome one, rival.version(version));
        outcome.versions.push_back(std::move(one));
        const Nanos next = begun + static_cast<Nanos>(cluster.compute_s * second);
        if (version < cluster.versions && next > sim.now()) sim.run_until(next);
    }
    take_targets(*sim.machine(), outcome);
    if (cluster.restart != 0) {
        TRY_ASSIGN(outcome.restart_s, rival.restart(cluster.versions));
    }
    return {};
}

}  // namespace cairn::simulate
