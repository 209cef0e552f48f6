#include "proof/given.hpp"

#include <algorithm>

#include "world/sim/content.hpp"
#include "world/sim/prng.hpp"

namespace cairn::testing {

Task<Status> GivingRank::fill(std::uint64_t offset, Slice into, Nanos deadline) {
    const std::shared_ptr<Giving> giving = giving_;
    const std::uint64_t drawn = sim::mix(way_.seed ^ ++giving->pieces << 20);
    giving->is_gone |= way_.leaves_with && giving->pieces >= *way_.leaves_with;
    if (giving->is_gone) co_return not_found("the rank has left");
    const bool is_late = way_.is_late && *may_be_late_, is_too_late = is_late && drawn % 64 == 0;
    const Nanos takes = static_cast<Nanos>(drawn / 64 % (is_late ? 200 : 2)) * millisecond;
    const Nanos given = is_too_late ? deadline : std::min(deadline, world_.clock.in(takes));
    while (world_.clock.now() < given) co_await world_.clock.sleep(given - world_.clock.now());
    if (is_too_late) co_return deadline_passed("the rank gives nothing");
    sim::put(into, sim::runs_of(data_.part(offset, into.length)));
    giving->was_asked_again |= !giving->offsets.insert(offset).second;
    co_return Status();
}

}  // namespace cairn::testing
