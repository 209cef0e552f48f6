// Covers and pieces: what is side by side in an image is one cover, and each piece gets its own checksums back, or is told why not.
#include "format/covers.hpp"

#include <gtest/gtest.h>

#include "format/samples.hpp"

namespace cairn {
namespace {

constexpr std::uint64_t block = 4096;

// Rank 1 in two runs, out of order, beside rank 0.
std::vector<StoredRun> runs() {
    return {{0, 3 * block, 0, 0, {{1, 2 * block, block + 5, 0, {12, 13}}, {0, 0, 100, block + 5, {1}}}}, {4 * block, 2 * block, 0, 0, {{1, 0, 2 * block, 0, {10, 11}}}}};
}
std::vector<StoredRun> without_checksums(std::vector<StoredRun> runs) {
    for (StoredRun& run : runs)
        for (StoredPiece& piece : run.pieces) piece.checksums.clear();
    return runs;
}

TEST(Covers, JoinWhatIsSideBySideInAnImage) {
    const std::vector<Cover> covers = covers_of(runs(), block);
    ASSERT_EQ(covers.size(), 2u);
    EXPECT_EQ(covers[0].checksums, (std::vector<std::uint64_t>{1}));
    EXPECT_EQ(covers[1].rank, 1u);
    EXPECT_EQ(covers[1].length, 3 * block + 5);
    EXPECT_EQ(covers[1].checksums, (std::vector<std::uint64_t>{10, 11, 12, 13}));
}

TEST(Covers, GiveEachPieceItsOwn) {
    std::vector<StoredRun> back = without_checksums(runs());
    const Status status = give_checksums(back, covers_of(runs(), block), block);
    EXPECT_TRUE(status.ok()) << status.to_string();
    EXPECT_EQ(back, runs());
}

// Pieces that meet within a block: their cover is cut there, and each gets back the cuts that lie within it.
TEST(Covers, AreCutWherePiecesMeetWithinABlock) {
    const std::vector<StoredRun> cut = {{0, 2 * block, 0, 0, {{0, 5000, 2000, 0, {3, 4}, {6000}}, {0, 0, 5000, 2000, {0, 1, 2}, {100}}}}};
    const std::vector<Cover> covers = covers_of(cut, block);
    ASSERT_EQ(covers.size(), 1u);
    EXPECT_EQ(covers[0].checksums, (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
    EXPECT_EQ(covers[0].cuts, (std::vector<std::uint64_t>{100, 5000, 6000}));
    std::vector<StoredRun> back = without_checksums(cut);
    for (StoredPiece& piece : back[0].pieces) piece.cuts.clear();
    ASSERT_TRUE(give_checksums(back, covers, block).ok());
    EXPECT_EQ(back, cut);
}

TEST(Covers, OfOtherBytesThanThePiecesAreRefused) {
    const auto refused = [](auto change, const char* told) {
        std::vector<Cover> covers = covers_of(runs(), block);
        std::vector<StoredRun> pieces = without_checksums(runs());
        change(covers, pieces);
        const Status status = give_checksums(pieces, covers, block);
        EXPECT_EQ(status.code(), Code::corrupt) << told;
        EXPECT_NE(status.text().find(told), std::string::npos) << status.text();
    };
    refused([](auto& covers, auto&) { covers.pop_back(); }, "rank 1 at 0 of its image: no checksums");
    refused([](auto& covers, auto&) { covers[1].image_offset = block; }, "its checksums are of rank 1 at 4096");
    refused([](auto& covers, auto&) { covers[1].rank = 2; }, "its checksums are of rank 2");
    refused([](auto& covers, auto&) { covers[1].checksums.pop_back(); }, "has 3 checksums for 4 units");
    refused([](auto& covers, auto&) { covers[1].checksums.push_back(0); }, "has 5 checksums for 4 units");
    refused([](auto& covers, auto&) { covers[0].length = 101; }, "100 bytes are no whole units");
    refused([](auto& covers, auto&) { covers[1].cuts = {7, 7}; }, "can not be cut so");
    refused([](auto& covers, auto&) { covers[1].length = 1ull << 61; }, "checksums of");
    refused([](auto& covers, auto&) { covers[1].length += block, covers[1].checksums.push_back(14); }, "no whole units");
    refused(
        [](auto&, auto& pieces) {
            pieces[0].pieces[0].image_offset -= 1, pieces[0].pieces[0].length += 1;
            pieces[1].pieces[0].length -= 1;
        },
        "8191 bytes are no whole units");
    refused([](auto& covers, auto&) { covers.push_back({3, 0, 1, {0}, {}}); }, "checksums of bytes that no run holds");
    refused([](auto&, auto& pieces) { pieces[1].pieces[0].length += block; }, "another run holds these bytes");
}

}  // namespace
}  // namespace cairn
