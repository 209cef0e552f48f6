#include "daemon/yielding.hpp"

#include <time.h>

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "base/units.hpp"

namespace cairn {

namespace {

constexpr Nanos period = 25 * millisecond;
constexpr int cost_share = 50;                   // a look takes no more than this part of the loop's time,
constexpr Nanos period_max = 250 * millisecond;  // but limits that are out of date cost more
constexpr Nanos link_window = 200 * millisecond;  // shorter, a shaper's burst would pass for the card's rate
constexpr Nanos wary_span = 5 * second;          // after the last communication
constexpr double wary_s = 0.04;                  // of the card: most that is under way then
constexpr double under_way_bytes_min = 256 << 10;
constexpr double pauses_enough = 0.25;           // of the time: then the flush keeps to the pauses
constexpr Nanos pauses_span = 5 * second;        // what pauses are measured over, about

Nanos cpu_now(clockid_t whose = CLOCK_PROCESS_CPUTIME_ID) {
    timespec used{};
    ::clock_gettime(whose, &used);
    return static_cast<Nanos>(used.tv_sec) * second + used.tv_nsec;
}

double seconds(Nanos span) { return static_cast<double>(span) / second; }
double lower(double cap, double other) { return cap > 0 ? std::min(cap, other) : other; }

}  // namespace

// ---- the rule ----

void YieldPolicy::begin(Nanos now) {
    if (begun_ == 0 || now - last_ >= wary_span) {  // else it is the same flush, that had nothing to move for a moment
        begun_ = now;
        rhythm_.flush_begins(now);
    }
    last_ = now;
    window_ = 0;
    link_bytes_ = link_total_ = own_total_ = 0;
}

void YieldPolicy::measure_link(const YieldSample& sample) {
    window_ += sample.now - last_;
    link_bytes_ += sample.link_bytes;
    link_total_ += sample.link_bytes;
    own_total_ += sample.own_bytes;
    if (window_ < link_window) return;
    link_bytes_s_ = std::max(link_bytes_s_, static_cast<double>(link_bytes_) / seconds(window_));
    window_ = 0;
    link_bytes_ = 0;
}

void YieldPolicy::measure_communication(const YieldSample& sample, Nanos span) {
    const bool was_quiet = !busy_ || last_ - *busy_ >= settings_.quiet;
    if (static_cast<double>(sample.application_bytes) / seconds(span) >= static_cast<double>(settings_.busy_bytes_s)) {
        if (was_quiet) rhythm_.exchange_begins(last_);  // since the last look
        busy_ = sample.now;
    }
    if (busy_ && sample.now - *busy_ < settings_.quiet) communicated_ += span;
}

bool YieldPolicy::should_close(const YieldSample& sample, Nanos span) {
    // What is under way then must be over by the time an exchange begins, and the next look may come late.
    const Nanos lead = static_cast<Nanos>(wary_s * second) + 2 * span;
    const bool close = (busy_ && sample.now - *busy_ < settings_.quiet) || rhythm_.expects_one(sample.now, lead);
    pauses_ += ((close ? 0 : 1) - pauses_) * std::min(1.0, seconds(span) / seconds(pauses_span));
    return close && pauses_ >= pauses_enough;
}

PaceLimits YieldPolicy::next(const YieldSample& sample) {
    const Nanos span = std::max<Nanos>(1, sample.now - last_);
    measure_link(sample);
    measure_communication(sample, span);
    const bool close = should_close(sample, span);
    last_ = sample.now;
    if (sample.all_wait) {
        all_waited_ += span;
        return {};
    }
    PaceLimits limits = settings_.caps;
    // A share of a card that the flush does not use (storage has another, or lies in this node) would be one of nearly nothing.
    if (own_total_ > 0) our_card_ = 2 * link_total_ >= own_total_;
    if (settings_.share_busy >= 1 || !our_card_) return limits;
    limits.closed = close;
    if (link_bytes_s_ <= 0) return limits;
    const Nanos since = busy_ ? sample.now - *busy_ : never;
    if (since < settings_.quiet && !limits.closed) limits.memory_bytes_s *= settings_.share_busy;  // messages are copied, too. No cap stays none
    if (since < settings_.quiet && !limits.closed) {
        limits.in_bytes_s = lower(limits.in_bytes_s, settings_.share_busy * link_bytes_s_);
        limits.out_bytes_s = lower(limits.out_bytes_s, settings_.share_busy * link_bytes_s_);
    }
    const bool may_come = communicated_ > 0 && sample.now - begun_ < wary_span;  // it did during an earlier flush
    if (since < wary_span || may_come) limits.under_way_bytes = static_cast<std::uint64_t>(std::max(under_way_bytes_min, wary_s * link_bytes_s_));
    return limits;
}

// ---- looking ----

Yielding::Yielding(Clock& clock, Pace& pace, const YieldSettings& settings, std::function<std::string()> card)
    : clock_(clock), pace_(pace), settings_(settings), policy_(settings), card_(std::move(card)) {
    if (!settings.link.empty()) link_ = LinkCounters::in(settings.link);
    else look_at_card();
}

// With another card than before all that was learned of that one goes.
void Yielding::look_at_card() {
    std::string interface = card_();
    if (interface.empty() || interface == interface_) return;
    if (!interface_.empty()) policy_ = YieldPolicy(settings_);
    interface_ = std::move(interface);
    link_ = LinkCounters::of(interface_);
    link_before_ = {};
}

void Yielding::begin(const std::function<Ranks()>& ranks) {
    begun_ = clock_.now();
    if (settings_.link.empty()) look_at_card();
    policy_.begin(begun_);
    cpu_begun_ = cpu_before_ = cpu_now();
    communicated_before_ = policy_.communicated();
    all_waited_before_ = policy_.all_waited();
    held_back_before_ = pace_.counters().waited;
    const Ranks now = ranks();
    (void)look(now);  // what was before does not count
}

// With the counters of a card only: what it carried less all that the flush may have had on it, so that the flush never takes itself for the
// application. What was admitted and not over before may be on its way still, and so may all that was admitted since.
std::uint64_t Yielding::of_others(const Traffic& link) {
    const PaceCounters& own = pace_.counters();
    const std::uint64_t own_in = own.in_bytes - own_before_.in_bytes + in_before_, own_out = own.out_bytes - own_before_.out_bytes + out_before_;
    const auto rest = [](std::uint64_t all, std::uint64_t ours) { return all - std::min(all, ours + ours / 8); };  // with headers and protocols
    return std::max(rest(link.received_bytes, own_in), rest(link.sent_bytes, own_out));
}

YieldSample Yielding::look(const Ranks& ranks) {
    YieldSample sample;
    sample.now = clock_.now();
    sample.all_wait = ranks.all_wait;
    if (link_)
        if (const Result<Traffic> read = link_->read(); read.ok()) {
            const Traffic moved{read->received_bytes - std::min(read->received_bytes, link_before_.received_bytes),
                                read->sent_bytes - std::min(read->sent_bytes, link_before_.sent_bytes)};
            sample.link_bytes = moved.larger_bytes();
            if (!settings_.link.empty()) sample.application_bytes = of_others(moved);
            link_before_ = *read;
        }
    if (application_)
        if (const Result<Traffic> moved = application_->since_last(ranks.processes, sample.now); moved.ok())
            sample.application_bytes = std::max(sample.application_bytes, moved->larger_bytes());
    const PaceCounters& own = pace_.counters();
    sample.own_bytes = std::max(own.in_bytes + in_before_ - own_before_.in_bytes - pace_.under_way_in(),
                                own.out_bytes + out_before_ - own_before_.out_bytes - pace_.under_way_out());
    own_before_ = own;
    in_before_ = pace_.under_way_in();
    out_before_ = pace_.under_way_out();
    const Nanos cpu = cpu_now();
    pace_.spent_cpu(cpu - cpu_before_);
    cpu_before_ = cpu;
    return sample;
}

void Yielding::tell() const {
    const Nanos held_back = pace_.counters().waited - held_back_before_;
    log_info("gave-way", {{"flush_s", seconds(clock_.now() - begun_)},
                          {"application_communicated_s", seconds(policy_.communicated() - communicated_before_)},
                          {"application_waited_s", seconds(policy_.all_waited() - all_waited_before_)},
                          {"held_back_s", seconds(held_back)},
                          {"cpu_s", seconds(cpu_now() - cpu_begun_)},
                          {"card_bytes_s", format_bytes(static_cast<std::uint64_t>(policy_.link_bytes_s()))}});
}

// Who set a share of the card should not have to guess whether it can be kept.
void Yielding::tell_what_is_looked_at() const {
    if (!link_)
        return log_info("application-traffic-not-seen", {{"why", "no network card has the daemon's address"}, {"set", "background.link"}});
    const Result<Traffic> read = link_->read();
    if (!read.ok()) log_warning("application-traffic-not-seen", {{"why", read.status()}, {"set", "background.link"}});
}

Task<void> Yielding::run(std::function<Ranks()> ranks) {
    const bool looks_at_traffic = settings_.share_busy < 1 && link_;
    pace_.set_limits(settings_.caps);
    if (settings_.share_busy < 1) tell_what_is_looked_at();
    if (!looks_at_traffic && settings_.caps == PaceLimits{}) co_return;
    if (looks_at_traffic) {
        Result<ApplicationTraffic> opened = ApplicationTraffic::open();
        if (opened.ok()) application_.emplace(std::move(opened).value());
        else log_warning("application-traffic-unknown", {{"why", opened.status()}});
    }
    for (;;) {
        if (!pace_.active()) {
            pace_.set_limits(settings_.caps);
            co_await pace_.begun().wait();
            begin(ranks);
        }
        const Nanos before = cpu_now(CLOCK_THREAD_CPUTIME_ID);  // time on the clock would be the application's, on a node that is busy
        const Ranks now = ranks();
        const YieldSample sample = look(now);
        pace_.set_limits(policy_.next(sample));
        if (looks_at_traffic && !policy_.our_card() && !std::exchange(told_elsewhere_, true))
            log_info("application-traffic-not-seen", {{"why", "what the flush moves does not go over the card that is looked at"}, {"set", "background.link"}});
        const Nanos cost = cpu_now(CLOCK_THREAD_CPUTIME_ID) - before;
        co_await clock_.sleep(std::clamp(cost * cost_share, period, period_max));
        if (!pace_.active()) tell();
    }
}

}  // namespace cairn
