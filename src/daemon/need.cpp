#include "daemon/need.hpp"

#include <algorithm>
#include <array>

#include "base/units.hpp"

namespace cairn {

namespace {

constexpr std::array classes = {CpuClass::idle, CpuClass::low, CpuClass::nice_10, CpuClass::nice_5, CpuClass::normal};
constexpr std::size_t intervals_max = 4;
constexpr Nanos interval_unknown = 60 * second;
constexpr Nanos interval_least = second;  // versions that begin closer to each other were waited for, or found together; and a job's first says nothing sooner
constexpr Nanos limit_least = 50 * millisecond;
constexpr double as_fast_as_can_be = 1e9;
constexpr double aim = 0.8;             // of the time limit: the commit itself, and what comes between
constexpr double fits = 0.5;            // of the time limit, by what the bytes seem to cost: work that waits for other work leaves processors unused
constexpr double tight = 4;             // less than so often what the normal class needs: there is no time to try
constexpr int first_look = 10;          // part of the time limit, before which a rate says little,
constexpr int patience = 4;             // and before which a flush that has time is left alone
constexpr double starved = 0.2;         // threads that wait for a processor for so much of the time want one
constexpr double ends_early = 0.35;     // of the time limit: the next one may try a lower class
constexpr double learns = 0.5;          // of a new flush's cost
constexpr std::uint64_t tells_bytes = 1 << 20;  // a flush of less costs what every flush costs

double in_seconds(Nanos span) { return static_cast<double>(span) / second; }

CpuClass next_to(CpuClass own, int steps) {
    const int place = static_cast<int>(own) + steps;
    return classes[static_cast<std::size_t>(std::clamp<int>(place, 0, classes.size() - 1))];
}

}  // namespace

// Of the kernel's table of weights: 3 for SCHED_IDLE, 15, 110, 335 and 1024 for nice 19, 10, 5 and 0.
double share_beside_busy(CpuClass own) {
    constexpr std::array<double, 5> weights = {3, 15, 110, 335, 1024};
    const double mine = weights[static_cast<std::size_t>(own)];
    return mine / (mine + weights.back());
}

void Need::job_opened(Id128 incarnation, Nanos now) {
    Job& job = jobs_[incarnation];
    if (job.opened < 0) job.opened = now;
}

void Need::job_forgotten(Id128 incarnation) { jobs_.erase(incarnation); }

// The shortest of the last ones: one that was missed counts for more than one that was met early.
Nanos Need::interval_of(const Job& job, Nanos now) {
    if (!job.intervals.empty()) return *std::min_element(job.intervals.begin(), job.intervals.end());
    return job.opened >= 0 ? std::max(interval_least, now - job.opened) : interval_unknown;
}

void Need::note_version(Job& job, Version version, Nanos now) {
    if (job.sealed >= 0 && version <= job.newest) return;
    if (job.sealed >= 0 && now - job.sealed >= interval_least) job.intervals.push_back(now - job.sealed);
    if (job.intervals.size() > intervals_max) job.intervals.pop_front();
    job.sealed = now;
    job.newest = version;
    job.interval = interval_of(job, now);
}

double Need::supply(CpuClass own, double idle) const {
    return idle + std::max(0.0, settings_.processors - idle) * share_beside_busy(own);
}

// The lowest class that gets what the bytes will cost.
CpuClass Need::by_bytes(const NeedLook& look) const {
    const double needed = cost_ * static_cast<double>(look.left_bytes) / (fits * static_cast<double>(limit_));
    for (const CpuClass each : classes)
        if (supply(each, look.idle_processors) >= needed) return each;
    return CpuClass::normal;
}

void Need::want(CpuClass wanted, std::string why, const NeedLook& look) {
    wanted_ = wanted;
    why_ = std::move(why);
    since_ = look;
}

// While an older one is still flushed, both have to be done by the new one's limit.
void Need::begins(const VersionKey& key, std::uint64_t bytes, const NeedLook& look) {
    Job& job = jobs_[key.incarnation];
    note_version(job, key.version, look.now);
    const bool goes_on = limit_ != 0, is_behind = goes_on && look.now != begun_;
    bytes_ = goes_on ? bytes_ + bytes : bytes;
    begun_ = look.now;
    limit_ = std::max(limit_least, static_cast<Nanos>(settings_.commit_within * static_cast<double>(job.interval)));
    if (!goes_on) first_ = look;
    const double at_best = cost_ * static_cast<double>(look.left_bytes) / supply(CpuClass::normal, look.idle_processors);
    is_tight_ = at_best * tight > static_cast<double>(limit_);
    CpuClass first = std::max(usual_, goes_on ? wanted_ : CpuClass::idle);
    if (is_behind) first = next_to(first, 1);
    if (is_tight_) first = std::max(first, by_bytes(look));
    want(first, format_bytes(look.left_bytes) + " to be committed within " + format_duration(in_seconds(limit_)), look);
}

void Need::look(const NeedLook& look) {
    if (limit_ == 0 || wanted_ == CpuClass::normal) return;
    const Nanos elapsed = look.now - begun_, window = look.now - since_.now;
    if (window < limit_ / first_look || (!is_tight_ && elapsed < limit_ / patience)) return;
    if (static_cast<double>(look.waited - since_.waited) < starved * static_cast<double>(window)) return;  // a processor is not what it lacks
    const auto left = static_cast<double>(look.left_bytes);
    const double rate = (static_cast<double>(since_.left_bytes) - left) / in_seconds(window);
    const double time = in_seconds(static_cast<Nanos>(aim * static_cast<double>(limit_)) - elapsed);
    if (left > 0 && rate * time >= left) return;
    if (look.left_bytes == 0 && time > 0) return;  // the commit is all that is left
    CpuClass wanted = next_to(wanted_, 1);
    const double faster = time > 0 && rate > 0 ? left / time / rate : as_fast_as_can_be;
    while (wanted != CpuClass::normal && share_beside_busy(wanted) < faster * share_beside_busy(wanted_)) wanted = next_to(wanted, 1);
    want(wanted, format_bytes(look.left_bytes) + " left after " + format_duration(in_seconds(elapsed)) + " of " + format_duration(in_seconds(limit_)), look);
}

void Need::ended(const NeedLook& look) {
    if (limit_ == 0) return;
    const Nanos took = look.now - begun_;
    if (bytes_ >= tells_bytes) cost_ += learns * (static_cast<double>(look.used - first_.used) / static_cast<double>(bytes_) - cost_);
    const bool was_early = static_cast<double>(took) < ends_early * static_cast<double>(limit_);
    usual_ = was_early ? next_to(wanted_, -1) : wanted_;
    limit_ = 0;
    bytes_ = 0;
    want(CpuClass::idle, "nothing to flush", look);
}

}  // namespace cairn
