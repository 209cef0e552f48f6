// CephFS: which attributes a file gets, in which order, and what is made of a refusal.
#include "storage/cephfs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/outside_testing.hpp"

namespace cairn {
namespace {

using testing::RecordedOutside;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(CephFs, TargetsAreThePoolsThatThePersonNames) {
    RecordedOutside outside;
    const Result<PlacementTargets> targets = cephfs().targets(outside, "/mnt/ceph", {"data_a", "data_b"});
    ASSERT_TRUE(targets.ok());
    EXPECT_THAT(targets->names, ElementsAre("data_a", "data_b"));
    EXPECT_EQ(targets->by, "cephfs");
    const auto unnamed = cephfs().targets(outside, "/mnt/ceph", {});
    EXPECT_EQ(unnamed.code(), Code::unavailable);
    EXPECT_THAT(unnamed.status().text(), HasSubstr("placement.targets"));
    EXPECT_EQ(cephfs().rooms(outside, "/mnt/ceph", second).code(), Code::unsupported);
}

TEST(CephFs, AFileIsMadeEmptyAndThenGetsItsPool) {
    RecordedOutside outside;
    ASSERT_TRUE(cephfs().make(outside, "/c/part", 0644, {"cephfs", {"data_b"}, 0, 0}, second).ok());
    EXPECT_THAT(outside.asked, ElementsAre("make /c/part", "set /c/part ceph.file.layout.pool data_b"));
}

TEST(CephFs, AnObjectHoldsWholeStripeUnitsAfterEachAttribute) {
    EXPECT_THAT(cephfs_attributes({"cephfs", {"p"}, 4, 1 << 20}),
                ElementsAre(Pair("ceph.file.layout.pool", "p"), Pair("ceph.file.layout.stripe_unit", "1048576"), Pair("ceph.file.layout.stripe_count", "4")));
    EXPECT_THAT(cephfs_attributes({"cephfs", {}, 1, 9 << 20}), ElementsAre(Pair("ceph.file.layout.object_size", "16777216"), Pair("ceph.file.layout.stripe_unit", "16777216")));
    EXPECT_THAT(cephfs_attributes({"cephfs", {}, 1, 5}), ElementsAre(Pair("ceph.file.layout.stripe_unit", "65536")));
    EXPECT_THAT(cephfs_attributes({"cephfs", {}, 1, 1ull << 40}).back(), Pair("ceph.file.layout.stripe_unit", "67108864"));
}

TEST(CephFs, ARefusalSaysWhatItTakes) {
    const std::vector<std::pair<Status, std::string>> said = {
        {Status(Code::permission, "no"), "the flag p"},
        {invalid_argument("no"), "data_b (placement.targets) is no data pool"},
        {Status(Code::not_found, "no"), "data_b (placement.targets) is no data pool"},
    };
    for (const auto& [status, expected] : said) {
        RecordedOutside outside;
        outside.refused.insert({"ceph.file.layout.pool", status});
        const Status made = cephfs().make(outside, "/c/part", 0644, {"cephfs", {"data_b"}, 4, 0}, second);
        EXPECT_EQ(made.code(), status.code());
        EXPECT_THAT(made.text(), HasSubstr(expected));
        EXPECT_EQ(outside.asked.size(), 2u) << "no more is asked of it";
    }
}

TEST(CephFs, AnyOtherRefusalIsToldAsItIs) {
    RecordedOutside outside;
    outside.refused.insert({"ceph.file.layout.stripe_unit", invalid_argument("no such unit")});
    EXPECT_EQ(cephfs().make(outside, "/c/part", 0644, {"cephfs", {"data_b"}, 0, 1 << 20}, second).text(), "no such unit");
    outside.refused = {{"ceph.file.layout.pool", Status(Code::unsupported, "no such attribute")}};
    EXPECT_EQ(cephfs().make(outside, "/c/part", 0644, {"cephfs", {"data_b"}, 0, 0}, second).text(), "no such attribute");
}

TEST(CephFs, WhatItTellsOfFilesAndDirectories) {
    RecordedOutside outside;
    outside.attributes = {{"/c/part ceph.file.layout.pool", "data_a"}, {"/c ceph.dir.layout.stripe_unit", "1048576"}, {"/d ceph.dir.layout.stripe_unit", "none"}};
    EXPECT_THAT(cephfs().lies_on(outside, "/c/part"), ElementsAre("pool data_a"));
    EXPECT_TRUE(cephfs().lies_on(outside, "/c/other").empty());
    EXPECT_EQ(cephfs().block_bytes(outside, "/c").value(), 1048576u);
    EXPECT_EQ(cephfs().block_bytes(outside, "/d").value(), 4096u);
}

}  // namespace
}  // namespace cairn
