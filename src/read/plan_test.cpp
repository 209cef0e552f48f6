// Plans by themselves, of hand-made copies: a plan for a stream is its reads in the order of the image, each once.
#include "read/plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace cairn {
namespace {

constexpr std::uint64_t block = 4096;

// One rank's image, of 16 blocks and a short one, in four runs: in two parts, and in neither in the order of the image.
VersionCopies scattered() {
    VersionCopies copies;
    copies.ranks = 1;
    copies.parts.emplace();
    OpenVersion& parts = *copies.parts;
    parts.manifest.ranks = 1;
    parts.manifest.block_bytes = block;
    parts.manifest.parts.resize(2);
    parts.parts = {0, 1};
    parts.footers.resize(2);
    for (Footer& footer : parts.footers) footer.block_bytes = block;
    parts.footers[0].images.push_back({0, 16 * block + 5, {}});
    const auto add = [&](std::size_t footer, std::uint64_t image_blocks, std::uint64_t bytes, std::uint64_t part_blocks) {
        parts.footers[footer].runs.push_back({part_blocks * block, bytes, 0, 0, {{0, image_blocks * block, bytes, 0, std::vector<std::uint64_t>(div_up(bytes, block))}}});
    };
    add(0, 8, 4 * block, 0);
    add(0, 0, 3 * block, 4);
    add(1, 12, 4 * block + 5, 0);
    add(1, 3, 5 * block, 8);
    parts.index();
    return copies;
}

std::uint64_t end_of(const ImageRange& range) { return range.offset + range.length; }

TEST(Plan, AStreamIsThePlanInTheOrderOfTheImage) {
    const VersionCopies copies = scattered();
    const ImageRange wanted{block / 2, 15 * block};
    const auto plan = plan_reads(copies, {{0, {wanted}}}, 2 * block);
    ASSERT_TRUE(plan.ok()) << plan.status().to_string();
    const std::vector<PlanPiece> pieces = in_image_order(copies, *plan, 4 * block);
    ASSERT_GE(pieces.size(), 4u);
    EXPECT_LE(pieces.front().range.offset, wanted.offset);
    EXPECT_GE(end_of(pieces.back().range), end_of(wanted));
    std::vector<PartRead> reads;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        const PlanPiece& piece = pieces[i];
        EXPECT_LE(piece.range.length, 4 * block);
        EXPECT_EQ(piece.plan.bytes(), piece.range.length);  // all of it, and nothing beside it
        EXPECT_EQ(piece.range.offset, i == 0 ? 0 : end_of(pieces[i - 1].range));
        const auto place = [&](const PartRead& each) { return std::pair(each.footer, copies.parts->footers[each.footer].runs[each.run].part_offset + each.offset); };
        EXPECT_TRUE(std::is_sorted(piece.plan.parts.begin(), piece.plan.parts.end(), [&](const PartRead& a, const PartRead& b) { return place(a) < place(b); }));
        for (const PartRead& read : piece.plan.parts) {
            const std::uint64_t at = image_run_of(*copies.parts, read, 0).offset;
            EXPECT_GE(at, piece.range.offset);
            EXPECT_LE(at + read.length, end_of(piece.range));
            reads.push_back(read);
        }
    }
    ASSERT_EQ(reads.size(), plan->parts.size());
    EXPECT_TRUE(std::is_permutation(reads.begin(), reads.end(), plan->parts.begin()));
}

TEST(Plan, AReadLargerThanAPieceIsAPieceByItself) {
    const VersionCopies copies = scattered();
    const auto plan = plan_reads(copies, {{0, {}}}, 64 * block);
    ASSERT_TRUE(plan.ok()) << plan.status().to_string();
    const std::vector<PlanPiece> pieces = in_image_order(copies, *plan, block);
    EXPECT_EQ(pieces.size(), plan->parts.size());
    for (const PlanPiece& piece : pieces) EXPECT_EQ(piece.plan.parts.size(), 1u);
}

// A packed run with both ends of the image: a stream reads each by itself rather than hold what lies between, and no more of the run.
TEST(Plan, PiecesOfOneRunThatLieApartAreReadOneByOne) {
    VersionCopies copies = scattered();
    OpenVersion& parts = *copies.parts;
    parts.footers[0].images[0].bytes += 5 * block;
    StoredRun& run = parts.footers[0].runs[1];  // blocks 0 to 2
    run.pieces.push_back({0, 17 * block, 4 * block + 5, 3 * block, std::vector<std::uint64_t>(5)});
    run.stored_bytes = 7 * block + 5;
    parts.footers[1].runs[0].pieces[0].length = 5 * block;  // what ended in a short block is whole
    parts.index();
    const auto plan = plan_reads(copies, {{0, {}}}, 64 * block);
    ASSERT_TRUE(plan.ok()) << plan.status().to_string();
    const std::vector<PlanPiece> pieces = in_image_order(copies, *plan, 6 * block);
    std::uint64_t end = 0;
    for (const PlanPiece& piece : pieces) {
        EXPECT_EQ(piece.range.offset, std::exchange(end, end_of(piece.range)));
        EXPECT_LE(piece.range.length, 6 * block);
        EXPECT_EQ(piece.plan.bytes(), piece.range.length);
    }
    EXPECT_EQ(end, 21 * block + 5);
}

}  // namespace
}  // namespace cairn
