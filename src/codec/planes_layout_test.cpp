// Which arrays come together, in how much, and what is no layout.
#include "codec/planes_layout.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

NumberArray alike(std::size_t offset, std::size_t length, std::uint32_t row, std::uint32_t plane = 0) {
    NumberArray array;
    array.offset = offset;
    array.length = length;
    array.width = 8;
    array.row = row;
    array.plane = plane;
    array.key = 7;
    return array;
}

TEST(PlanesLayout, TheSameVariableWithOtherAxesIsApart) {
    constexpr std::size_t length = 8000;
    std::vector<NumberArray> arrays, kinds;
    for (std::size_t i = 0; i < 9; ++i) arrays.push_back(alike(i * length, length, i % 3 == 0 ? 10 : 20, i % 3 == 1 ? 100 : 200));
    const RunLayout layout = lay_out(9 * length, arrays, kinds);
    EXPECT_EQ(layout.pieces.size(), 9u);
    ASSERT_EQ(layout.stretches, 3u);
    for (const RunPiece& piece : layout.pieces) {
        const std::size_t i = piece.offset / length;
        EXPECT_EQ(piece.stretch, i % 3);
        EXPECT_EQ(kinds.at(piece.stretch).row, arrays[i].row);
        EXPECT_EQ(kinds.at(piece.stretch).plane, arrays[i].plane);
    }
}

TEST(PlanesLayout, AStretchHasAnEnd) {
    constexpr std::size_t length = 40'000, count = 30;
    std::vector<NumberArray> arrays, kinds;
    for (std::size_t i = 0; i < count; ++i) arrays.push_back(alike(i * length, length, 10));
    const RunLayout layout = lay_out(count * length, arrays, kinds);
    std::vector<std::size_t> bytes(layout.stretches);
    for (const RunPiece& piece : layout.pieces) bytes.at(piece.stretch) += piece.length;
    EXPECT_EQ(bytes.size(), 5u);
    for (const std::size_t each : bytes) EXPECT_EQ(each, 6 * length) << "of 256 KiB";
}

// Whoever decodes reserves room for as many as there are said to be.
TEST(PlanesLayout, PiecesOfAFewBytesAreNone) {
    for (const std::size_t length : {0, 1, 255, 256}) {
        RunLayout layout;
        layout.pieces = {{100, length, 0}};
        layout.stretches = 1;
        std::vector<std::byte> bytes(16);
        const std::size_t put = put_layout(layout, bytes);
        ASSERT_NE(put, 0u);
        ByteView stored(bytes.data(), put);
        const Result<RunLayout> got = get_layout(stored, 1000);
        EXPECT_EQ(got.ok() && got->pieces == layout.pieces, length == 256) << length;
    }
}

}  // namespace
}  // namespace cairn
