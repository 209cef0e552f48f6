#include "base/checksum.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

Bytes pattern(std::size_t count) {
    Bytes bytes(count);
    std::uint32_t state = 1;
    for (std::byte& each : bytes) each = static_cast<std::byte>((state = state * 1664525u + 1013904223u) >> 24);
    return bytes;
}

TEST(Checksum, IsXxh3OfSeedZero) {
    EXPECT_EQ(checksum({}), 0x2d06800538d394c2u);  // as xxhsum -H3 prints it for an empty file
}

// Every way through XXH3 depends on the length: short, medium, and blocks with whatever is left.
TEST(Checksum, IsTheSameWithAndWithoutWideRegisters) {
    const Bytes bytes = pattern(100'000);
    for (std::size_t length = 0; length <= bytes.size(); length += length < 2'100 ? 1 : 4'999)
        for (const std::size_t from : {0u, 1u, 13u}) {
            if (from + length > bytes.size()) continue;
            const ByteView view{bytes.data() + from, length};
            ASSERT_EQ(checksum(view), checksum_portable(view)) << length << " bytes from " << from;
        }
}

}  // namespace
}  // namespace cairn
