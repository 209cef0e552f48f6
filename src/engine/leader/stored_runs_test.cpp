// Runs as leaders tell them: joined and cut they hold the same bytes in the same places, and only what may be cut is.
#include "engine/leader/stored_runs.hpp"

#include <gtest/gtest.h>

namespace cairn::engine {
namespace {

constexpr std::uint64_t run_block = 4096;

StoredRun plain(Rank rank, std::uint64_t image_block, std::uint64_t blocks, std::uint64_t part_block) {
    StoredRun run{part_block * run_block, blocks * run_block, 0, 0, {{rank, image_block * run_block, blocks * run_block, 0, {}}}};
    for (std::uint64_t i = 0; i < blocks; ++i) run.pieces[0].checksums.push_back(1000 * rank + image_block + i);
    return run;
}

TEST(StoredRuns, WhatGoesOnIsJoined) {
    std::vector<StoredRun> runs = {plain(1, 2, 3, 6), plain(1, 0, 2, 4), plain(2, 0, 2, 0), plain(2, 3, 1, 2)};
    join_runs(runs, run_block);
    EXPECT_EQ(runs, (std::vector{plain(2, 0, 2, 0), plain(2, 3, 1, 2), plain(1, 0, 5, 4)})) << "rank 2's second run is another place of its image";
}

TEST(StoredRuns, EncodedOnesAndThoseOfSeveralPiecesStayApart) {
    StoredRun encoded = plain(1, 0, 2, 0), packed = plain(1, 2, 1, 2);
    encoded.codec = 1;
    packed.pieces.push_back({2, 0, 100, run_block, {7}});
    packed.stored_bytes += 100;
    std::vector<StoredRun> runs = {encoded, packed, plain(1, 3, 1, 4)};
    const std::vector<StoredRun> before = runs;
    join_runs(runs, run_block);
    EXPECT_EQ(runs, before);
    FlushLimits limits;
    limits.message_units = 1;
    const auto messages = cut_for_messages(runs, run_block, limits);
    ASSERT_EQ(messages.size(), 3u);
    EXPECT_EQ(messages[0], std::vector{encoded});
    EXPECT_EQ(messages[1], std::vector{packed});
}

TEST(StoredRuns, CutForMessagesTheyAreTheSame) {
    FlushLimits limits;
    limits.message_units = 3;
    limits.message_pieces = 2;
    std::vector<StoredRun> runs = {plain(1, 0, 8, 0), plain(2, 0, 1, 8), plain(3, 0, 1, 9), plain(4, 0, 1, 10)}, again;
    for (const auto& message : cut_for_messages(runs, run_block, limits)) {
        std::size_t blocks = 0;
        for (const StoredRun& run : message) blocks += run.pieces[0].checksums.size();
        EXPECT_LE(blocks, limits.message_units);
        EXPECT_LE(message.size(), limits.message_pieces);
        again.insert(again.end(), message.begin(), message.end());
    }
    join_runs(again, run_block);
    EXPECT_EQ(again, runs);
    EXPECT_EQ(cut_for_messages({}, run_block, limits).size(), 1u) << "a share of nothing is told, too";
}

}  // namespace
}  // namespace cairn::engine
