#include "cli/tune_codecs.hpp"

#include <gtest/gtest.h>

namespace cairn::cli {
namespace {

TriedSetting setting(std::string value, double ratio, double encode_bytes_per_s) {
    TriedSetting made{std::move(value), {}};
    made.trial.raw_bytes = 1e9;
    made.trial.stored_bytes = 1e9 / ratio;
    made.trial.encode_s = encode_bytes_per_s > 0 ? 1e9 / encode_bytes_per_s : 0;
    return made;
}

TEST(TuneCodecs, TheBestIsTheSoonestByStorage) {
    const std::vector<TriedSetting> tried = {setting("off", 1, 0), setting("fast", 1.5, 500e6), setting("small", 1.6, 60e6)};
    EXPECT_EQ(best_setting(tried, 5e6, 1), "small");
    EXPECT_EQ(best_setting(tried, 200e6, 1), "fast");
    EXPECT_EQ(best_setting(tried, 200e6, 8), "small") << "eight threads encode fast enough";
    EXPECT_EQ(best_setting(tried, 2e9, 1), "off");
    EXPECT_EQ(best_setting(tried, 495e6, 1), "off") << "one hundredth is not worth it";
    EXPECT_EQ(best_setting(tried, 0, 1), "auto") << "the daemons find out";
    EXPECT_EQ(best_setting({setting("off", 1, 0), setting("fast", 1.03, 500e6)}, 0, 1), "off");
    EXPECT_EQ(best_setting({setting("off", 1, 0), setting("fast", 1.03, 500e6)}, 5e6, 1), "fast");
}

// Numbers that a codec makes something of, and noise.
TEST(TuneCodecs, WhatIsTriedComesBack) {
    SampleImage image;
    for (std::uint64_t i = 0; i < 300'000; ++i) {
        const auto* bytes = reinterpret_cast<const std::byte*>(&i);
        image.bytes.insert(image.bytes.end(), bytes, bytes + 8);
    }
    const Result<CodecTrial> trial = try_codec(image, Codec::planes, true);
    ASSERT_TRUE(trial.ok()) << trial.status().text();
    EXPECT_EQ(trial->raw_bytes, 2'400'000);
    EXPECT_GT(trial->ratio(), 10);
    EXPECT_EQ(trial->decoded_bytes, 2'400'000);
    EXPECT_GT(trial->encode_bytes_per_s(), 0);
    EXPECT_NEAR(durable_s(*trial, 1e6, 1.0, 1), 1e6 / trial->ratio(), 1) << "storage of a byte a second binds";
    EXPECT_GT(durable_s(*trial, 1e9, 1e15, 1), 1.9 * durable_s(*trial, 1e9, 1e15, 2)) << "encoding does";
}

}  // namespace
}  // namespace cairn::cli
