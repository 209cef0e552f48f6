#include "storage/detect.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "storage/outside_testing.hpp"

namespace cairn {
namespace {

using ::testing::HasSubstr;
using Driver = Settings::TargetsDriver;

struct OnAnotherFileSystem : ::testing::Test {
    std::string directory;
    void SetUp() override {
        directory = ::testing::TempDir() + "cairn_driver_XXXXXX";
        ASSERT_NE(::mkdtemp(directory.data()), nullptr);
    }
    void TearDown() override { std::filesystem::remove_all(directory); }
};

TEST_F(OnAnotherFileSystem, ThereAreNoTargets) {
    EXPECT_EQ(detect_targets(Driver::none, {}, directory).value(), PlacementTargets());
    EXPECT_EQ(detect_targets(Driver::automatic, {}, directory).value(), PlacementTargets());
    EXPECT_EQ(detect_targets(Driver::automatic, {}, directory + "/not/there/yet").value(), PlacementTargets());
}

TEST_F(OnAnotherFileSystem, WhoNamesTargetsOrADriverIsToldSo) {
    const auto named = detect_targets(Driver::automatic, {"a", "b"}, directory);
    EXPECT_THAT(named.status().text(), HasSubstr("placement.targets names a, b, but " + directory));
    const auto asked = detect_targets(Driver::glusterfs, {}, directory);
    EXPECT_THAT(asked.status().text(), HasSubstr(directory + " is not on GlusterFS but on "));
}

TEST_F(OnAnotherFileSystem, TheSettingSaysWhichFileSystemItIsTakenFor) {
    testing::RecordedOutside outside;
    EXPECT_EQ(file_system_at(Driver::automatic, directory).value()->name(), "plain");
    EXPECT_EQ(file_system_at(Driver::lustre, directory).value()->name(), "lustre");
    outside.answers.insert({"lfs df --lazy " + directory, std::string("t-OST0000_UUID 9 1 8 1% /t[OST:0]\nt-OST0001_UUID 9 1 8 1% /t[OST:1]\nt-OST0002_UUID 9 1 8 1% /t[OST:2]\n")});
    EXPECT_EQ(detect_targets(Driver::lustre, {}, directory + "/not/yet", outside)->names.size(), 3u);
    const auto chosen = detect_targets(Driver::lustre, {"t-OST0002", "t-OST0000"}, directory, outside);
    ASSERT_TRUE(chosen.ok());
    EXPECT_THAT(chosen->names, ::testing::ElementsAre("t-OST0002", "t-OST0000"));
    EXPECT_EQ(chosen->by, "lustre");
    EXPECT_THAT(detect_targets(Driver::lustre, {"t-OST0009"}, directory, outside).status().text(), HasSubstr("there is no storage target t-OST0009"));
}

TEST_F(OnAnotherFileSystem, WithoutATargetThatCanBeChosenItSaysWhy) {
    testing::RecordedOutside outside;
    const auto none = detect_targets(Driver::lustre, {}, directory, outside);
    EXPECT_EQ(none.code(), Code::unavailable);
    EXPECT_THAT(none.status().text(), HasSubstr("no storage target of lustre can be chosen: there is no program lfs"));
    EXPECT_THAT(detect_targets(Driver::cephfs, {}, directory, outside).status().text(), HasSubstr("placement.targets"));
    EXPECT_THAT(detect_targets(Driver::orangefs, {}, directory, outside)->warning, HasSubstr("durability"));
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
