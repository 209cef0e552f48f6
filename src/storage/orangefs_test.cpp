// OrangeFS: which attributes the directory gets, and that it is asked where a file went.
#include "storage/orangefs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/outside_testing.hpp"

namespace cairn {
namespace {

using testing::RecordedOutside;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using namespace std::string_literals;

std::string viewdist(const std::string& server) {
    return "dist_name = simple_stripe\ndist_params:\nstrip_size:65536\n\nMetadataserver: tcp://io1:3334\nNumber of datafiles/servers = 1\nDatafile 0 - " + server + ", handle: 5223372036854744173 (487d2531626f846d.bstream)\n";
}
const Placing on_io2 = {"orangefs", {"tcp://io2:3334"}, 0, 0};

TEST(OrangeFs, WithoutNamesAFileLiesWholeOnSomeServer) {
    RecordedOutside outside;
    const PlacementTargets targets = orangefs().targets(outside, "/o", {}).value();
    EXPECT_TRUE(targets.names.empty());
    const Placing told = targets.placing("", {});
    EXPECT_EQ(told.by, "orangefs");
    ASSERT_TRUE(orangefs().make(outside, "/o/3/part", 0644, told, second).ok());
    EXPECT_THAT(outside.asked, ElementsAre("set /o/3 user.pvfs2.num_dfiles 00001\0"s, "make /o/3/part")) << "of the version's directory, and nobody else's";
}

TEST(OrangeFs, OnAServerThatThePersonNames) {
    RecordedOutside outside;
    outside.answers.insert({"pvfs2-viewdist -f /o/3/part", viewdist("tcp://io2:3334")});
    EXPECT_THAT(orangefs().targets(outside, "/o", {"tcp://io2:3334"})->names, ElementsAre("tcp://io2:3334"));
    ASSERT_TRUE(orangefs().make(outside, "/o/3/part", 0644, on_io2, second).ok());
    EXPECT_THAT(outside.asked, ElementsAre("set /o/3 user.pvfs2.layout 00004\0"s, "set /o/3 user.pvfs2.server_list 00001 tcp://io2:3334", "set /o/3 user.pvfs2.num_dfiles 00001\0"s, "make /o/3/part",
                                           "pvfs2-viewdist -f /o/3/part"));
}

TEST(OrangeFs, AFileThatWentElsewhereIsNotTakenForPlaced) {
    RecordedOutside outside;
    outside.answers.insert({"pvfs2-viewdist -f /o/3/part", viewdist("tcp://io1:3334")});
    const Status made = orangefs().make(outside, "/o/3/part", 0644, on_io2, second);
    EXPECT_EQ(made.code(), Code::unavailable);
    EXPECT_THAT(made.text(), HasSubstr("lies on tcp://io1:3334, not on tcp://io2:3334"));
}

TEST(OrangeFs, StripesGoRoundTheServersThatAreNamed) {
    EXPECT_THAT(orangefs_attributes({"orangefs", {"a", "b"}, 2, 1 << 20}),
                ElementsAre(Pair("user.pvfs2.dist_name", "simple_stripe\0"s), Pair("user.pvfs2.dist_params", "strip_size:1048576\0"s), Pair("user.pvfs2.layout", "00004\0"s),
                            Pair("user.pvfs2.server_list", "00002 a b"), Pair("user.pvfs2.num_dfiles", "00002\0"s)));
}

TEST(OrangeFs, ADirectoryThatMayNotBeChangedGetsNoFileFromIt) {
    RecordedOutside outside;
    outside.refused.insert({"user.pvfs2.num_dfiles", Status::from_errno(1, "can not set the attribute")});
    EXPECT_FALSE(orangefs().make(outside, "/o/3/part", 0644, {"orangefs", {}, 1, 0}, second).ok());
    EXPECT_EQ(outside.asked.size(), 1u);
}

TEST(OrangeFs, ThatDurabilityIsNotPromisedIsSaid) {
    RecordedOutside outside;
    EXPECT_THAT(orangefs().warning(), HasSubstr("durability is not promised"));
    EXPECT_EQ(orangefs().targets(outside, "/o", {})->warning, orangefs().warning());
}

TEST(OrangeFs, BothFormsOfTheAnswerAreRead) {
    EXPECT_THAT(servers_of_viewdist("Number of datafiles/servers = 1\nServer 0 - tcp://localhost:3334, handle: 52 (48.bstream)\n"), ElementsAre("tcp://localhost:3334"));
    EXPECT_TRUE(servers_of_viewdist("Could not open /o/3/part\n").empty());
}

}  // namespace
}  // namespace cairn
