// Deadline: a point of this machine's monotonic clock. Nothing in the client waits without one (rule 6).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

namespace cairn {

class Deadline {
  public:
    using Clock = std::chrono::steady_clock;
    static constexpr std::uint64_t ms_max = 10ull * 365 * 24 * 3600 * 1000;  // longer waits are this long

    static Deadline in_ms(std::uint64_t ms, Clock::time_point begun = Clock::now()) {
        return Deadline(begun + std::chrono::milliseconds(std::min(ms, ms_max)));
    }
    // The earlier of this one and a span from now.
    Deadline at_most_ms(std::uint64_t ms) const { return Deadline(std::min(at_, in_ms(ms).at_)); }

    // For what one rank does while the others wait: so that it can still tell them, in time, how that ended.
    Deadline early() const { return at_most_ms(left_ms() / 4 * 3); }

    // Rounded up, so that 0 means passed.
    std::uint64_t left_ms() const {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(at_ - Clock::now()).count();
        return left > 0 ? static_cast<std::uint64_t>(left) : 0;
    }
    bool passed() const { return Clock::now() >= at_; }

  private:
    explicit Deadline(Clock::time_point at) : at_(at) {}
    Clock::time_point at_;
};

// Polling that starts eager and ends gentle: 0.2 ms, 0.4 ms, ... up to 50 ms, never past the deadline.
class Backoff {
  public:
    // False, at once, when the deadline has passed.
    bool pause(const Deadline& deadline) {
        if (deadline.passed()) return false;
        std::this_thread::sleep_for(
            std::min<std::chrono::microseconds>(next_, std::chrono::milliseconds(deadline.left_ms())));
        next_ = std::min<std::chrono::microseconds>(next_ * 2, std::chrono::milliseconds(50));
        return true;
    }

  private:
    std::chrono::microseconds next_{200};
};

}  // namespace cairn
