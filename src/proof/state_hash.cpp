// One number of many: what hangs together in an order is hashed in it, what lies side by side is summed up.
#include "proof/state_hash.hpp"

#include "base/checksum.hpp"
#include "format/message.hpp"
#include "world/sim/network.hpp"
#include "world/sim/operation.hpp"

namespace cairn::testing {

namespace {

class Hash {
  public:
    Hash& add(std::uint64_t word) {
        value_ = sim::mix(value_ ^ word) + 0x9E3779B97F4A7C15ull;
        return *this;
    }
    Hash& add(const std::string& text) { return add(checksum(as_bytes(text))); }
    std::uint64_t value() const { return value_; }

  private:
    std::uint64_t value_ = 1;
};

std::uint64_t bytes_of(const sim::Content& content) {
    return content.size() == 0 ? 0 : checksum_of(content.read(0, content.size()));
}

// As it is seen, and what a crash could make of it.
std::uint64_t content_of(const sim::Inode& file) {
    Hash hash;
    hash.add(file.content->size()).add(bytes_of(*file.content)).add(file.durable.size()).add(bytes_of(file.durable));
    for (const sim::Inode::PendingWrite& write : file.pending) {
        hash.add(write.node).add(static_cast<std::uint64_t>(write.fate)).add(write.offset);
        hash.add(write.is_resize ? write.size : checksum_of(write.runs));
    }
    return hash.value();
}

// Without what tells the time.
std::uint64_t message_of(const Bytes& bytes) {
    Result<message::Message> decoded = decode_message(bytes);
    if (!decoded.ok()) return checksum(bytes);
    if (auto* progress = std::get_if<message::Progress>(&decoded->body)) {
        progress->sequence = 0;
        for (message::PartProgress& part : progress->parts) part.bytes_per_s = 0;
    }
    return checksum(encode(*decoded));
}

std::uint64_t answers_of(const Cluster& cluster, const Node& daemon) {
    Hash hash;
    hash.add(daemon.idle()).add(daemon.knows(cluster.roster.incarnation));
    for (const VersionKey& key : daemon.versions()) {
        const VersionState state = daemon.state(key);
        hash.add(key.incarnation.low).add(key.version).add(static_cast<std::uint64_t>(state.level)).add(state.final).add(state.bytes);
        hash.add(static_cast<std::uint64_t>(state.failure.code())).add(state.failure.text());
        hash.add(state.node_written_bytes).add(state.node_expected_bytes).add(daemon.unsealed_by(key));
        for (Rank rank = 0; rank < cluster.ranks(); ++rank) hash.add(daemon.image(key, rank) != nullptr);
    }
    return hash.value();
}

}  // namespace

std::uint64_t StateHash::tree(Files& known, const sim::Inode& directory) {
    Hash hash;
    for (const auto& [name, inode] : directory.entries) {
        hash.add(name);
        if (inode->is_directory) {
            hash.add(tree(known, *inode));
            continue;
        }
        auto& [changes, content] = known.contents[inode->id];
        if (content == 0 || changes != inode->changes) {
            changes = inode->changes;
            content = content_of(*inode);
        }
        hash.add(content);
    }
    for (const auto& [name, inode] : directory.durable_entries) {
        const auto seen = directory.entries.find(name);
        const bool same = seen != directory.entries.end() && seen->second == inode;
        hash.add(name).add(same ? 0 : inode->is_directory ? 1 : content_of(*inode));
    }
    for (const sim::Inode::PendingEntries& pending : directory.pending_entries) {
        hash.add(pending.node).add(pending.settled);
        for (const auto& [name, inode] : pending.changes) hash.add(name).add(inode != nullptr);
    }
    return hash.value();
}

std::uint64_t StateHash::files(Files& known, const sim::FileSystem& system) {
    if (known.of == &system && known.changes == system.changes() && known.hash != 0) return known.hash;
    if (known.of != &system) known = {};
    known.of = &system;
    known.changes = system.changes();
    known.hash = tree(known, *system.root());
    return known.hash;
}

std::uint64_t StateHash::node(NodeIndex index) {
    const Host& host = cluster_.hosts[index];
    Hash hash;
    if (!host.node->alive()) {
        scratch_.erase(index);  // a new one may come to lie in the same place
        return hash.value();
    }
    hash.add(files(scratch_[index], host.node->scratch()));
    if (host.process) hash.add(1 + host.booted).add(answers_of(cluster_, *host.daemon));
    for (const Daemon& former : host.formers) hash.add(answers_of(cluster_, *former.daemon));
    return hash.value();
}

std::uint64_t StateHash::messages() {
    const auto& under_way = cluster_.sim.under_way();
    for (auto known = messages_.begin(); known != messages_.end();) known = under_way.count(known->first) ? std::next(known) : messages_.erase(known);
    std::uint64_t sum = 0;
    for (const auto& [number, sent] : under_way) {
        auto [known, first] = messages_.emplace(number, 0);
        if (first) {
            Hash hash;
            hash.add(sent.to).add(sent.tag).add(sent.bytes);
            if (sent.message) hash.add(message_of(*sent.message));
            known->second = hash.value();
        }
        sum += known->second;
    }
    return sum;
}

std::uint64_t StateHash::now() {
    Hash hash;
    hash.add(files(persistent_, cluster_.sim.persistent())).add(messages());
    for (NodeIndex index = 0; index < cluster_.hosts.size(); ++index) hash.add(node(index));
    return hash.value();
}

std::uint64_t StateHash::under_way() const {
    Hash hash;
    for (const Host& host : cluster_.hosts) {
        std::uint64_t sum = 0;
        host.node->in_flight.each([&](const sim::Operation& operation) {
            Hash one;
            one.add(operation.process.address()).add(operation.what).add(operation.path).add(operation.offset).add(operation.value);
            one.add(operation.full).add(operation.fails).add(operation.effect != nullptr).add(operation.event != 0);
            sum += one.value();
        });
        hash.add(sum);
        for (sim::Process* process : host.node->processes())
            hash.add(process->address()).add(process->actor().paused).add(process->network().postings_open());
    }
    for (const auto& [from, to] : cluster_.sim.blocked()) hash.add(from).add(to);
    return hash.value();
}

}  // namespace cairn::testing
