#include "daemon/rhythm.hpp"

#include <algorithm>

namespace cairn {

namespace {
constexpr std::size_t intervals_max = 5, intervals_min = 2;
constexpr std::size_t outlier_of = 4;
constexpr int agreement = 5;                   // intervals differ by no more than this part of their median
constexpr Nanos late_max = 200 * millisecond;  // that an exchange may be, but no more than that part of the interval
}  // namespace

void Rhythm::flush_begins(Nanos now) {
    begun_ = now;
    last_.reset();
}

void Rhythm::exchange_begins(Nanos now) {
    if (last_) {
        intervals_.push_back(now - *last_);
        if (intervals_.size() > intervals_max) intervals_.pop_front();
    } else if (begun_) {
        first_after_ = now - *begun_;
    }
    last_ = now;
}

std::optional<Nanos> Rhythm::interval() const {
    if (intervals_.size() < intervals_min) return std::nullopt;
    std::deque<Nanos> sorted = intervals_;
    std::sort(sorted.begin(), sorted.end());
    // One of four may be another: the first exchange beside a flush is slow, and late with it whatever comes next.
    const std::size_t needed = sorted.size() - sorted.size() / outlier_of;
    for (std::size_t i = 0; i + needed <= sorted.size(); ++i) {
        const Nanos median = sorted[i + needed / 2];
        if (sorted[i + needed - 1] - sorted[i] <= median / agreement) return median;
    }
    return std::nullopt;
}

bool Rhythm::expects_one(Nanos now, Nanos lead) const {
    const std::optional<Nanos> between = interval();
    std::optional<Nanos> next;
    if (last_ && between) next = *last_ + *between;
    if (!last_ && begun_ && first_after_) next = *begun_ + *first_after_;
    if (!next) return false;
    if (between) lead = std::min(lead, *between / 4);
    const Nanos late = between ? std::min(late_max, *between / agreement) : late_max;
    return now >= *next - lead && now < *next + late;
}

}  // namespace cairn
