// Which arrays come together, in how much and what that is good for, and what is no layout.
#include "codec/planes_layout.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "codec/planes.hpp"

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
    const RunLayout layout = lay_out(Bytes(9 * length), arrays, kinds);
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
    const RunLayout layout = lay_out(Bytes(count * length), arrays, kinds);
    std::vector<std::size_t> bytes(layout.stretches);
    for (const RunPiece& piece : layout.pieces) bytes.at(piece.stretch) += piece.length;
    EXPECT_EQ(bytes.size(), 5u);
    for (const std::size_t each : bytes) EXPECT_EQ(each, 6 * length) << "of 256 KiB";
}

// A variable in one of many processes of a simulation: at rest, at rest but for a few numbers, or a smooth field with noise in so many of its lowest bits.
using Variable = std::vector<double>;
constexpr std::size_t edge = 50, numbers = edge * edge, variable_bytes = numbers * sizeof(double);

Variable at_rest(std::size_t moving) {
    Variable values(numbers, 0.125);
    for (std::size_t i = 0; i < moving; ++i) values[numbers / 3 + i] += 0.001 * static_cast<double>(i);
    return values;
}
Variable moving(std::mt19937_64& random, unsigned noise_bits) {
    Variable values;
    const double phase = static_cast<double>(random() % 100);
    for (std::size_t i = 0; i < numbers; ++i) {
        const double smooth = 1.5 + 0.3 * std::sin(phase + static_cast<double>(i % edge) / 500) * std::cos(static_cast<double>(i / edge) / 600);
        std::uint64_t bits;
        std::memcpy(&bits, &smooth, sizeof bits);
        bits ^= random() >> (64 - noise_bits);
        double value;
        std::memcpy(&value, &bits, sizeof value);
        values.push_back(value);
    }
    return values;
}

struct Image {
    Bytes bytes;
    std::vector<NumberArray> arrays;
    void add(const Variable& variable) {
        arrays.push_back(alike(bytes.size(), variable_bytes, edge));
        bytes.resize(bytes.size() + variable_bytes);
        std::memcpy(bytes.data() + arrays.back().offset, variable.data(), variable_bytes);
    }
    // Stored, and back. Alone: no array is like another.
    double stored(bool is_alone) const {
        std::vector<NumberArray> told = arrays;
        for (std::size_t i = 0; i < told.size() && is_alone; ++i) told[i].key = static_cast<std::uint32_t>(i + 1);
        Bytes made(bytes.size()), back(bytes.size());
        made.resize(encode_planes(bytes, told, made));
        EXPECT_FALSE(made.empty());
        EXPECT_TRUE(decode_planes(made, back).ok());
        EXPECT_TRUE(back == bytes);
        return static_cast<double>(made.size());
    }
};

constexpr std::size_t run_lengths[] = {50, 100, 200};  // up to 4 MiB

// What a sample sees of a few of them tells nothing of the others.
TEST(PlanesLayout, ArraysOfUnlikeLooksAreNoLongerSideBySideThanAlone) {
    std::mt19937_64 random(5);
    for (const std::size_t count : run_lengths)
        for (const std::size_t moving_of_ten : {3, 5, 7, 9}) {
            Image image;
            for (std::size_t i = 0; i < count; ++i) image.add(random() % 10 < moving_of_ten ? moving(random, 40) : at_rest(random() % 2 * (random() % 200)));
            EXPECT_LE(image.stored(false), 1.005 * image.stored(true)) << count << " arrays, " << moving_of_ten << " of ten move";
        }
}

// In one plane arrays of one look may be noise or not. Whichever of them a sample is of, that costs a hundredth, and not a plane.
TEST(PlanesLayout, ASampleIsOfMostArraysThatShareAStretch) {
    std::mt19937_64 random(9);
    for (const std::size_t other : {0, 1, 2}) {
        Image image;
        for (std::size_t i = 0; i < 13; ++i) image.add(moving(random, i % 3 == other ? 40 : 33));
        std::vector<NumberArray> kinds;
        EXPECT_EQ(lay_out(image.bytes, image.arrays, kinds).stretches, 1u);
        EXPECT_LE(image.stored(false), 1.02 * image.stored(true)) << other;
    }
}

// Twice as large, so that the numbers are others, and only what is left of them by prediction is the same.
TEST(PlanesLayout, NoiseThatAnotherArrayHasTooIsFound) {
    std::mt19937_64 random(6);
    for (const std::size_t count : run_lengths) {
        Image image;
        Variable variable;
        for (std::size_t i = 0; i < count; ++i) {
            if (i % 2 == 0) variable = moving(random, 40);
            else for (double& value : variable) value *= 2;
            image.add(variable);
        }
        EXPECT_LT(image.stored(false), 0.7 * image.stored(true)) << count;
    }
}

TEST(PlanesLayout, ArraysOfUnlikeLooksAreApart) {
    std::mt19937_64 random(7);
    Image image;
    for (std::size_t i = 0; i < 24; ++i) image.add(i % 3 == 0 ? at_rest(0) : moving(random, i % 3 == 1 ? 12 : 44));
    std::vector<NumberArray> kinds;
    const RunLayout layout = lay_out(image.bytes, image.arrays, kinds);
    ASSERT_EQ(layout.pieces.size(), 24u);
    EXPECT_EQ(layout.stretches, 3u);
    for (std::size_t i = 0; i < 24; ++i) EXPECT_EQ(layout.pieces[i].stretch, i % 3);
}

TEST(PlanesLayout, FewBytesOfAnotherLookStayWithTheOthers) {
    std::mt19937_64 random(8);
    Image image;
    for (std::size_t i = 0; i < 3; ++i) image.add(i == 0 ? at_rest(0) : moving(random, 40));
    image.arrays[0].length = 10'000;
    std::vector<NumberArray> kinds;
    const RunLayout layout = lay_out(image.bytes, image.arrays, kinds);
    EXPECT_EQ(layout.pieces.size(), 3u);
    EXPECT_EQ(layout.stretches, 1u);
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
