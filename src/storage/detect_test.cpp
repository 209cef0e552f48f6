#include "storage/detect.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

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

TEST_F(OnAnotherFileSystem, TheNearestDirectoryThatIsThere) {
    EXPECT_EQ(existing_directory(directory).value(), directory);
    EXPECT_EQ(existing_directory(directory + "/a/b/c").value(), directory);
    EXPECT_EQ(existing_directory("/not-there-at-all/a").value(), "/");
    std::ofstream(directory + "/file") << "x";
    EXPECT_EQ(existing_directory(directory + "/file/a").code(), Code::not_found) << "a file is in the way";
}

}  // namespace
}  // namespace cairn
