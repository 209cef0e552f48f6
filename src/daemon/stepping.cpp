#include "daemon/stepping.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/log.hpp"

namespace cairn {

namespace {

constexpr Nanos shortest_period = 25 * millisecond, longest_period = 500 * millisecond;
constexpr int looks_a_flush = 24;                    // within its time limit
constexpr Nanos idle_period = second;                // with nothing to flush: how idle the processors are
constexpr Nanos session_pause = 110 * millisecond;   // the kernel takes one change in 100 ms, from all users of a host together
constexpr int session_tries = 100;
constexpr int not_set = -100;

std::string_view name_of(CpuClass own) {
    constexpr std::array<std::string_view, 5> names = {"idle", "nice 19", "nice 10", "nice 5", "normal"};
    return names[static_cast<std::size_t>(own)];
}

}  // namespace

// A group of nice 19 is the lowest there is, so it holds for the idle class too.
int session_nice_of(CpuClass own) {
    constexpr std::array<int, 5> nices = {19, 19, 10, 5, 0};
    return nices[static_cast<std::size_t>(own)];
}

Stepping::Stepping(RealWorld& real, Relay& relay, Node& node, const SteppingSettings& settings)
    : real_(real),
      relay_(relay),
      node_(node),
      clock_(real.loop()),
      settings_(settings),
      under_way_({settings.commit_within, processors_.count()}, sight()),
      current_(settings.first),
      session_nice_(not_set),
      gate_(clock_) {}

UnderWay::Sight Stepping::sight() {
    return {.versions = [this] { return node_.versions(); },
            .state = [this](const VersionKey& key) { return node_.state(key); },
            .is_unsealed = [this](const VersionKey& key) { return !node_.unsealed_by(key).empty(); },
            .given_bytes = [this] { return node_.counters().given_bytes; },
            .processors = [this] { return processors_.look(clock_.now()); }};
}

std::string Stepping::text() const { return std::string(name_of(current_)); }

// With nothing to flush the loop is ready to answer, in the class that the daemon was started with: that costs next to nothing then. A thread, or a session, that
// was made nicer has to make up for what it had before, at the price of its new class, and so would answer nobody for seconds.
void Stepping::apply() {
    const Need& need = under_way_.need();
    const CpuClass wanted = need.wanted(), loop = need.wanted_of_loop();
    if (wanted != current_) {
        if (wanted > current_ || need.time_limit() == 0) log_info("class", {{"from", name_of(current_)}, {"to", name_of(wanted)}, {"why", need.why()}});
        current_ = wanted;
    }
    if (loop == loop_class_ && relay_.current() == loop) take_class(loop);
    loop_class_ = loop;
    relay_.hand_over(loop);
    nice_wanted_ = session_nice_of(loop);
    if (settings_.own_session && has_session_nice_ && session_nice_ != nice_wanted_ && !std::exchange(is_setting_nice_, true)) gate_.spawn(set_nice());
}

// In the thread that has the loop now, before it does anything: threads are of the class of the one that starts them, or lower.
void Stepping::take_class(CpuClass loop) {
    const auto with_io = [this](CpuClass cpu) { return ThreadClass{cpu, cpu == CpuClass::normal ? IoClass::normal : settings_.io}; };
    real_.cpu().set_class(with_io(current_));
    real_.storage().set_class(with_io(current_), with_io(loop));
}

// As often as the kernel takes it; the last word counts.
Task<void> Stepping::set_nice() {
    Status status;
    int tries = 0;
    while (session_nice_ != nice_wanted_ && tries < session_tries) {
        const int wanted = nice_wanted_;
        status = set_session_nice(wanted);
        if (status.ok()) {
            session_nice_ = wanted;
            tries = 0;
            continue;
        }
        if (status.code() != Code::unavailable) break;
        ++tries;
        co_await clock_.sleep(session_pause);
    }
    is_setting_nice_ = false;
    has_session_nice_ = status.ok() || status.code() == Code::unavailable;
    if (!status.ok() && status.code() != Code::unsupported && !std::exchange(told_, true)) log_warning("session-can-not-give-way", {{"why", status}});
}

Task<void> Stepping::run() {
    if (!settings_.follows_need) {
        nice_wanted_ = session_nice_of(current_);
        if (settings_.own_session && current_ != CpuClass::normal) gate_.spawn(set_nice());
        co_return;
    }
    relay_.at_each_turn([this](CpuClass own) { take_class(own); });
    for (;;) {
        const bool any = under_way_.look(clock_.now());
        apply();
        const Nanos period = any ? std::clamp(under_way_.need().time_limit() / looks_a_flush, shortest_period, longest_period) : idle_period;
        const Nanos until = clock_.in(period);
        if (any) {
            co_await clock_.sleep(period);
        } else {
            (void)processors_.idle(clock_.now());
            co_await node_.changed().wait(until);
        }
    }
}

}  // namespace cairn
