// What looks drawn by chance, and what only has every value as often.
#include "codec/prediction.hpp"

#include <gtest/gtest.h>

#include <random>

namespace cairn {
namespace {

// Every value as often, and yet each follows from one before it.
TEST(Noise, IsNotWhatFollowsFromBytesBefore) {
    std::mt19937_64 random(5);
    for (const std::size_t lag : {1, 2, 4, 8}) {
        Bytes raw(64 << 10);
        for (std::size_t i = 0; i < raw.size(); ++i) raw[i] = static_cast<std::byte>((i < lag ? 0 : std::to_integer<unsigned>(raw[i - lag])) + random() % 4 + 37);
        EXPECT_FALSE(is_noise(raw)) << lag;
    }
    EXPECT_FALSE(is_noise(Bytes(64 << 10)));
    EXPECT_FALSE(is_noise(Bytes(100))) << "too few to say";
}

}  // namespace
}  // namespace cairn
