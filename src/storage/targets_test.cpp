#include "storage/targets.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const PlacementTargets three{"glusterfs", {"a", "b", "c"}, "@v-dht:"};

TEST(Targets, AFileIsMadeUnderAnotherNameOnItsTarget) {
    EXPECT_EQ(three.create_path("/p/name", "b"), "/p/name@v-dht:b");
    EXPECT_EQ(three.create_path("name", "b"), "name@v-dht:b");
}

TEST(Targets, PlacingIsNeverACondition) {
    EXPECT_EQ(three.create_path("/p/name", ""), "/p/name");
    EXPECT_EQ(three.create_path("/p/name", "d"), "/p/name") << "not known here";
    EXPECT_EQ(three.create_path("/p/name", "../b"), "/p/name");
    EXPECT_EQ(PlacementTargets().create_path("/p/name", "a"), "/p/name");
    const std::string fits = "/a/very/deep/folder/" + std::string(255 - 8, 'n');
    EXPECT_EQ(three.create_path(fits, "b"), fits + "@v-dht:b");
    EXPECT_EQ(three.create_path(fits + "n", "b"), fits + "n") << "file names have 255 bytes";
}

TEST(Targets, AListRestrictsAndOrders) {
    EXPECT_EQ(three.only({}).value(), three);
    const PlacementTargets some = three.only({"c", "a"}).value();
    EXPECT_THAT(some.names, ElementsAre("c", "a"));
    EXPECT_EQ(some.create_path("x", "a"), "x@v-dht:a");
    EXPECT_EQ(some.create_path("x", "b"), "x");
    const auto wrong = three.only({"a", "d"});
    EXPECT_EQ(wrong.code(), Code::invalid_argument);
    EXPECT_THAT(wrong.status().text(), HasSubstr("no storage target d (placement.targets); there are a, b, c"));
}

}  // namespace
}  // namespace cairn
