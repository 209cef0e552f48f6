#include "cli/flush_runs.hpp"

#include <gtest/gtest.h>

namespace cairn::cli {
namespace {

constexpr std::uint64_t run_kib = 1 << 10, run_mib = 1 << 20;

std::vector<Pack> all_runs(const std::vector<std::uint64_t>& images, const RunSettings& settings) {
    const NextRun next = flush_runs(images, settings);
    std::vector<Pack> runs;
    CodecTrial so_far;
    for (Pack run = next(so_far); !run.empty(); run = next(so_far)) {
        so_far.raw_bytes += static_cast<double>(bytes_of(run));
        so_far.stored_bytes = so_far.raw_bytes;
        runs.push_back(std::move(run));
    }
    return runs;
}

// Each byte once.
void expect_all(const std::vector<Pack>& runs, const std::vector<std::uint64_t>& images) {
    std::vector<std::uint64_t> next(images.size(), 0);
    for (const Pack& run : runs)
        for (const NodeSource& piece : run) {
            EXPECT_EQ(piece.source.image_offset, next[piece.source.rank]);
            next[piece.source.rank] += piece.source.length;
        }
    EXPECT_EQ(next, images);
}

TEST(FlushRuns, LongImagesAreApartAndSmallOnesPacked) {
    const std::vector<std::uint64_t> images = {10 * run_mib, 3 * run_mib + 5, 100 * run_kib, 0, 200 * run_kib};
    RunSettings settings{run_mib, 64 * run_mib, 8, 1024 * run_mib, 0, {}};
    const std::vector<Pack> runs = all_runs(images, settings);
    expect_all(runs, images);
    ASSERT_EQ(runs.size(), 5u);
    EXPECT_EQ(runs[0].size(), 2u) << "the small ones, one after the other";
    EXPECT_EQ(bytes_of(runs[1]), 4 * run_mib) << "of a large share";
    settings.share_bytes = 13 * run_mib;
    EXPECT_EQ(bytes_of(all_runs(images, settings)[1]), run_mib) << "of a small one all writers have some";
    settings.block_bytes = 8 * run_mib;
    EXPECT_EQ(bytes_of(all_runs(images, settings)[1]), 8 * run_mib) << "a block at least";
    settings = {run_mib, 64 * run_mib, 8, 1024 * run_mib, 20e6, {}};
    EXPECT_EQ(bytes_of(all_runs(images, settings)[1]), run_mib) << "storage is slow";
}

TEST(FlushRuns, MergedImagesGiveByTurns) {
    const std::vector<std::uint64_t> images = {2 * run_mib, 2 * run_mib, 2 * run_mib + 64 * run_kib};
    RunSettings settings{32 * run_kib, 64 * run_mib, 8, 6 * run_mib, 0, {}};
    settings.merge = merge_policy(settings, 16, 64 * run_kib);
    EXPECT_EQ(settings.merge.ranks, 16u);
    const std::vector<Pack> runs = all_runs(images, settings);
    expect_all(runs, images);
    for (std::size_t i = 0; i + 1 < runs.front().size(); ++i) EXPECT_EQ(runs.front()[i].source.rank, i % 3);
    EXPECT_EQ(runs.front().front().source.length, 64 * run_kib);
    EXPECT_LT(merge_policy({run_mib, 64 * run_mib}, 16, 64 * run_kib).ranks, 5u) << "as blocks allow";
    EXPECT_EQ(merge_policy({4 * run_mib, 64 * run_mib}, 16, 64 * run_kib).ranks, 1u);
}

}  // namespace
}  // namespace cairn::cli
