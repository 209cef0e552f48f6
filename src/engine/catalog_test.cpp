// Lineage: which versions belong together, whatever was opened, restored from or taken again.
#include "engine/catalog.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

const Id128 first{1, 1}, second_{2, 2}, third{3, 3};

LineageEntry opened(Id128 incarnation, std::uint64_t epoch, std::optional<Parent> from = std::nullopt) {
    LineageEntry entry;
    entry.open.incarnation = incarnation;
    entry.open.epoch = epoch;
    if (from) entry.from = FromRecord{incarnation, *from};
    return entry;
}

CatalogEntry committed(Id128 incarnation, std::uint64_t epoch, Version version, Parent parent = {}) {
    CatalogEntry entry;
    entry.key = {"series", version, incarnation};
    entry.manifest.emplace();
    entry.manifest->key = entry.key;
    entry.manifest->epoch = epoch;
    entry.manifest->parent = parent;
    return entry;
}

TEST(Lineage, OfNothingIsEmpty) {
    EXPECT_TRUE(current_lineage({}, {}, {}).empty());
    EXPECT_TRUE(current_lineage({opened(first, 1)}, {}, {}).empty()) << "an open that did nothing heads no lineage";
}

TEST(Lineage, ParentsAreCutAtTheVersionTheyWereLeftAt) {
    const std::vector<LineageEntry> opens = {opened(first, 1), opened(second_, 2, Parent{first, 10})};
    const std::vector<CatalogEntry> entries = {committed(first, 1, 10), committed(first, 1, 20), committed(second_, 2, 20, {first, 10})};
    const auto lineage = current_lineage(opens, entries, {});
    ASSERT_EQ(lineage.size(), 2u);
    EXPECT_TRUE(in_lineage(lineage, second_, 20));
    EXPECT_TRUE(in_lineage(lineage, first, 10));
    EXPECT_FALSE(in_lineage(lineage, first, 20)) << "version 20 was taken again after going back";
}

TEST(Lineage, GoingBackCountsBeforeAnythingNewIsCommitted) {
    const std::vector<LineageEntry> opens = {opened(first, 1), opened(second_, 2, Parent{first, 10})};
    const std::vector<CatalogEntry> entries = {committed(first, 1, 10), committed(first, 1, 20)};
    const auto lineage = current_lineage(opens, entries, {});
    EXPECT_TRUE(in_lineage(lineage, first, 10));
    EXPECT_FALSE(in_lineage(lineage, first, 20));
}

TEST(Lineage, AnOpenThatDidNothingHidesNothing) {
    const std::vector<LineageEntry> opens = {opened(first, 1), opened(second_, 2)};
    EXPECT_TRUE(in_lineage(current_lineage(opens, {committed(first, 1, 20)}, {}), first, 20));
}

TEST(Lineage, AFreshStartLeavesOlderOnesBehindOnceItHasAVersion) {
    const std::vector<LineageEntry> opens = {opened(first, 1), opened(second_, 2)};
    const auto lineage = current_lineage(opens, {committed(first, 1, 20), committed(second_, 2, 1)}, {});
    EXPECT_TRUE(in_lineage(lineage, second_, 1));
    EXPECT_FALSE(in_lineage(lineage, first, 20));
}

TEST(Lineage, ImagesInScratchCount) {
    const std::vector<LineageEntry> opens = {opened(first, 1), opened(second_, 2)};
    const auto lineage = current_lineage(opens, {committed(first, 1, 20)}, {{second_, 2, 21, {first, 20}}});
    EXPECT_TRUE(in_lineage(lineage, second_, 21));
    EXPECT_TRUE(in_lineage(lineage, first, 20));
}

TEST(Lineage, TombstonesDoNotCount) {
    CatalogEntry tombstone = committed(second_, 2, 30);
    tombstone.manifest->abandoned = true;
    const auto lineage = current_lineage({opened(first, 1), opened(second_, 2)}, {committed(first, 1, 20), tombstone}, {});
    EXPECT_TRUE(in_lineage(lineage, first, 20));
    EXPECT_FALSE(in_lineage(lineage, second_, 30));
}

// The one manifest of a job that began anew: while storage does not give it, whoever restarts is told so, and goes on from nothing older.
TEST(Lineage, AManifestThatCanNotBeReadCounts) {
    CatalogEntry unread = committed(second_, 2, 1);
    unread.manifest.reset();
    unread.damage = Status(Code::io_error, "manifest: Input/output error");
    const auto lineage = current_lineage({opened(first, 1), opened(second_, 2)}, {committed(first, 1, 20), unread}, {});
    EXPECT_TRUE(in_lineage(lineage, second_, 1));
    EXPECT_FALSE(in_lineage(lineage, first, 20));
    EXPECT_TRUE(in_lineage(current_lineage({opened(second_, 2)}, {unread}, {}), second_, 1));
}

TEST(Lineage, AHostileCycleEnds) {
    const std::vector<LineageEntry> opens = {opened(first, 1, Parent{third, 5}), opened(second_, 2, Parent{first, 5}), opened(third, 3, Parent{second_, 5})};
    EXPECT_EQ(current_lineage(opens, {}, {}).size(), 3u);
}

}  // namespace
}  // namespace cairn
