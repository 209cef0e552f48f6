// Bench: real flushes on a real disk, small ones. What is measured is of this machine; what must hold anywhere is asserted.
#include "tune/bench.hpp"

#include <filesystem>

#include "world/real/test_world.hpp"

namespace cairn::tune {
namespace {

struct BenchTest : testing::Test {
    test::TemporaryDirectory target, scratch;
    bool stop = false;
    std::unique_ptr<Bench> make() {
        BenchOptions options;
        options.target = target.path();
        options.scratch = scratch.path();
        options.stop = [this] { return stop; };
        Result<std::unique_ptr<Bench>> made = Bench::create(std::move(options));
        EXPECT_TRUE(made.ok()) << made.status().to_string();
        return std::move(made).value();
    }
    static bool is_empty(const test::TemporaryDirectory& directory) { return std::filesystem::is_empty(directory.path()); }
};

TEST_F(BenchTest, EveryKindOfVariantWritesAllBytesAndLeavesNothing) {
    const auto bench = make();
    const Status prepared = bench->prepare(1 << 20);
    ASSERT_TRUE(prepared.ok()) << prepared.to_string();
    Variant plain;
    plain.uring = false;
    std::vector<Variant> variants = {plain};
    for (const auto& [factor, value] : std::vector<std::pair<Factor, std::uint64_t>>{{Factor::writers, 1},
                                                                                     {Factor::writers, 32},
                                                                                     {Factor::files, 4},
                                                                                     {Factor::placement, 1},
                                                                                     {Factor::placement, 2},
                                                                                     {Factor::local_split, 1},
                                                                                     {Factor::block_bytes, 64 << 10},
                                                                                     {Factor::direct, 0}}) {
        variants.push_back(plain);
        set_level(variants.back(), factor, value);
    }
    if (bench->has_uring()) {
        variants.push_back(plain);
        variants.back().uring = true;
    }
    for (const Variant& variant : variants)
        for (const std::uint32_t followers : {1u, 3u}) {
            const Result<Measured> measured = bench->run(normal(variant), followers);
            ASSERT_TRUE(measured.ok()) << whole_text(variant) << ": " << measured.status().to_string();
            EXPECT_EQ(measured->local_bytes, bench->local_bytes(1 << 20));
            EXPECT_EQ(measured->received_bytes, followers * measured->local_bytes);
            EXPECT_GT(measured->write_s, 0);
            EXPECT_LE(measured->write_s, measured->durable_s);
            EXPECT_LE(measured->durable_s, measured->wall_s);
            EXPECT_TRUE(is_empty(target));
        }
}

TEST_F(BenchTest, LocalFilesDifferByAFifthAndGoWithTheBench) {
    auto bench = make();
    ASSERT_TRUE(bench->prepare(1 << 20).ok());
    std::uint64_t least = UINT64_MAX, most = 0;
    for (const auto& entry : std::filesystem::directory_iterator(scratch.path())) {
        least = std::min<std::uint64_t>(least, entry.file_size());
        most = std::max<std::uint64_t>(most, entry.file_size());
    }
    EXPECT_LT(least, most);
    EXPECT_GE(least, 0.8 * (1 << 20));
    EXPECT_LE(most, 1.25 * (1 << 20));
    ASSERT_TRUE(bench->prepare(1 << 16).ok());  // others instead
    bench.reset();
    EXPECT_TRUE(is_empty(scratch));
}

TEST_F(BenchTest, AStoppedRunLeavesNothing) {
    const auto bench = make();
    ASSERT_TRUE(bench->prepare(1 << 20).ok());
    stop = true;
    EXPECT_EQ(bench->run(Variant{.uring = false}, 1).code(), Code::cancelled);
    EXPECT_TRUE(is_empty(target));
}

TEST_F(BenchTest, ATargetThatIsGoneIsAnError) {
    const auto bench = make();
    ASSERT_TRUE(bench->prepare(1 << 20).ok());
    target.remove();
    const Result<Measured> measured = bench->run(Variant{.uring = false}, 1);
    EXPECT_EQ(measured.code(), Code::not_found);
    EXPECT_NE(measured.status().text().find(target.path()), std::string::npos);
}

}  // namespace
}  // namespace cairn::tune
