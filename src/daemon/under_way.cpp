#include "daemon/under_way.hpp"

#include <algorithm>
#include <utility>

namespace cairn {

NeedLook UnderWay::seen(Nanos now) const {
    const Processors::Seen processors = sight_.processors();
    return {now, left_bytes(), processors.used, processors.waited, processors.idle};
}

// Of all that is under way. Who leads writes its parts, and who does not gives its images.
std::uint64_t UnderWay::left_bytes() const {
    double left = 0;
    const auto given = static_cast<double>(sight_.given_bytes() - given_before_);
    for (const VersionKey& key : under_way_) {
        const VersionState state = sight_.state(key);
        const auto bytes = static_cast<double>(state.bytes);
        const double written = static_cast<double>(state.node_written_bytes) / static_cast<double>(std::max<std::uint64_t>(1, state.node_expected_bytes));
        left += bytes * (1 - std::min(1.0, state.node_expected_bytes > 0 ? written : given / bytes));
    }
    return static_cast<std::uint64_t>(left);
}

// One that some rank of another node has not sealed when the time is up is waited for by nobody, until it is sealed.
bool UnderWay::is_flushed(const VersionKey& key, const VersionState& state, Nanos now) {
    const bool ended = state.level == Level::none || state.level >= Level::committed || state.final || !state.failure.ok() || state.bytes == 0 || !state.all_here;
    if (ended || state.level >= Level::sealed) unsealed_.erase(key);
    else if (under_way_.count(key) != 0 && need_.is_late(now) && sight_.is_unsealed(key)) unsealed_.insert(key);
    return !ended && unsealed_.count(key) == 0;
}

void UnderWay::note_versions(Nanos now) {
    std::set<VersionKey> flushed;
    for (const VersionKey& key : sight_.versions())
        if (is_flushed(key, sight_.state(key), now)) flushed.insert(key);
    if (flushed == under_way_) return;
    std::erase_if(unsealed_, [this](const VersionKey& key) { return sight_.state(key).level == Level::none; });  // forgotten
    if (flushed.empty()) need_.ended(seen(now));
    if (under_way_.empty()) given_before_ = sight_.given_bytes();
    const std::set<VersionKey> before = std::exchange(under_way_, std::move(flushed));
    const NeedLook look = seen(now);
    for (const VersionKey& key : under_way_)
        if (before.count(key) == 0) need_.begins(key, sight_.state(key).bytes, look);
}

bool UnderWay::look(Nanos now) {
    note_versions(now);
    if (!under_way_.empty()) need_.look(seen(now));
    return !under_way_.empty();
}

}  // namespace cairn
