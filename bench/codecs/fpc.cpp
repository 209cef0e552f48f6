#include "fpc.hpp"

#include <bit>
#include <cstring>

namespace cairn::bench {

namespace {

constexpr unsigned level_max = 24;

// Section 3 of the publication: both predictors, their hashes and shifts.
class Predictors {
  public:
    explicit Predictors(unsigned level) : mask_((std::uint64_t{1} << level) - 1), fcm_(mask_ + 1), dfcm_(mask_ + 1) {}
    std::uint64_t by_value() const { return fcm_[hash_]; }
    std::uint64_t by_difference() const { return dfcm_[difference_hash_] + last_; }
    void learn(std::uint64_t value) {
        fcm_[hash_] = value;
        hash_ = (hash_ << 6 ^ value >> 48) & mask_;
        const std::uint64_t difference = value - last_;
        dfcm_[difference_hash_] = difference;
        difference_hash_ = (difference_hash_ << 2 ^ difference >> 40) & mask_;
        last_ = value;
    }

  private:
    std::uint64_t mask_, hash_ = 0, difference_hash_ = 0, last_ = 0;
    std::vector<std::uint64_t> fcm_, dfcm_;
};

unsigned zero_bytes(std::uint64_t x) {
    const auto zeros = static_cast<unsigned>(std::countl_zero(x)) / 8;
    return zeros == 4 ? 3 : zeros;
}
unsigned code_of(unsigned zeros) { return zeros > 4 ? zeros - 1 : zeros; }
unsigned zeros_of(unsigned code) { return code > 3 ? code + 1 : code; }

}  // namespace

// One byte: the level. Half a byte for each double, the first in the low half. What is left of the doubles. The rest.
void encode_fpc(ByteView raw, unsigned level, Bytes& into) {
    const std::size_t count = raw.size() / 8, head = into.size() + 1, rest_at = head + (count + 1) / 2;
    into.resize(rest_at + raw.size());
    into[head - 1] = static_cast<std::byte>(level);
    std::memset(into.data() + head, 0, rest_at - head);
    std::byte* to = into.data() + rest_at;
    Predictors predictors(level);
    for (std::size_t i = 0; i < count; ++i) {
        std::uint64_t value = 0;
        std::memcpy(&value, raw.data() + 8 * i, 8);
        const std::uint64_t first = value ^ predictors.by_value(), second = value ^ predictors.by_difference();
        predictors.learn(value);
        const bool is_second = second < first;
        const std::uint64_t left = is_second ? second : first;
        const unsigned zeros = zero_bytes(left);
        into[head + i / 2] |= static_cast<std::byte>((code_of(zeros) | (is_second ? 8u : 0u)) << 4 * (i % 2));
        std::memcpy(to, &left, 8);  // its low bytes come first; those beyond are written over. The room is there: at most 8 bytes a double
        to += 8 - zeros;
    }
    if (raw.size() % 8 != 0) std::memcpy(to, raw.data() + 8 * count, raw.size() % 8);
    into.resize(static_cast<std::size_t>(to - into.data()) + raw.size() % 8);
}

bool decode_fpc(ByteView stored, std::span<std::byte> into) {
    const std::size_t count = into.size() / 8, rest_at = 1 + (count + 1) / 2;
    if (stored.size() < rest_at || std::to_integer<unsigned>(stored[0]) > level_max) return false;
    const std::byte *from = stored.data() + rest_at, *end = stored.data() + stored.size();
    Predictors predictors(std::to_integer<unsigned>(stored[0]));
    for (std::size_t i = 0; i < count; ++i) {
        const unsigned code = std::to_integer<unsigned>(stored[1 + i / 2]) >> 4 * (i % 2) & 15u, bytes = 8 - zeros_of(code & 7u);
        if (static_cast<std::size_t>(end - from) < bytes) return false;
        std::uint64_t value = 0;
        std::memcpy(&value, from, bytes);
        from += bytes;
        value ^= code & 8u ? predictors.by_difference() : predictors.by_value();
        predictors.learn(value);
        std::memcpy(into.data() + 8 * i, &value, 8);
    }
    if (static_cast<std::size_t>(end - from) != into.size() % 8) return false;
    if (into.size() % 8 != 0) std::memcpy(into.data() + 8 * count, from, into.size() % 8);
    return true;
}

}  // namespace cairn::bench
