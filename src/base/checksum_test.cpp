#include "base/checksum.hpp"

#include <gtest/gtest.h>

#include <algorithm>

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

// Bytes in pieces, copied or not, from and to places that are multiples of nothing.
TEST(RunningChecksum, IsThatOfAllPiecesAndCopiesThem) {
    const Bytes bytes = pattern(300'000);
    for (const bool portable : {false, true}) {
        RunningChecksum sum(portable);
        for (const std::size_t piece : {1u, 63u, 4'096u, 5'000u, 70'000u, 300'000u})
            for (const std::size_t shift : {0u, 1u, 16u, 63u}) {
                Bytes into(bytes.size() + 64 + 1, std::byte{0xee});
                for (std::size_t at = 0; at < bytes.size(); at += piece) {
                    const ByteView now{bytes.data() + at, std::min(piece, bytes.size() - at)};
                    if (at / piece % 2 == 0) sum.add(now, into.data() + shift + at);
                    else sum.add_once(now, into.data() + shift + at);
                }
                ASSERT_EQ(sum.take(), checksum(bytes)) << piece << " at a time, to " << shift;
                ASSERT_TRUE(std::equal(bytes.begin(), bytes.end(), into.begin() + static_cast<std::ptrdiff_t>(shift))) << piece << " at a time, to " << shift;
                ASSERT_TRUE(std::all_of(into.begin() + static_cast<std::ptrdiff_t>(shift + bytes.size()), into.end(), [](std::byte each) { return each == std::byte{0xee}; }));
                ASSERT_TRUE(std::all_of(into.begin(), into.begin() + static_cast<std::ptrdiff_t>(shift), [](std::byte each) { return each == std::byte{0xee}; }));
            }
        sum.add(bytes);
        EXPECT_EQ(sum.take(), checksum(bytes));
        EXPECT_EQ(sum.take(), checksum({}));
    }
}

}  // namespace
}  // namespace cairn
