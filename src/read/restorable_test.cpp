// What can be gone back to: committed or whole in scratch, of the current lineage, and nothing that was given up.
#include "read/restorable.hpp"

#include <gtest/gtest.h>

#include "read/series_testing.hpp"

namespace cairn {
namespace {

using namespace testing;

std::vector<RestorableVersion> of(std::vector<LineageEntry> opens, const std::vector<CatalogEntry>& entries, const std::vector<SealedVersion>& sealed = {}) {
    return restorable_versions(current_lineage({"melt", std::move(opens), {}}, entries, sealed), entries, sealed);
}

TEST(Restorable, FromPersistentFromScratchOrBoth) {
    const auto versions = of({opened(first_job, 10)}, {committed(first_job, 10, 1), committed(first_job, 10, 2)},
                             {{first_job, 10, 2, {}}, {first_job, 10, 3, {}}});
    ASSERT_EQ(versions.size(), 3u);
    EXPECT_TRUE(versions[0].committed && !versions[0].sealed);
    EXPECT_TRUE(versions[1].committed && versions[1].sealed);
    EXPECT_TRUE(!versions[2].committed && versions[2].sealed);
    EXPECT_EQ(versions[1].ranks, 2u);
    EXPECT_EQ(versions[1].bytes, 1000u);
    EXPECT_EQ(newest_of(versions), 3u);
}

TEST(Restorable, ImagesOfSomeRanksAreNoVersion) { EXPECT_TRUE(of({opened(first_job, 10)}, {}, {{first_job, 10, 3, {}, false}}).empty()); }

// Also where every rank still has its image: it does not come back.
TEST(Restorable, WhatWasGivenUpDoesNotComeBackFromScratch) {
    const auto versions = of({opened(first_job, 10)}, {committed(first_job, 10, 1), given_up(first_job, 10, 2)}, {{first_job, 10, 2, {}}});
    ASSERT_EQ(versions.size(), 1u);
    EXPECT_EQ(newest_of(versions), 1u);
}

TEST(Restorable, WhatWasLeftBehindByGoingBackIsNotAmongThem) {
    const Parent from{first_job, 1};
    const auto versions = of({opened(first_job, 10), opened(second_job, 11, from)},
                             {committed(first_job, 10, 1), committed(first_job, 10, 2), committed(second_job, 11, 2, from)}, {{first_job, 10, 3, {}}});
    ASSERT_EQ(versions.size(), 2u);
    EXPECT_EQ(versions[0].key.incarnation, first_job);
    EXPECT_EQ(versions[1].key, (VersionKey{"", 2, second_job}));
}

TEST(Restorable, DamagedOnesAreNamedAndCanNotBeHad) {
    CatalogEntry damaged;
    damaged.key = {"melt", 2, first_job};
    damaged.damage = corrupt("manifest: damaged");
    const auto versions = of({opened(first_job, 10)}, {committed(first_job, 10, 1), damaged});
    ASSERT_EQ(versions.size(), 2u);
    EXPECT_EQ(versions[1].damage.code(), Code::corrupt);
    EXPECT_FALSE(versions[1].can_be_had());
    EXPECT_EQ(newest_of(versions), 1u);
}

}  // namespace
}  // namespace cairn
