// Forget: what a node need not remember any more, so that its memory is bounded by what is under way, and not by how long it lives.
#include <algorithm>

#include "engine/router/router.hpp"

namespace cairn {

using namespace engine;

// Keeps the memory of a long job bounded: ended versions whose images have left scratch are only remembered for a while.
void Node::Impl::forget_old(Id128 incarnation) {
    std::size_t known = 0;
    for (const VersionKey& key : order) known += key.incarnation == incarnation;
    for (auto it = order.begin(); it != order.end() && known > common.settings.limits.versions;) {
        const auto found = flights.find(*it);
        const Flight& flight = *found->second;
        const bool over = flight.state.final || !flight.job->has_ranks(flight.job->self);  // an I/O node may not hear of the end
        const bool old = it->incarnation == incarnation && found->second.use_count() == 1 && over && flight.images.empty();
        if (!old) { ++it; continue; }
        flights.erase(found);
        it = order.erase(it);
        --known;
    }
}

// False while something of it is being written here.
bool Node::Impl::forget(Id128 incarnation) {
    const auto of_it = [&](const VersionKey& key) { return key.incarnation == incarnation; };
    for (const VersionKey& key : order)
        if (of_it(key) && leader.is_leading(*flights.at(key))) return false;
    std::erase_if(flights, [&](const auto& entry) { return of_it(entry.first); });
    std::erase_if(order, of_it);
    jobs.erase(incarnation);
    return true;
}

// Who announces a version, decides on it, leads or reads holds its flight until he is done, so none is forgotten under anybody. A version of which this node
// has only been told may go though it has not ended: who holds images of it asks its coordinator.
bool Node::forget(Id128 incarnation) {
    impl_->gate.reap();  // who is done holds nothing more
    const auto is_needed = [&](const VersionKey& key) {
        const FlightPtr& flight = impl_->flights.at(key);
        const auto& images = flight->images;
        if (flight.use_count() != 1) return true;
        if (!images.empty() && flight->state.level != Level::committed) return true;  // they leave scratch first: nobody else may know that they can
        return std::any_of(images.begin(), images.end(), [](const auto& entry) { return entry.second.may_be_written; });  // who drops it must hear so
    };
    for (const VersionKey& key : impl_->order)
        if (key.incarnation == incarnation && is_needed(key)) return false;
    return impl_->forget(incarnation);
}

}  // namespace cairn
