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

TEST(Targets, ACallIsToldTheTargetAndThoseOfItsStripes) {
    PlacementTargets targets{"x", {"a", "b", "c"}, {}, "x"};
    targets.spans = true;
    EXPECT_EQ(targets.placing("b", {}), (Placing{"x", {"b"}, 0, 0}));
    EXPECT_EQ(targets.placing("b", {2, 5}), (Placing{"x", {"b", "c"}, 2, 5}));
    EXPECT_EQ(targets.placing("c", {3, 0}), (Placing{"x", {"c", "a", "b"}, 3, 0}));
    EXPECT_EQ(targets.placing("c", {4, 0}), (Placing{"x", {"c"}, 4, 0})) << "more stripes than targets: whoever makes it knows where the others can lie";
    EXPECT_EQ(targets.placing("", {2, 0}), (Placing{"x", {}, 2, 0}));
    targets.spans = false;
    EXPECT_EQ(targets.placing("b", {2, 5}), (Placing{"x", {"b"}, 2, 5}));
    EXPECT_EQ(targets.placing("d", {}), Placing()) << "another node may have found others";
    EXPECT_EQ(targets.placing("", {}), Placing());
    const PlacementTargets by_name{"x", {"a", "b"}, "@"};
    EXPECT_EQ(by_name.placing("a", {2, 0}), Placing());
}

}  // namespace
}  // namespace cairn
