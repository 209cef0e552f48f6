// BeeGFS: what is asked of its two tools, and what their answers mean. Recorded: the formats are those of beegfs-ctl 7.4 and of beegfs 8.
#include "storage/beegfs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "storage/outside_testing.hpp"

namespace cairn {
namespace {

using testing::RecordedOutside;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string ctl_list =
    "TargetID     Reachability  Consistency        Total         Free    %      ITotal       IFree    %   NodeID\n"
    "========     ============  ===========        =====         ====    =      ======       =====    =   ======\n"
    "     101           Online         Good     465.4GiB     232.5GiB  50%       48.8M       48.8M 100%        1\n"
    "       2          Offline         Good       0.0GiB       0.0GiB   0%        0.0M        0.0M   0%        2\n"
    "       1           Online         Good     465.4GiB       1.0GiB   0%       48.8M       48.8M 100%        1\n"
    "       3           Online Needs-resync     465.4GiB     400.0GiB  86%       48.8M       48.8M 100%        2\n";

const std::string new_list =
    "ID         ALIAS                ON NODE       POOL     REACHABILITY  LAST CONTACT  CONSISTENCY  CAP POOL  SPACE     SUSED               SFREE     INODES  IUSED  IFREE\n"
    "storage:1  target_0-6734A781-1  node_stor_1   default  Online        2s ago        Good         Normal    465.4GiB  232.9GiB (50.04%)   232.5GiB  48.8M   1.0k   48.8M\n"
    "storage:2  target_1-6734A781-1  node_stor_2   default  Offline       90s ago       Good         Normal    -         -                   -         -       -      -\n";

Placing on_targets(std::vector<std::string> targets, std::uint32_t stripes = 0, std::uint64_t bytes = 0) { return {"beegfs", std::move(targets), stripes, bytes}; }
std::string created_by(BeegfsTool tool, const Placing& told) { return RecordedOutside::text_of(beegfs_create_words(tool, "/b/f", 0644, {1000, 100}, told)); }
const std::string ctl_words = "beegfs-ctl --listtargets --nodetype=storage --state --spaceinfo --mount=/b";
const std::string new_words = "beegfs target list --node-type storage --state --capacity";

TEST(BeeGfs, TheListTellsWhoTakesFilesAndHowMuch) {
    const auto old = targets_of_beegfs_list(BeegfsTool::beegfs_ctl, ctl_list);
    ASSERT_TRUE(old.ok());
    ASSERT_EQ(old->size(), 4u);
    EXPECT_EQ((*old)[0], (BeegfsTarget{{"1", 1ull << 30}, true}));
    EXPECT_EQ((*old)[1], (BeegfsTarget{{"2", 0}, false}));
    EXPECT_EQ((*old)[2], (BeegfsTarget{{"3", 0}, false})) << "its buddy has the newer data";
    EXPECT_EQ((*old)[3], (BeegfsTarget{{"101", 249644974080}, true}));
    const auto now = targets_of_beegfs_list(BeegfsTool::beegfs, new_list);
    ASSERT_TRUE(now.ok());
    EXPECT_EQ(*now, (std::vector<BeegfsTarget>{{{"storage:1", 249644974080}, true}, {{"storage:2", 0}, false}}));
}

TEST(BeeGfs, AnswersThatAreNotThatAreNone) {
    for (const char* text : {"", "Error: no management daemon\n", "TargetID\n======\n 1\n", "     101           Online         Good\n"}) EXPECT_EQ(targets_of_beegfs_list(BeegfsTool::beegfs_ctl, text).code(), Code::unavailable) << text;
    EXPECT_FALSE(targets_of_beegfs_list(BeegfsTool::beegfs_ctl, ctl_list + ctl_list).ok());
}

TEST(BeeGfs, WhatItIsAskedToMake) {
    EXPECT_EQ(created_by(BeegfsTool::beegfs_ctl, on_targets({"101"})), "beegfs-ctl --createfile --targets=101 --numtargets=1 --access=0644 --uid=1000 --gid=100 /b/f");
    EXPECT_EQ(created_by(BeegfsTool::beegfs_ctl, on_targets({"1", "2"}, 2, 1 << 20)), "beegfs-ctl --createfile --targets=1,2 --numtargets=2 --chunksize=1024k --access=0644 --uid=1000 --gid=100 /b/f");
    EXPECT_EQ(created_by(BeegfsTool::beegfs_ctl, on_targets({}, 4)), "beegfs-ctl --createfile --storagepoolid=inherit --numtargets=4 --access=0644 --uid=1000 --gid=100 /b/f");
    EXPECT_EQ(created_by(BeegfsTool::beegfs, on_targets({"storage:1"}, 9, 70000)), "beegfs entry create file --targets=storage:1 --num-targets=1 --chunk-size=128Ki --permissions=0644 --uid=1000 --gid=100 /b/f")
        << "a target holds a file once";
}

TEST(BeeGfs, TheNewToolIsAskedFirstAndTheOldOneWhereItIsNot) {
    RecordedOutside outside;
    outside.answers.insert({ctl_words, ctl_list});
    const Result<PlacementTargets> targets = beegfs().targets(outside, "/b", {});
    ASSERT_TRUE(targets.ok()) << targets.status().to_string();
    EXPECT_THAT(targets->names, ElementsAre("1", "101"));
    EXPECT_THAT(outside.asked, ElementsAre(new_words, ctl_words));
    EXPECT_EQ(beegfs().rooms(outside, "/b", second)->size(), 4u);
    EXPECT_EQ(beegfs().make(outside, "/b/f", 0644, on_targets({"101"}), second).code(), Code::unsupported);
    EXPECT_THAT(outside.asked.back(), HasSubstr("beegfs-ctl --createfile"));
    outside.answers.insert({new_words, new_list});
    EXPECT_EQ(beegfs().targets(outside, "/b", {}).code(), Code::unavailable) << "one that takes files";
}

TEST(BeeGfs, WhatOnlyRootMayDoIsTold) {
    RecordedOutside outside;
    const auto refuse = [&outside](const Placing& told) {
        const Words words = beegfs_create_words(BeegfsTool::beegfs, "/b/f", 0644, {::geteuid(), ::getegid()}, told);
        outside.answers.insert({RecordedOutside::text_of(words), unavailable("beegfs failed: Error: root privileges required")});
    };
    refuse(on_targets({"1"}));
    const Status made = beegfs().make(outside, "/b/f", 0644, on_targets({"1"}), second);
    EXPECT_EQ(made.code(), Code::unavailable);
    EXPECT_THAT(made.text(), HasSubstr("root"));
    EXPECT_EQ(outside.asked.size(), 1u) << "the other tool would say the same";
}

TEST(BeeGfs, WhereAFileLies) {
    RecordedOutside outside;
    outside.answers.insert({"beegfs-ctl --getentryinfo --verbose /b/f", std::string("Entry type: file\nEntryID: 0-5D285750-1\nStripe pattern details:\n+ Type: RAID0\n+ Chunksize: 512k\n+ Number of storage targets: desired: 2; actual: 2\n"
                                                                                   "+ Storage targets:\n  + 1 @ node1.beeg.local [ID: 1]\n  + 2 @ node2.beeg.local [ID: 2]\nChunk path: u0/0/r/root/0-5EC39809-1\n")});
    EXPECT_THAT(beegfs().lies_on(outside, "/b/f"), ElementsAre("target 1", "target 2"));
}

}  // namespace
}  // namespace cairn
