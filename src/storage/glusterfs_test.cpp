#include "storage/glusterfs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// As GlusterFS 10.3 says it, of a volume over three servers.
const std::string three =
    "((<DISTRIBUTE:gv-dht> <POSIX(/mnt/local/brick/b):s2:/mnt/local/brick/b/> "
    "<POSIX(/mnt/local/brick/b):s1:/mnt/local/brick/b/> <POSIX(/mnt/local/brick/b):s0:/mnt/local/brick/b/>) "
    "(gv-dht-layout (gv-client-1 0 1431655764) (gv-client-2 1431655765 2863311529) (gv-client-0 2863311530 4294967295)))";

const std::string replicated =
    "((<DISTRIBUTE:gr-dht> (<REPLICATE:gr-replicate-0> <POSIX(/b/r):s1:/b/r/d> <POSIX(/b/r):s0:/b/r/d>) "
    "(<REPLICATE:gr-replicate-1> <POSIX(/b/r2):s2:/b/r2/d> <POSIX(/b/r2):s0:/b/r2/d>)) "
    "(gr-dht-layout (gr-replicate-0 2147483647 4294967295) (gr-replicate-1 0 2147483646)))";

TEST(Glusterfs, TargetsAreTheChildrenThatTakeFiles) {
    const auto targets = targets_of_pathinfo(three + std::string(1, '\0'));
    ASSERT_TRUE(targets.ok()) << targets.status().to_string();
    EXPECT_EQ(targets->driver, "glusterfs");
    EXPECT_THAT(targets->names, ElementsAre("gv-client-0", "gv-client-1", "gv-client-2"));
    EXPECT_EQ(targets->create_path("/mnt/pfs/a/part-0", "gv-client-2"), "/mnt/pfs/a/part-0@gv-dht:gv-client-2");
}

TEST(Glusterfs, CopiesOfOneAnotherAreOneTarget) {
    const auto targets = targets_of_pathinfo(replicated);
    ASSERT_TRUE(targets.ok()) << targets.status().to_string();
    EXPECT_THAT(targets->names, ElementsAre("gr-replicate-0", "gr-replicate-1"));
    EXPECT_EQ(targets->create_path("x", "gr-replicate-1"), "x@gr-dht:gr-replicate-1");
}

TEST(Glusterfs, AServerThatIsBeingRemovedIsNoTarget) {
    const auto targets = targets_of_pathinfo(
        "((<DISTRIBUTE:v-dht> <POSIX(/b):s1:/b/>) (v-dht-layout (v-client-0 0 0) (v-client-10 0 5) (v-client-9 6 4294967295)))");
    ASSERT_TRUE(targets.ok()) << targets.status().to_string();
    EXPECT_THAT(targets->names, ElementsAre("v-client-9", "v-client-10")) << "by number";
}

TEST(Glusterfs, NothingToChooseFrom) {
    EXPECT_EQ(targets_of_pathinfo("<POSIX(/b):s1:/b/>").code(), Code::unavailable) << "a volume of one brick";
    EXPECT_EQ(targets_of_pathinfo("((<DISTRIBUTE:v-dht> <P>) (v-dht-layout (v-client-0 0 4294967295)))").code(), Code::unavailable);
    EXPECT_EQ(targets_of_pathinfo("((<DISTRIBUTE:v-dht> <P>) (v-dht-layout (v-client-0 0 4294967295) (v-client-1 0 0)))").code(),
              Code::unavailable);
}

TEST(Glusterfs, ABrickMayBeCalledAnything) {
    const auto targets = targets_of_pathinfo(
        "((<DISTRIBUTE:v-dht> <POSIX(/b):s1:/b/) (v-dht-layout (evil 0 9) (worse 10 20)))/>) "
        "(v-dht-layout (v-client-0 0 9) (v-client-1 10 4294967295)))");
    ASSERT_TRUE(targets.ok()) << targets.status().to_string();
    EXPECT_THAT(targets->names, ElementsAre("v-client-0", "v-client-1"));
}

// Cut anywhere, or with any character replaced, it is refused or still names only what may stand in a file's name.
TEST(Glusterfs, DamagedTextsAreRefused) {
    for (std::size_t length = 0; length < three.size(); ++length)
        EXPECT_EQ(targets_of_pathinfo(three.substr(0, length)).code(), Code::unavailable) << length;
    EXPECT_EQ(targets_of_pathinfo(three + " (").code(), Code::unavailable);
    for (const char bad : std::string("/*?[]@:\0 ()\n\xff", 13))
        for (std::size_t at = 0; at < three.size(); ++at) {
            std::string text = three;
            text[at] = bad;
            const auto targets = targets_of_pathinfo(text);
            if (!targets.ok()) continue;
            for (const std::string& name : targets->names)
                EXPECT_EQ(name.find_first_of(std::string("/*?[]@:\0 ()\n\xff", 13)), std::string::npos) << text;
            EXPECT_EQ(targets->before_target, "@gv-dht:") << text;
        }
    std::string twice = three;
    twice.replace(twice.rfind("gv-client-0"), 11, "gv-client-1");
    EXPECT_THAT(targets_of_pathinfo(twice).status().text(), HasSubstr("not known here"));
}

TEST(Glusterfs, MountsAreFoundByDevice) {
    const std::string mounts =
        "21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
        "28 21 0:70 / /mnt/my\\040files rw,relatime shared:3 propagate_from:2 - fuse.glusterfs s0:gv rw,user_id=0\n"
        "29 21 0:70 /deep /elsewhere rw,relatime - fuse.glusterfs s0:gv rw,user_id=0\n"
        "30 21 0:71 /deep /only rw,relatime - fuse.other x rw\n"
        "31 21 0:72 / /short rw -\n"
        "nonsense\n\n";
    EXPECT_EQ(mount_of_device(mounts, 8, 1), (MountInfo{"ext4", "/"}));
    EXPECT_EQ(mount_of_device(mounts, 0, 70), (MountInfo{"fuse.glusterfs", "/mnt/my files"}));
    EXPECT_EQ(mount_of_device(mounts, 0, 71), (MountInfo{"fuse.other", ""})) << "its root is not mounted";
    EXPECT_EQ(mount_of_device(mounts, 0, 72), std::nullopt);
    EXPECT_EQ(mount_of_device(mounts, 0, 7), std::nullopt);
    EXPECT_EQ(mount_of_device("", 0, 70), std::nullopt);
}

}  // namespace
}  // namespace cairn
