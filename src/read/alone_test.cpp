// How much one rank must read by itself.
#include "read/alone.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

constexpr std::uint64_t alone_block = 4096;

StoredPiece piece(Rank rank, std::uint64_t image_offset, std::uint64_t length, std::uint64_t at) { return {rank, image_offset, length, at, std::vector<std::uint64_t>(length / alone_block)}; }

// Rank 0 has two raw blocks and half of an encoded run, rank 1 its other half in two pieces, rank 2 nothing.
OpenVersion shared() {
    OpenVersion version;
    version.manifest.parts.resize(1);
    version.parts = {0};
    Footer& footer = version.footers.emplace_back();
    footer.block_bytes = alone_block;
    footer.images = {{0, 6 * alone_block, {}}, {1, 4 * alone_block, {}}, {2, 0, {}}};
    footer.runs.push_back({0, 2 * alone_block, 0, 0, {piece(0, 0, 2 * alone_block, 0)}});
    footer.runs.push_back({2 * alone_block, 3 * alone_block, 1, 7, {piece(1, 0, alone_block, 0), piece(0, 2 * alone_block, 4 * alone_block, alone_block), piece(1, alone_block, 3 * alone_block, 5 * alone_block)}});
    version.index();
    return version;
}

TEST(Alone, RunsThatAreEncodedAreReadWhole) {
    const OpenVersion version = shared();
    const AloneRead first = alone_read(version, 0), other = alone_read(version, 1);
    EXPECT_EQ(first.read_bytes, 5 * alone_block);
    EXPECT_DOUBLE_EQ(first.own_bytes, 3.5 * alone_block);
    EXPECT_EQ(other.read_bytes, 3 * alone_block) << "once, though it has two pieces there";
    EXPECT_DOUBLE_EQ(other.factor(), 2);
    EXPECT_EQ(alone_read(version, 2).read_bytes, 0u);
    EXPECT_EQ(costliest_alone(version)->rank, 1u);
    EXPECT_FALSE(costliest_alone(OpenVersion()));
    OpenVersion raw = shared();
    raw.footers[0].runs[1].codec = 0;
    raw.footers[0].runs[1].stored_bytes = 8 * alone_block;
    EXPECT_EQ(alone_read(raw, 0).read_bytes, 10 * alone_block) << "so is one of several pieces";
    EXPECT_DOUBLE_EQ(alone_read(raw, 0).own_bytes, 6 * alone_block);
}

// Of the run that needs it each piece, also rank 0's where rank 1 alone is read; and no more of the base than that.
TEST(Alone, ABaseIsReadBesides) {
    auto base = std::make_shared<OpenedBase>();
    base->version = shared();
    OpenVersion version = shared();
    version.manifest.bases = {{4, {7, 7}}, {4, {1, 2}}};
    version.footers[0].bases = {{{4, {1, 2}}, 0, 0}};
    version.footers[0].runs[1].base = 1;
    version.bases[1] = base;
    EXPECT_EQ(alone_read(version, 0).base_bytes, 3 * alone_block);
    EXPECT_EQ(alone_read(version, 1).base_bytes, 3 * alone_block);
    base->version.footers[0].runs[1].codec = 0;
    base->version.footers[0].runs[1].stored_bytes = 8 * alone_block;
    EXPECT_EQ(alone_read(version, 1).base_bytes, 8 * alone_block) << "raw, and whole: it has several pieces";
    version.footers[0].runs[1].base = 0;
    EXPECT_EQ(alone_read(version, 1).base_bytes, 0u);
}

// Three reads of one encoded run are one; runs of two parts that have one number are two.
TEST(Alone, WhatReadsTake) {
    OpenVersion version = shared();
    version.footers.push_back(version.footers[0]);
    const auto read = [](std::size_t footer, std::size_t run, std::uint64_t length) { return PartRead{footer, run, {0}, 0, length}; };
    EXPECT_EQ(cost_of(version, {}), ReadCost());
    EXPECT_EQ(cost_of(version, {read(0, 0, alone_block), read(0, 0, alone_block)}), (ReadCost{2 * alone_block, 0, 0}));
    const ReadCost once{3 * alone_block, 8 * alone_block, 0};
    EXPECT_EQ(cost_of(version, {read(0, 1, 3 * alone_block)}), once);
    EXPECT_EQ(cost_of(version, {read(0, 1, 3 * alone_block), read(0, 1, 3 * alone_block)}), once);
    EXPECT_EQ(cost_of(version, {read(0, 1, 3 * alone_block), read(1, 1, 3 * alone_block)}), (ReadCost{6 * alone_block, 16 * alone_block, 0}));

    auto base = std::make_shared<OpenedBase>();
    base->version = shared();
    version = shared();
    version.manifest.bases = {{4, {1, 2}}};
    version.footers[0].bases = {{{4, {1, 2}}, 0, 0}};
    version.footers[0].runs[1].base = 1;
    version.bases[0] = base;
    EXPECT_EQ(cost_of(version, {read(0, 1, 3 * alone_block)}), (ReadCost{3 * alone_block, 16 * alone_block, 3 * alone_block})) << "the base's run is decoded, too";
}

}  // namespace
}  // namespace cairn
