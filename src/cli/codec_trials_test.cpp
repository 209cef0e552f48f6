#include "cli/codec_trials.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace cairn::cli {
namespace {

SampleImage ramp(std::uint64_t numbers) {
    Bytes bytes(8 * numbers);
    for (std::uint64_t i = 0; i < numbers; ++i) std::memcpy(bytes.data() + 8 * i, &i, 8);
    SampleImage image;
    image.append(std::make_shared<BytesBuffer>(std::move(bytes)), 0, 8 * numbers, {});
    return image;
}

// Numbers that a codec makes something of.
TEST(CodecTrials, WhatIsTriedComesBack) {
    const SampleImage image = ramp(300'000);
    std::uint64_t told = 0;
    const Result<CodecTrial> trial = try_codec({{&image, 1}}, runs_of(image.bytes(), 1 << 20), {Codec::planes}, [&](std::uint64_t bytes) { told = bytes; });
    ASSERT_TRUE(trial.ok()) << trial.status().text();
    EXPECT_EQ(trial->raw_bytes, 2'400'000);
    EXPECT_EQ(told, 2'400'000u);
    EXPECT_EQ(trial->runs, 3u);
    EXPECT_GT(trial->ratio(), 10);
    EXPECT_EQ(trial->decoded_bytes, 2'400'000);
    EXPECT_GT(trial->encode_bytes_per_s(), 0);
    ASSERT_EQ(trial->keys.size(), 1u);
    EXPECT_EQ(trial->keys.front().raw_bytes, 2'400'000u);
    EXPECT_NEAR(durable_s(*trial, 1e6, 1.0, 1), 1e6 / trial->part_ratio(), 1) << "storage of a byte a second binds";
    EXPECT_GT(durable_s(*trial, 1e9, 1e15, 1), 1.9 * durable_s(*trial, 1e9, 1e15, 2)) << "encoding does";
}

// Each run begins on a page, and a footer names its pieces and has a checksum for each block.
TEST(CodecTrials, PagesAndFootersCount) {
    const SampleImage image = ramp(1000);
    const auto part_bytes = [&](std::uint64_t block, const NextRun& next) { return try_codec({{&image, 1}, {}, block}, next, {Codec::none, false}).value().part_bytes; };
    EXPECT_EQ(part_bytes(1 << 20, runs_of(8000, 8000)), 8192 + 30 + 8);
    EXPECT_EQ(part_bytes(4096, runs_of(8000, 8000)), 8192 + 30 + 2 * 8);
    EXPECT_EQ(part_bytes(4096, runs_of(8000, 4096)), 8192 + 2 * (30 + 8));
    const NextRun in_pieces = [](const CodecTrial& so_far) { return so_far.runs > 0 ? Pack() : Pack{{0, {0, 0, 4096}}, {0, {0, 4096, 3904}}}; };
    EXPECT_EQ(part_bytes(4096, in_pieces), 8192 + 2 * (30 + 8));
}

}  // namespace
}  // namespace cairn::cli
