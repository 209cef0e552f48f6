#include "cli/codec_search.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>

#include "cli/flush_runs.hpp"

namespace cairn::cli {
namespace {

constexpr std::uint64_t kib = 1 << 10, mib = 1 << 20;

// What a codec makes of a GB, and how fast.
struct Makes {
    double ratio = 1, bytes_per_s = 0;
};

CodecTrial trial_of(const Method& method, const Makes& makes) {
    CodecTrial trial;
    trial.raw_bytes = 1e9;
    trial.stored_bytes = trial.part_bytes = 1e9 / makes.ratio;
    if (method.codec == Codec::none) return trial;
    trial.encode_s = 1e9 / makes.bytes_per_s;
    trial.decoded_bytes = 1e9;
    if (const auto effort = effort_of(method.codec)) trial.keys = {{0, *effort, 1'000'000'000, static_cast<std::uint64_t>(trial.stored_bytes), static_cast<std::uint64_t>(1e9 * trial.encode_s)}};
    return trial;
}

std::string search_of(const std::string& now, double storage_bytes_per_s, unsigned threads, std::map<Codec, Makes> makes) {
    SearchInput input;
    const ConfigKey& key = *find_config_key("flush.codec");
    Settings settings;
    key.set(settings, key.parse(now).value());
    input.present = settings.flush;
    input.storage_bytes_per_s = storage_bytes_per_s;
    input.threads = threads;
    const Result<SearchReport> report = search_codecs(input, [&](const Combination& each) { return Result<CodecTrial>(trial_of(each.method, makes[each.method.codec])); });
    return report.value().codec;
}

const std::map<Codec, Makes> usual = {{Codec::zero_runs, {1, 5e9}}, {Codec::numbers, {1.4, 200e6}}, {Codec::planes, {1.5, 500e6}}, {Codec::planes_small, {1.6, 60e6}}};

TEST(CodecSearch, AutoIsBestWhereItReachesTheBest) {
    for (const double storage : {5e6, 200e6}) EXPECT_EQ(search_of("off", storage, 1, usual), "auto") << storage;
    EXPECT_EQ(search_of("off", 2e9, 1, usual), "off");
    EXPECT_EQ(search_of("auto", 2e9, 1, usual), "off") << "trials would be of no use";
    EXPECT_EQ(search_of("auto", 495e6, 1, usual), "off") << "one hundredth is not worth it";
    EXPECT_EQ(search_of("auto", 2e9, 16, usual), "auto") << "sixteen threads encode fast enough";
}

TEST(CodecSearch, WhatIsSetStaysWhereNothingGains2Percent) {
    EXPECT_EQ(search_of("small", 5e6, 1, usual), "small");
    EXPECT_EQ(search_of("fast", 5e6, 1, usual), "auto");
    EXPECT_EQ(search_of("fast", 200e6, 1, usual), "fast");
    EXPECT_EQ(search_of("small", 200e6, 1, usual), "auto");
}

TEST(CodecSearch, AnotherCodecIsBestWhereAutoHasNothingLikeIt) {
    std::map<Codec, Makes> makes = usual;
    makes[Codec::numbers].ratio = 2;
    EXPECT_EQ(search_of("auto", 5e6, 1, makes), "delta-shuffle-zstd");
    makes[Codec::numbers].ratio = 1.61;
    EXPECT_EQ(search_of("auto", 5e6, 1, makes), "auto");
}

TEST(CodecSearch, WithoutARateDaemonsFindOut) {
    EXPECT_EQ(search_of("off", 0, 1, usual), "auto");
    EXPECT_EQ(search_of("fast", 0, 1, usual), "auto");
    const std::map<Codec, Makes> noise = {{Codec::zero_runs, {1, 5e9}}, {Codec::numbers, {1, 200e6}}, {Codec::planes, {1.03, 500e6}}, {Codec::planes_small, {1.03, 60e6}}};
    EXPECT_EQ(search_of("auto", 0, 1, noise), "off");
}

// ---- merging and blocks ----

struct Ways {
    double apart = 1.5, by_32_kib = 1.5, whole = 1.5, long_blocks = 1.5;
};

SearchReport search_ways(const SearchInput& input, const Ways& ways, std::vector<Combination>* asked = nullptr) {
    const TryIt try_it = [&](const Combination& each) {
        if (asked) asked->push_back(each);
        double ratio = each.block_bytes > mib ? ways.long_blocks : ways.apart;
        if (each.merge_ranks > 1) ratio = each.merge_bytes == 32 * kib && each.block_bytes <= 32 * kib ? ways.by_32_kib : each.merge_bytes > mib ? ways.whole : ways.apart;
        return Result<CodecTrial>(trial_of(each.method, {each.method.codec == Codec::none ? 1 : ratio, 500e6}));
    };
    return search_codecs(input, try_it).value();
}

using Changes = std::vector<ConfigChange>;

TEST(CodecSearch, TurnsThatPayAreSetWithBlocksThatFit) {
    SearchInput input{{}, 0, 1, 16};
    SearchReport report = search_ways(input, {1.5, 6, 2, 1.5});
    EXPECT_EQ(report.changes, (Changes{{"flush.block_bytes", "\"32 KiB\""}})) << "turns of 32 KiB are the default, and trials find merging";
    EXPECT_EQ(report.best.merge_ranks, 16u);
    EXPECT_NEAR(report.gain, 4, 1e-9);
    EXPECT_TRUE(report.blocks.empty()) << "turns say how long blocks are";
    input.present.block_bytes = 32 * kib;
    EXPECT_TRUE(search_ways(input, {1.5, 6, 2, 1.5}).changes.empty());
    input.present.merge_ranks = 1;
    EXPECT_EQ(search_ways(input, {1.5, 6, 2, 1.5}).changes, (Changes{{"flush.merge_ranks", "0"}}));
}

TEST(CodecSearch, MergingThatTrialsDoNotFindTakesARateOfStorage) {
    SearchInput input{{}, 0, 1, 16};
    EXPECT_TRUE(search_ways(input, {1.5, 1.6, 1.5, 1.5}).changes.empty()) << "a fifteenth is less than a reader pays";
    input.storage_bytes_per_s = 5e6;
    EXPECT_EQ(search_ways(input, {1.5, 1.6, 1.5, 1.5}).changes, (Changes{{"flush.merge_ranks", "16"}, {"flush.block_bytes", "\"32 KiB\""}}));
    EXPECT_TRUE(search_ways(input, {1.5, 1.52, 1.5, 1.5}).changes.empty()) << "not 2 %";
    input.storage_bytes_per_s = 5e9;
    EXPECT_EQ(search_ways(input, {1.5, 6, 1.5, 1.5}).changes, (Changes{{"flush.codec", "\"off\""}})) << "encoding binds";
}

TEST(CodecSearch, MergingThatCostsIsEnded) {
    SearchInput input{{}, 5e6, 1, 16};
    input.present.merge_ranks = 8;
    input.present.block_bytes = 32 * kib;
    EXPECT_EQ(search_ways(input, {1.5, 1.4, 1.4, 1.5}).changes, (Changes{{"flush.merge_ranks", "1"}}));
}

TEST(CodecSearch, LongerBlocksAreSetWhereNothingIsMerged) {
    SearchInput input{{}, 0, 1, 1};
    SearchReport report = search_ways(input, {1.5, 1.5, 1.5, 1.6});
    EXPECT_EQ(report.changes, (Changes{{"flush.block_bytes", "\"4 MiB\""}}));
    EXPECT_TRUE(report.merged.empty());
    EXPECT_TRUE(search_ways(input, {1.5, 1.5, 1.5, 1.52}).changes.empty());
    input.present.buffer_bytes = 4 * mib;
    std::vector<Combination> asked;
    search_ways(input, {}, &asked);
    for (const Combination& each : asked) EXPECT_LE(each.block_bytes, 4 * mib) << "a buffer has whole blocks";
    EXPECT_LE(asked.size(), trials_most(input));
}

TEST(CodecSearch, FewCombinationsAreTried) {
    SearchInput input{{}, 5e6, 1, 16};
    std::vector<Combination> asked;
    search_ways(input, {}, &asked);
    EXPECT_LE(asked.size(), trials_most(input));
    EXPECT_GT(asked.size(), 10u);
    EXPECT_LT(trials_most(input), 40u);
}

// Encoders were quick by chance, when it was tried first.
TEST(CodecSearch, WhatWasOnlyLuckyIsNotRecommended) {
    std::map<Codec, int> tried;
    const auto codec_of = [&](double ratio_then) {
        tried.clear();
        const TryIt try_it = [&](const Combination& each) {
            const bool is_lucky = each.method.codec == Codec::numbers && tried[Codec::numbers]++ == 0;
            return Result<CodecTrial>(trial_of(each.method, {each.method.codec == Codec::none ? 1 : is_lucky ? 2 : each.method.codec == Codec::numbers ? ratio_then : 1.5, 500e6}));
        };
        return search_codecs({{}, 5e6, 1, 1}, try_it).value();
    };
    EXPECT_TRUE(codec_of(1.5).is_refuted);
    EXPECT_EQ(codec_of(1.5).codec, "auto");
    EXPECT_TRUE(codec_of(1.5).changes.empty());
    EXPECT_EQ(codec_of(1.8).codec, "delta-shuffle-zstd");
    EXPECT_NEAR(codec_of(1.8).gain, 1.2, 1e-9);
}

// ---- real data ----

constexpr std::uint32_t ranks = 8;
constexpr std::uint64_t numbers = 256 << 10;  // of each 2 MiB

SearchReport search_images(const std::vector<std::vector<double>>& data) {
    std::vector<SampleImage> images(data.size());
    std::vector<std::uint64_t> lengths;
    for (std::size_t i = 0; i < data.size(); ++i) {
        Bytes bytes(8 * data[i].size());
        std::memcpy(bytes.data(), data[i].data(), bytes.size());
        lengths.push_back(bytes.size());
        images[i].append(std::make_shared<BytesBuffer>(std::move(bytes)), 0, lengths.back(), {});
    }
    const SearchInput input{{}, 5e6, 2, ranks};
    const TryIt try_it = [&](const Combination& each) {
        RunSettings runs = run_settings(input.present, 8ull * ranks * numbers, input.storage_bytes_per_s);
        runs.block_bytes = each.block_bytes;
        if (each.merge_ranks > 1) runs.merge = merge_policy(runs, each.merge_ranks, each.merge_bytes);
        return try_codec({images, {}, runs.block_bytes}, flush_runs(lengths, runs), each.method);
    };
    return search_codecs(input, try_it).value();
}

// Cells side by side often have the same value, and are dealt out to ranks one by one: alone each rank's are noise, and together they are not.
TEST(CodecSearch, StridedDataAreMerged) {
    std::mt19937_64 random(1);
    std::vector<std::vector<double>> data(ranks);
    for (std::uint64_t i = 0; i < numbers; ++i) {
        const double value = std::uniform_real_distribution<>(1, 2)(random);
        for (std::vector<double>& of_rank : data) of_rank.push_back(value);
    }
    const SearchReport report = search_images(data);
    EXPECT_GT(report.best.merge_ranks, 1u);
    EXPECT_GT(report.gain, 3);
    EXPECT_LT(report.block_bytes, mib);
    EXPECT_EQ(report.merge_ranks, 0u) << "trials find it";
}

// Each rank has its own piece of space.
TEST(CodecSearch, DataThatAreUnlikeStayApart) {
    std::mt19937_64 random(2);
    std::vector<std::vector<double>> data(ranks);
    for (std::uint64_t rank = 0; rank < data.size(); ++rank)
        for (std::uint64_t i = 0; i < numbers; ++i) data[rank].push_back(std::sin(1e-4 * static_cast<double>(i)) + 1e-6 * static_cast<double>(random() % 1000) + static_cast<double>(100 * rank));
    const SearchReport report = search_images(data);
    EXPECT_NE(report.codec, "off");
    EXPECT_EQ(report.best.merge_ranks, 1u);
    EXPECT_EQ(report.merge_ranks, 0u) << "as it is set";
    EXPECT_FALSE(report.merged.empty());
}

}  // namespace
}  // namespace cairn::cli
