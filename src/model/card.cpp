#include "model/card.hpp"

#include <algorithm>

namespace cairn {

namespace {
constexpr double long_enough_s = 1;
constexpr double taken_away = 0.5, left_alone = 0.2;  // of what was sent, missing in what was written
}  // namespace

void CardUse::pass(double now_s) {
    if (!last_s_) return;
    (sends_ > 0 ? beside_ : alone_).span_s += now_s - *last_s_;
    last_s_ = now_s;
}

void CardUse::sending(double now_s, int step) {
    pass(now_s);
    sends_ += step;
}

// Time counts from the first write that ended: what went before filled buffers.
void CardUse::wrote(double now_s, std::uint64_t bytes) {
    pass(now_s);
    if (last_s_) (sends_ > 0 ? beside_ : alone_).written_bytes += bytes;
    last_s_ = now_s;
}

Card CardUse::seen() const {
    if (alone_.span_s < long_enough_s || beside_.span_s < long_enough_s || sent_bytes_ == 0) return Card::unknown;
    const auto per_s = [](const Spell& spell) { return static_cast<double>(spell.written_bytes) / spell.span_s; };
    const double share = (per_s(alone_) - per_s(beside_)) * beside_.span_s / static_cast<double>(sent_bytes_);
    return share >= taken_away ? Card::full : share <= left_alone ? Card::has_room : Card::unknown;
}

namespace {
constexpr double portion_s = 0.5, growth = 4;
constexpr std::uint64_t first_blocks_min = 8;  // of a leader whose writes stand still, too: with less nothing can be seen
constexpr double room_for_both = 1.5;  // sent while so much less was written: the two do not take from each other
}  // namespace

std::uint64_t Portions::allowed(double bytes_per_s, std::uint64_t block_bytes) const {
    if (left_ > 0) return 0;
    if (next_) return *next_;
    if (bytes_per_s <= 0) return UINT64_MAX;
    return std::max(static_cast<std::uint64_t>(portion_s * bytes_per_s), first_blocks_min * block_bytes);
}

void Portions::given(std::uint64_t bytes, std::uint64_t allowed) {
    if (bytes == 0) return;
    next_ = allowed;
    given_ = left_ = bytes;
    before_.reset();
}

void Portions::sending(std::uint64_t written_bytes) {
    if (left_ > 0 && !before_) before_ = written_bytes;
}

bool Portions::sent(std::uint64_t bytes, std::uint64_t written_bytes) {
    if (left_ == 0 || !before_) return false;
    left_ -= std::min(left_, bytes);
    if (left_ > 0) return false;
    const double written = static_cast<double>(written_bytes - *before_);
    if (static_cast<double>(given_) < room_for_both * written) next_ = *next_ / 2;
    else next_ = static_cast<std::uint64_t>(std::min(growth * static_cast<double>(*next_), 1e18));
    return true;
}

}  // namespace cairn
