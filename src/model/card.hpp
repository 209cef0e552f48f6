// The card of a leader's node: what it writes and what it sends leave through the same one. Where that card is what binds, handing work to
// others only makes it later. Nobody tells what a card can do, so it is seen from what happens. Pure functions of times and bytes.
#pragma once

#include <cstdint>
#include <optional>

namespace cairn {

enum class Card : std::uint8_t { unknown, full, has_room };

// What one leader's flush says of its card: did it write less while it also sent?
class CardUse {
  public:
    void sending(double now_s, int step);  // +1: sending something begins, -1: ends
    void sent(std::uint64_t bytes) { sent_bytes_ += bytes; }
    void wrote(double now_s, std::uint64_t bytes);  // a write of this leader ended
    // full: what was sent was missing in what was written. Needs a second of each: sending, and not.
    Card seen() const;

  private:
    struct Spell {
        double span_s = 0;
        std::uint64_t written_bytes = 0;
    };
    void pass(double now_s);
    Spell alone_, beside_;  // writing alone, and beside sending
    std::uint64_t sent_bytes_ = 0;
    int sends_ = 0;
    std::optional<double> last_s_;  // from the first write that ended
};

// How much of its own data a leader gives away at once. They leave through the card that it also writes through: where that card is what
// binds, whoever takes them only writes them later than their own node would have. So it gives a portion, what it writes in half a second, and
// the next one when that has been sent: four times as much when the card had room for both, else half as much, and soon no more.
class Portions {
  public:
    // Bytes that may be given now, in whole blocks. `bytes_per_s`: what it writes lately; 0: nothing was written yet, the card has room.
    std::uint64_t allowed(double bytes_per_s, std::uint64_t block_bytes) const;
    void given(std::uint64_t bytes, std::uint64_t allowed);
    // `written_bytes`: by this leader, since the attempt began.
    void sending(std::uint64_t written_bytes);
    bool sent(std::uint64_t bytes, std::uint64_t written_bytes);  // true: all of the portion is gone

  private:
    std::optional<std::uint64_t> next_;    // portion; none: nothing was given yet
    std::uint64_t given_ = 0, left_ = 0;   // the one under way
    std::optional<std::uint64_t> before_;  // written when it was first asked for
};

}  // namespace cairn
