#include "cli/sample_image.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace cairn::cli {
namespace {

constexpr std::uint64_t sample_mib = 1 << 20;

TEST(SampleImage, FilesThatFitAreLookedAtWhole) {
    EXPECT_EQ(sample_shares({1, 0, 5 * sample_mib}, 6 * sample_mib), (std::vector<std::uint64_t>{1, 0, 5 * sample_mib}));
    EXPECT_EQ(sample_stretches(5 * sample_mib + 1, 5 * sample_mib + 1), (Stretches{{0, 5 * sample_mib + 1}}));
}

TEST(SampleImage, OthersGiveAShareEach) {
    EXPECT_EQ(sample_shares({100 * sample_mib, 300 * sample_mib}, 40 * sample_mib), (std::vector<std::uint64_t>{10 * sample_mib, 30 * sample_mib}));
    const std::vector<std::uint64_t> shares = sample_shares(std::vector<std::uint64_t>(1000, 64 * sample_mib), 100 * sample_mib);
    EXPECT_LE(std::accumulate(shares.begin(), shares.end(), std::uint64_t{0}), 100 * sample_mib);
    EXPECT_GT(std::accumulate(shares.begin(), shares.end(), std::uint64_t{0}), 95 * sample_mib);
    for (const std::uint64_t share : shares) EXPECT_TRUE(share == 0 || (share >= 8 * sample_mib && share < 9 * sample_mib)) << share << ": others are left out";
    EXPECT_GT(std::accumulate(shares.begin() + 500, shares.end(), std::uint64_t{0}), 40 * sample_mib) << "by turns";
}

TEST(SampleImage, OfManySmallFilesSomeAreLookedAtWhole) {
    const std::uint64_t length = 560 << 10;
    const std::vector<std::uint64_t> shares = sample_shares(std::vector<std::uint64_t>(16, length), 4 * sample_mib);
    for (const std::uint64_t share : shares) EXPECT_TRUE(share == 0 || share == length) << share;
    EXPECT_EQ(std::accumulate(shares.begin(), shares.end(), std::uint64_t{0}), 7 * length);
}

TEST(SampleImage, StretchesLieOverAllOfAFile) {
    const Stretches stretches = sample_stretches(1000 * sample_mib, 20 * sample_mib);
    ASSERT_EQ(stretches.size(), 5u);
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < stretches.size(); ++i) {
        EXPECT_EQ(stretches[i].second, 4 * sample_mib);
        EXPECT_EQ(stretches[i].first % 4096, 0u);
        EXPECT_GE(stretches[i].first, std::max<std::uint64_t>(end, i * 200 * sample_mib));
        end = stretches[i].first + stretches[i].second;
        EXPECT_LE(end, (i + 1) * 200 * sample_mib);
    }
    EXPECT_EQ(sample_stretches(1000 * sample_mib, sample_mib).size(), 4u) << "one place says little of all";
    EXPECT_EQ(sample_stretches(2 * sample_mib, 256 << 10), (Stretches{{896 << 10, 256 << 10}})) << "one is in the middle";
}

TEST(SampleImage, CopiesAcrossStretchesWithTheirArrays) {
    Bytes bytes(1000);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i % 251);
    const BufferPtr buffer = std::make_shared<BytesBuffer>(bytes);
    const std::vector<NumberArray> arrays = {{96, 800, 8, true}};
    SampleImage image;
    image.append(buffer, 0, 100, arrays);
    image.append(buffer, 500, 60, arrays);
    image.append(buffer, 900, 100, {});
    EXPECT_EQ(image.bytes(), 260u);
    EXPECT_EQ(image.described_bytes(), 56u) << "in the first stretch half of a number, in the second whole ones from 504 on";
    ASSERT_EQ(image.arrays().size(), 1u);
    EXPECT_EQ(image.arrays().front().offset, 104u);
    Bytes got(80);
    image.copy(90, got);
    for (std::size_t i = 0; i < 80; ++i) {
        const std::size_t at = i < 10 ? 90 + i : i < 70 ? 490 + i : 830 + i;
        ASSERT_EQ(got[i], bytes[at]) << i;
    }
}

}  // namespace
}  // namespace cairn::cli
