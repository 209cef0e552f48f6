// What passes what.
#include "world/sim/machine.hpp"

#include <algorithm>

#include "world/sim/prng.hpp"

namespace cairn::sim {

Machine::Machine(Simulation& sim, MachineModel model) : sim_(sim), model_(std::move(model)), bandwidth_(sim, model_.sharing) {
    CAIRN_CHECK(!model_.server_rates.empty() && !model_.target_rates.empty() && model_.stripes > 0 && model_.stripe_bytes > 0);
    CAIRN_CHECK(model_.nic_out_rates.size() == model_.nic_in_rates.size());
    for (std::size_t node = 0; node < model_.nic_out_rates.size(); ++node) {
        out_.push_back(bandwidth_.add({model_.nic_out_rates[node]}));
        in_.push_back(bandwidth_.add({model_.nic_in_rates[node]}));
        scratch_.push_back(bandwidth_.add({model_.scratch_rate}));
        client_.push_back(bandwidth_.add({model_.client_rate, model_.client_crowd, model_.client_crowd_from, true}));
    }
    for (const double rate : model_.server_rates) servers_.push_back(bandwidth_.add({rate}));
    for (const double rate : model_.target_rates) targets_.push_back(bandwidth_.add({rate, model_.crowd, model_.crowd_from}));
}

void Machine::send(NodeId from, NodeId to, std::uint64_t bytes, std::function<void()> done) {
    pass(connection(from, to), {{out_[from], bytes}, {in_[to], bytes}}, 0, std::move(done));
}

void Machine::scratch(NodeId node, std::uint64_t bytes, std::function<void()> done) { bandwidth_.begin({{scratch_[node], bytes}}, 0, std::move(done)); }

void Machine::write(NodeId from, std::uint64_t file, std::size_t target, std::uint64_t offset, std::uint64_t bytes, double efficiency,
                    std::function<void()> done) {
    storage(from, out_[from], file, target, offset, bytes, (std::uint64_t{from} << 40) ^ (file + 1), efficiency, std::move(done));
}

void Machine::read(NodeId to, std::uint64_t file, std::size_t target, std::uint64_t offset, std::uint64_t bytes, double efficiency, std::function<void()> done) {
    storage(to, in_[to], file, target, offset, bytes, mix(~file) + offset / place_bytes, efficiency, std::move(done));
}

void Machine::lay(std::uint64_t file, std::vector<std::size_t> targets, std::uint64_t stripe_bytes) { laid_[file] = {std::move(targets), stripe_bytes == 0 ? model_.stripe_bytes : stripe_bytes}; }

// Over as many targets as its stripes lie on, in one request each.
void Machine::storage(NodeId node, Bandwidth::Resource card, std::uint64_t file, std::size_t target, std::uint64_t offset, std::uint64_t bytes,
                      std::uint64_t stream, double efficiency, std::function<void()> done) {
    const std::size_t targets = targets_.size();
    const auto laid = laid_.find(file);
    const bool is_laid = laid != laid_.end();
    const std::uint64_t stripe_bytes = is_laid ? laid->second.bytes : model_.stripe_bytes, stripes = is_laid ? laid->second.targets.size() : model_.stripes;
    const std::uint64_t first = offset / stripe_bytes, last = (offset + std::max<std::uint64_t>(bytes, 1) - 1) / stripe_bytes;
    const std::uint64_t pieces = std::min<std::uint64_t>(last - first + 1, std::min<std::uint64_t>(stripes, targets));
    if (model_.writer_rate > 0) {  // not before one writer could have done it
        const Nanos earliest = sim_.now() + span_of(static_cast<double>(bytes) / model_.writer_rate);
        done = [this, earliest, through = std::move(done)] { sim_.schedule(sim_.machines(), earliest, "writer", through); };
    }
    const auto left = pieces == 1 ? nullptr : std::make_shared<std::uint64_t>(pieces);
    for (std::uint64_t piece = 0; piece < pieces; ++piece) {
        const std::size_t at = is_laid ? laid->second.targets[(first + piece) % stripes] : (target + (first + piece) % stripes) % targets;
        const std::uint64_t part = bytes / pieces + (piece < bytes % pieces ? 1 : 0);
        const auto request = static_cast<std::uint64_t>(static_cast<double>(model_.request_time) / 1e9 * model_.target_rates[at]);
        std::function<void()> one = pieces == 1 ? std::move(done) : [left, done] { if (--*left == 0) done(); };
        const auto of_card = static_cast<std::uint64_t>(static_cast<double>(part) / efficiency);
        const std::size_t server = at % servers_.size();
        const std::uint64_t by = connection(node, (card == out_[node] ? 2ull : 3ull) << 30 | server);  // what is read comes the other way
        pass(by, {{card, of_card}, {client_[node], part}, {servers_[server], part}, {targets_[at], part + request}}, stream, std::move(one));
    }
}

void Machine::pass(std::uint64_t connection, const Bandwidth::Uses& uses, std::uint64_t stream, std::function<void()> done) {
    if (connection == 0) return bandwidth_.begin(uses, stream, std::move(done));
    const auto [taken, is_free] = connections_.try_emplace(connection);
    if (!is_free) return taken->second.push_back({uses, stream, std::move(done)});
    bandwidth_.begin(uses, stream, [this, connection, through = std::move(done)] {
        const auto in_use = connections_.find(connection);
        std::deque<Waiting> waiting = std::move(in_use->second);
        connections_.erase(in_use);
        if (!waiting.empty()) {
            Waiting next = std::move(waiting.front());
            waiting.pop_front();
            pass(connection, next.uses, next.stream, std::move(next.done));
            connections_.at(connection) = std::move(waiting);
        }
        through();
    });
}

void Machine::write_behind(NodeId from, std::uint64_t file, std::size_t target, std::uint64_t offset, std::uint64_t bytes, std::function<void()> done) {
    if (model_.write_behind_bytes == 0) return write(from, file, target, offset, bytes, 1, std::move(done));
    Behind& behind = behind_[{from, file}];
    behind.written += bytes;
    behind.waiting.emplace(behind.written - std::min(behind.written, model_.write_behind_bytes), std::move(done));
    write(from, file, target, offset, bytes, 1, [this, from, file, bytes] {
        Behind& of = behind_[{from, file}];
        of.through += bytes;
        tell(of);
    });
    tell(behind);
}

void Machine::finish(NodeId from, std::uint64_t file, std::function<void()> done) {
    Behind& behind = behind_[{from, file}];
    behind.waiting.emplace(behind.written, std::move(done));
    tell(behind);
}

void Machine::tell(Behind& behind) {
    while (!behind.waiting.empty() && behind.waiting.begin()->first <= behind.through) {
        sim_.schedule(sim_.machines(), sim_.now(), "behind", std::move(behind.waiting.begin()->second));
        behind.waiting.erase(behind.waiting.begin());
    }
}

Nanos Machine::metadata() { return metadata_.pass(sim_.now(), 1, model_.metadata_ops_per_s); }

void Machine::set_target_rate(std::size_t target, double rate) { bandwidth_.set(targets_[target], {rate, model_.crowd, model_.crowd_from}); }

void Machine::set_card_share(NodeId node, double share) {
    bandwidth_.set(out_[node], {model_.nic_out_rates[node] * share});
    bandwidth_.set(in_[node], {model_.nic_in_rates[node] * share});
}

}  // namespace cairn::sim
