#include "engine/coordinator/side.hpp"

#include <algorithm>

#include "base/log.hpp"

namespace cairn::engine {

std::vector<NodeIndex> CoordinatorSide::missing(const Job& job) const {
    std::vector<NodeIndex> found;
    for (NodeIndex node = 0; node < job.nodes(); ++node)
        if (job.has_ranks(node) && !sealed.count(node)) found.push_back(node);
    return found;
}

std::vector<NodeIndex> CoordinatorSide::first_missing(const Job& job) {
    NodeIndex& node = none_missing_below;
    while (node < job.nodes() && (!job.has_ranks(node) || sealed.count(node))) ++node;
    if (node == job.nodes()) return {};
    return {node};
}

std::uint64_t CoordinatorSide::sealed_bytes() const {
    std::uint64_t bytes = 0;
    for (const auto& [node, told] : sealed)
        for (const ImageInfo& image : told.images) bytes = std::min(bytes_max, bytes + std::min(image.bytes, bytes_max));
    return bytes;
}

void CoordinatorSide::lose(NodeIndex node) {
    sealed.erase(node);
    none_missing_below = std::min(none_missing_below, node);
}

Experience::Experience(World& world, const Job& job) : turn(world.clock, 1), placement_turn(job.roster->incarnation.low) { turn.try_send(0); }

CoordinatorSide& CoordinatorRole::side(Flight& flight) {
    if (!flight.coordinator) flight.coordinator = std::make_shared<CoordinatorSide>(flight.since);
    return *flight.coordinator;
}

Experience& CoordinatorRole::experience(Job& job) const {
    if (!job.experience) job.experience = std::make_shared<Experience>(world, job);
    return *job.experience;
}

void CoordinatorRole::avoid(Job& job, const std::string& target, const std::string& why) {
    if (!is_avoided(job, target))
        log_warning("target-left-out", {{"name", job.roster->name}, {"target", target}, {"why", why}, {"for_s", static_cast<std::uint64_t>(avoided_for / second)}});
    experience(job).avoided[target] = world.clock.in(avoided_for);
}

bool CoordinatorRole::is_avoided(Job& job, const std::string& target) const {
    const auto avoided = experience(job).avoided.find(target);
    return avoided != experience(job).avoided.end() && world.clock.now() < avoided->second;
}

void CoordinatorRole::send(Flight& flight, NodeIndex to, message::Body body) {
    if (Role::send(flight, to, std::move(body))) return;
    CoordinatorSide& own = side(flight);
    if (own.contest && !own.contest->unsendable) own.contest->unsendable = to;
}

}  // namespace cairn::engine
