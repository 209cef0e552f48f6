#include "engine/pace.hpp"

#include <algorithm>
#include <cmath>

namespace cairn {

namespace {

constexpr double stored_s = 0.05;      // of what a bucket holds at most
constexpr double debt_s = 10;          // of older debts: who is admitted by wait_max makes no more
constexpr double piece_s = 0.05;       // of the rate, in one write
constexpr std::uint64_t grain = 64 << 10;
constexpr Nanos activity_span = second;

// How often a byte passes the memory bus on its way, as far as this daemon is the cause: once for what reads a checksum, twice for a copy.
double memory_passes(Pace::Step step) {
    switch (step) {
        case Pace::Step::fetch:           // the socket's copy, checksum
        case Pace::Step::serve:           // checksum, the socket's copy
        case Pace::Step::serve_at_once:
        case Pace::Step::write_local:     // checksum, the copy into the page cache
            return 3;
        case Pace::Step::gather:  // checksum, the copy, checksum of the copy
            return 4;
        case Pace::Step::write_received:  // the copy into the page cache
            return 2;
    }
    return 0;
}

}  // namespace

// ---- buckets ----

void Pace::Bucket::fill(Nanos now) {
    balance = std::min(rate * stored_s, balance + rate * static_cast<double>(now - at) / second);
    at = now;
}

void Pace::Bucket::set_rate(double wanted, Nanos now) {
    fill(now);
    if (wanted <= 0 || rate <= 0) balance = 0;  // without a limit nobody counts
    rate = std::max(0.0, wanted);
    balance = std::min(balance, rate * stored_s);
}

void Pace::Bucket::take(double units, Nanos now) {
    if (rate <= 0) return;
    fill(now);
    balance = std::max(balance - units, -units - rate * debt_s);
}

void Pace::Bucket::give_back(double units, Nanos now) {
    if (rate <= 0) return;
    fill(now);
    balance = std::min(balance + units, rate * stored_s);
}

Nanos Pace::Bucket::opens_at(Nanos now) {
    if (rate <= 0) return now;
    fill(now);
    if (balance >= 0) return now;
    const double wait = std::ceil(-balance / rate * second);
    return wait < 1e18 ? now + std::max<Nanos>(microsecond, static_cast<Nanos>(wait)) : never;
}

// ---- lanes ----

// One who waits. Who leaves lets the others look again: the next one is first now.
struct Pace::Place {
    explicit Place(Lane& l) : lane(l) { at = lane.waiting.insert(lane.waiting.end(), this); }
    Place(const Place&) = delete;
    ~Place() {
        lane.waiting.erase(at);
        lane.turn.notify_all();
    }
    bool is_first() const { return lane.waiting.front() == this; }
    Lane& lane;
    std::list<const void*>::iterator at;
};

Pace::Pass::~Pass() {
    if (!lane_) return;
    lane_->under_way -= bytes_;
    if (!lane_->waiting.empty()) lane_->turn.notify_all();
}

Pace::Pace(Clock& clock, Nanos wait_max) : clock_(clock), wait_max_(wait_max), in_(clock), out_(clock), own_(clock), begun_(clock) {}

// never: not before something under way is over, or limits change.
Nanos Pace::opens_at(Lane& lane, std::uint64_t bytes) {
    if (limits_.closed) return never;
    if (limits_.under_way_bytes != 0 && lane.under_way != 0 && lane.under_way + bytes > limits_.under_way_bytes) return never;
    const Nanos now = clock_.now();
    return std::max({lane.bytes.opens_at(now), memory_.opens_at(now), cpu_.opens_at(now)});
}

void Pace::take(Lane& lane, Step step, std::uint64_t bytes) {
    const Nanos now = clock_.now();
    lane.bytes.take(static_cast<double>(bytes), now);
    memory_.take(static_cast<double>(bytes) * memory_passes(step), now);
    lane.under_way += bytes;
    if (&lane != &own_) (&lane == &in_ ? counters_.in_bytes : counters_.out_bytes) += bytes;
}

void Pace::note_activity() {
    const bool was = active();
    moved_ = clock_.now();
    if (!was) begun_.notify_all();
}

Task<Pace::Pass> Pace::admit(Step step, std::uint64_t bytes, std::function<bool()> over, Nanos until) {
    Lane& lane = lane_of(step);
    note_activity();
    if (step != Step::serve_at_once && (!lane.waiting.empty() || opens_at(lane, bytes) > clock_.now())) {
        const Nanos asked = clock_.now();
        const Nanos deadline = std::min(until, clock_.in(wait_max_));
        const Place place(lane);
        while (!over() && clock_.now() < deadline) {
            const Nanos opens = place.is_first() ? opens_at(lane, bytes) : never;
            if (opens <= clock_.now()) break;
            const Nanos look_again = std::min(opens, deadline);
            co_await lane.turn.wait(look_again);
        }
        held_back_ = clock_.now();
        counters_.waited += held_back_ - asked;
        moved_ = held_back_;
    }
    take(lane, step, bytes);
    co_return Pass(&lane, bytes);
}

void Pace::give_back(Pass& pass, std::uint64_t bytes) {
    if (!pass.lane_) return;
    bytes = std::min(bytes, pass.bytes_);
    pass.bytes_ -= bytes;
    pass.lane_->under_way -= bytes;
    pass.lane_->bytes.give_back(static_cast<double>(bytes), clock_.now());
    if (pass.lane_ != &own_) (pass.lane_ == &in_ ? counters_.in_bytes : counters_.out_bytes) -= bytes;
    pass.lane_->turn.notify_all();
}

std::uint64_t Pace::piece_bytes() const {
    double most = static_cast<double>(UINT64_MAX / 2);
    if (limits_.out_bytes_s > 0) most = std::min(most, limits_.out_bytes_s * piece_s);
    if (limits_.memory_bytes_s > 0) most = std::min(most, limits_.memory_bytes_s * piece_s / memory_passes(Step::write_local));
    if (limits_.under_way_bytes > 0) most = std::min(most, static_cast<double>(limits_.under_way_bytes) / 4);
    return std::max(grain, static_cast<std::uint64_t>(most) / grain * grain);
}

bool Pace::holds_back() const {
    return !in_.waiting.empty() || !out_.waiting.empty() || !own_.waiting.empty() || (held_back_ >= 0 && clock_.now() - held_back_ < wait_max_);
}

void Pace::set_limits(const PaceLimits& limits) {
    if (limits == limits_) return;
    const Nanos now = clock_.now();
    limits_ = limits;
    in_.bytes.set_rate(limits.in_bytes_s, now);
    out_.bytes.set_rate(limits.out_bytes_s, now);
    memory_.set_rate(limits.memory_bytes_s, now);
    cpu_.set_rate(limits.cores * second, now);
    wake();
}

void Pace::spent_cpu(Nanos used) { cpu_.take(static_cast<double>(used), clock_.now()); }

void Pace::wake() {
    in_.turn.notify_all();
    out_.turn.notify_all();
    own_.turn.notify_all();
}

bool Pace::active() const {
    return !in_.waiting.empty() || !out_.waiting.empty() || !own_.waiting.empty() || in_.under_way + out_.under_way + own_.under_way > 0 ||
           (moved_ >= 0 && clock_.now() - moved_ < activity_span);
}

}  // namespace cairn
