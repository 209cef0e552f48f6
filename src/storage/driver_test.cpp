#include "storage/driver.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace cairn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Driver = Settings::TargetsDriver;

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

struct OnAnotherFileSystem : testing::Test {
    std::string directory;
    void SetUp() override {
        directory = testing::TempDir() + "cairn_driver_XXXXXX";
        ASSERT_NE(::mkdtemp(directory.data()), nullptr);
    }
    void TearDown() override { std::filesystem::remove_all(directory); }
};

TEST_F(OnAnotherFileSystem, ThereAreNoTargets) {
    EXPECT_EQ(find_targets(Driver::none, {}, directory).value(), PlacementTargets());
    EXPECT_EQ(find_targets(Driver::automatic, {}, directory).value(), PlacementTargets());
    EXPECT_EQ(find_targets(Driver::automatic, {}, directory + "/not/there/yet").value(), PlacementTargets());
}

TEST_F(OnAnotherFileSystem, WhoNamesTargetsOrADriverIsToldSo) {
    const auto named = find_targets(Driver::automatic, {"a", "b"}, directory);
    EXPECT_THAT(named.status().text(), HasSubstr("placement.targets names a, b, but " + directory));
    const auto asked = find_targets(Driver::glusterfs, {}, directory);
    EXPECT_THAT(asked.status().text(), HasSubstr(directory + " is not on GlusterFS but on "));
}

TEST_F(OnAnotherFileSystem, TheNearestDirectoryThatIsThere) {
    EXPECT_EQ(existing_directory(directory).value(), directory);
    EXPECT_EQ(existing_directory(directory + "/a/b/c").value(), directory);
    EXPECT_EQ(existing_directory("/not-there-at-all/a").value(), "/");
    std::ofstream(directory + "/file") << "x";
    EXPECT_EQ(existing_directory(directory + "/file/a").code(), Code::not_found) << "a file is in the way";
}

}  // namespace
}  // namespace cairn
