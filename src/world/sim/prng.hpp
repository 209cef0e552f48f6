// Prng: the only source of chance in the simulated world (splitmix64: one word of state, any seed is a good seed).
#pragma once

#include <cstdint>

namespace cairn::sim {

constexpr std::uint64_t mix(std::uint64_t word) noexcept {
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9ull;
    word = (word ^ (word >> 27)) * 0x94D049BB133111EBull;
    return word ^ (word >> 31);
}

class Prng {
  public:
    explicit Prng(std::uint64_t seed) noexcept : state_(mix(seed + 0x9E3779B97F4A7C15ull)) {}

    std::uint64_t next() noexcept { return mix(state_ += 0x9E3779B97F4A7C15ull); }
    // In [0, bound); 0 when bound is 0.
    std::uint64_t below(std::uint64_t bound) noexcept {
        return bound == 0 ? 0 : static_cast<std::uint64_t>((static_cast<unsigned __int128>(next()) * bound) >> 64);
    }
    // In [low, high].
    std::uint64_t between(std::uint64_t low, std::uint64_t high) noexcept { return low + below(high - low + 1); }
    // Draws nothing when the answer is certain, so that a fault switched off does not move the other ones.
    bool chance(double probability) noexcept {
        if (probability <= 0) return false;
        if (probability >= 1) return true;
        return static_cast<double>(next() >> 11) * 0x1p-53 < probability;
    }

  private:
    std::uint64_t state_;
};

}  // namespace cairn::sim
