// Slices of arrays, beside a look at every element.
#include "read/array_slice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace cairn {
namespace {

using testing::HasSubstr;

using Shape = std::vector<std::uint64_t>;

std::vector<AxisRange> parsed(const std::string& text, const Shape& shape) {
    Result<std::vector<AxisRange>> axes = parse_slice(text, shape);
    EXPECT_TRUE(axes.ok()) << text << ": " << axes.status().to_string();
    return axes.ok() ? *axes : std::vector<AxisRange>();
}

TEST(ArraySlice, IsWrittenAsPythonWritesIt) {
    const Shape shape = {10, 20, 30};
    using Axes = std::vector<AxisRange>;
    EXPECT_EQ(parsed("3:7,:,5", shape), (Axes{{3, 7}, {0, 20}, {5, 6}}));
    EXPECT_EQ(parsed(" 3 : 7 ", {10}), (Axes{{3, 7}}));
    EXPECT_EQ(parsed("-1", shape), (Axes{{9, 10}, {0, 20}, {0, 30}}));
    EXPECT_EQ(parsed("-3:, :-5, 4:2", shape), (Axes{{7, 10}, {0, 15}, {4, 4}}));
    EXPECT_EQ(parsed("-0:,:-0,-0", shape), (Axes{{0, 10}, {0, 0}, {0, 1}}));
    EXPECT_EQ(parsed("7:3", shape)[0], (AxisRange{7, 7}));
    EXPECT_EQ(parsed("8:99,-99:2,99:", shape), (Axes{{8, 10}, {0, 2}, {30, 30}}));
    EXPECT_EQ(parsed("0:18446744073709551615", shape)[0], (AxisRange{0, 10}));
    for (const std::string wrong : {"", "10", "-11", "x", "1:2:3", "1,,2", "1,2,3,4", "+1", "1.0", "18446744073709551616", "--1", "1:-", "0x1"})
        EXPECT_EQ(parse_slice(wrong, shape).code(), Code::invalid_argument) << wrong;
    EXPECT_THAT(parse_slice("1,20", shape).status().text(), HasSubstr("axis 1: '20' is no place and no range of the 20"));
    EXPECT_FALSE(parse_slice("0", {0}).ok());
    EXPECT_TRUE(parse_slice(":", {0}).ok());
}

// Whether each byte of the array is of the slice.
std::vector<bool> selected(std::uint64_t element, const Shape& shape, const std::vector<AxisRange>& axes) {
    std::uint64_t all = element;
    for (const std::uint64_t extent : shape) all *= extent;
    std::vector<bool> is(all);
    for (std::uint64_t at = 0; at < all; ++at) {
        std::uint64_t rest = at / element;
        bool in = true;
        for (std::size_t i = shape.size(); i-- > 0; rest /= shape[i]) in &= rest % shape[i] >= axes[i].begin && rest % shape[i] < axes[i].end;
        is[at] = in;
    }
    return is;
}

TEST(ArraySlice, HasThoseBytesThatALookAtEachElementFinds) {
    std::mt19937 random(7);
    const auto below = [&](std::uint64_t n) { return random() % n; };
    for (int round = 0; round < 400; ++round) {
        const std::uint64_t element = 1 + below(9);
        Shape shape(1 + below(4));
        std::vector<AxisRange> axes;
        for (std::uint64_t& extent : shape) {
            extent = 1 + below(7);
            const std::uint64_t begin = below(2) ? 0 : below(extent + 1);
            axes.push_back({begin, below(2) ? extent : begin + below(extent - begin + 1)});
        }
        const ArraySlice slice(element, shape, axes);
        const std::vector<bool> is = selected(element, shape, axes);
        Bytes array(is.size()), expected;
        for (std::size_t i = 0; i < array.size(); ++i) {
            array[i] = static_cast<std::byte>(random());
            ASSERT_EQ(slice.before(i), expected.size()) << round;
            if (is[i]) expected.push_back(array[i]);
        }
        ASSERT_EQ(slice.bytes(), expected.size()) << round;
        ASSERT_EQ(slice.before(array.size()), expected.size());

        // In pieces that end anywhere.
        Bytes got(expected.size());
        for (std::uint64_t at = 0; at < array.size();) {
            const std::uint64_t length = std::min<std::uint64_t>(array.size() - at, 1 + below(20));
            slice.cut(at, ByteView(array).subspan(at, length), got.data() + slice.before(at));
            at += length;
        }
        ASSERT_EQ(got, expected) << round;

        const std::uint64_t gap = 1 + below(30);
        std::vector<bool> covered(is.size());
        std::uint64_t end = 0;
        for (const ImageRange& range : slice.ranges(gap)) {
            ASSERT_TRUE(is[range.offset] && is[range.offset + range.length - 1]) << round;
            ASSERT_TRUE(range.offset >= end + gap || end == 0) << round;
            end = range.offset + range.length;
            for (std::uint64_t at = range.offset, unwanted = 0; at < end; ++at) {
                covered[at] = true;
                unwanted = is[at] ? 0 : unwanted + 1;
                ASSERT_LT(unwanted, gap) << round;
            }
        }
        for (std::size_t i = 0; i < is.size(); ++i) ASSERT_TRUE(covered[i] || !is[i]) << round;
    }
}

TEST(ArraySlice, OfAllIsOneRun) {
    const ArraySlice all(8, {4, 5, 6}, {{0, 4}, {0, 5}, {0, 6}});
    EXPECT_EQ(all.ranges(1), (std::vector<ImageRange>{{0, 960}}));
    EXPECT_EQ(ArraySlice::whole(77).ranges(1), (std::vector<ImageRange>{{0, 77}}));
    EXPECT_TRUE(ArraySlice::whole(0).ranges(1).empty());
    // A column of 2^40 rows that lie near each other.
    EXPECT_EQ(ArraySlice(1, {1ull << 40, 8}, {{0, 1ull << 40}, {3, 4}}).ranges(4096), (std::vector<ImageRange>{{3, (1ull << 43) - 7}}));
    // A petabyte of which single numbers are wanted.
    const ArraySlice far(8, {1u << 20, 1u << 20, 128}, {{9, 10}, {1'000'000, 1'000'001}, {127, 128}});
    EXPECT_EQ(far.ranges(4096), (std::vector<ImageRange>{{(9ull * (1 << 20) + 1'000'000) * 1024 + 127 * 8, 8}}));
    EXPECT_EQ(far.bytes(), 8u);
}

}  // namespace
}  // namespace cairn
