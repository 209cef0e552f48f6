#include "engine/job.hpp"

#include <algorithm>

#include "catalog/layout.hpp"
#include "engine/flight.hpp"
#include "format/limits.hpp"
#include "storage/placement.hpp"

namespace cairn::engine {

const Address& AddressBook::of(NodeIndex node) const {
    const auto found = moved.find(node);
    return found == moved.end() ? roster->members[node].address : found->second;
}

void AddressBook::set(NodeIndex node, Address address) {
    if (address == roster->members[node].address) moved.erase(node);
    else moved[node] = std::move(address);
}

Job::Job(World& world, const std::string& persistent, std::shared_ptr<const Roster> r, NodeIndex s)
    : roster(std::move(r)), roots(roots_besides(persistent, roster->roots)), self(s), addresses{roster, {}}, began(world.clock.now()) {}

// Said again by a rank that lost its connection it is what was known at the open; what was heard since is newer.
Status Job::renew(const Roster& said, NodeIndex as) {
    if (self != as || roster->members.size() != said.members.size()) return invalid_argument("another roster is known for this incarnation of " + said.name);
    if (said == *roster) return {};
    Roster renewed = *roster;
    for (NodeIndex node = 0; node < nodes(); ++node) {
        Address& said_before = renewed.members[node].address;
        if (said.members[node].address == said_before) continue;
        said_before = said.members[node].address;
        addresses.moved.erase(node);
    }
    renewed.parent = said.parent;
    roster = addresses.roster = std::make_shared<const Roster>(std::move(renewed));
    return {};
}

const std::vector<NodeIndex>& Job::io_nodes() const {
    if (io_nodes_) return *io_nodes_;
    io_nodes_.emplace();
    for (NodeIndex node = 0; node < nodes(); ++node)
        if (!has_ranks(node)) io_nodes_->push_back(node);
    return *io_nodes_;
}

Nanos Job::last_heard_of_any() const {
    Nanos last = began;
    for (const auto& [node, when] : heard) last = std::max(last, when);
    return last;
}

Nanos Job::last_heard(NodeIndex node) const {
    const auto found = heard.find(node);
    return found == heard.end() ? began : found->second;
}

std::uint32_t Job::root_of(const std::string& target) const { return cairn::root_of(roots, target); }

std::string Job::node_name(NodeIndex node) const { return node_name(node, roster->members[node].ranks); }

std::string Job::node_name(NodeIndex node, const std::vector<Rank>& ranks) const {
    const Member& member = roster->members[node];
    std::string text = "node " + std::to_string(node) + " (" + member.node + (member.ranks.empty() ? ", an I/O node" : "");
    if (!ranks.empty()) {
        text += ranks.size() == 1 ? ", rank " : ", ranks ";
        for (std::size_t i = 0; i < ranks.size(); ++i) text += (i ? " " : "") + std::to_string(ranks[i]);
    }
    if (const auto found = older.find(node); found != older.end())
        text += ", its cairnd is older: format " + std::to_string(found->second) + ", not " + std::to_string(format_version);
    return text + ")";
}

Flight::Flight(World& world, VersionKey k, JobPtr j)
    : key(std::move(k)), job(std::move(j)), news(world.clock), since(world.clock.now()), coordinator_heard(since) {}

void Flight::fail(Status failure) {
    if (failure.to_string() != state.failure.to_string()) ++state.failures;
    state.failure = std::move(failure);
}

}  // namespace cairn::engine
