// Which driver a file system gets.
#include "storage/parallel_file_system.hpp"

#include <gtest/gtest.h>

#include "storage/outside_testing.hpp"

namespace cairn {
namespace {

TEST(ParallelFileSystem, IsToldByStatfs) {
    EXPECT_EQ(file_system_of(0x0BD00BD0, "lustre").name(), "lustre");
    EXPECT_EQ(file_system_of(0x00C36400, "ceph").name(), "cephfs");
    EXPECT_EQ(file_system_of(0x19830326, "beegfs").name(), "beegfs");
    EXPECT_EQ(file_system_of(0x20030528, "pvfs2").name(), "orangefs");
    EXPECT_EQ(file_system_of(0xEF53, "ext4").name(), "plain");
}

TEST(ParallelFileSystem, ThroughFuseByTheMount) {
    constexpr std::uint64_t fuse = 0x65735546;
    EXPECT_EQ(file_system_of(fuse, "fuse.ceph-fuse").name(), "cephfs");
    EXPECT_EQ(file_system_of(fuse, "fuse.pvfs2fuse").name(), "orangefs");
    EXPECT_EQ(file_system_of(fuse, "fuse.glusterfs").name(), "plain") << "its targets are chosen by name";
    EXPECT_EQ(file_system_of(fuse, "").name(), "plain");
}

TEST(ParallelFileSystem, EachHasTheNameOfItsSetting) {
    for (const ParallelFileSystem* each : {&lustre(), &cephfs(), &beegfs(), &orangefs()}) EXPECT_EQ(file_system_named(each->name()), each);
    EXPECT_EQ(file_system_named("plain"), nullptr);
    EXPECT_EQ(file_system_named(""), nullptr);
}

TEST(ParallelFileSystem, OfAPlainOneNothingIsKnownButItsBlock) {
    testing::RecordedOutside outside;
    EXPECT_EQ(plain_file_system().targets(outside, "/d", {}).code(), Code::unsupported);
    EXPECT_EQ(plain_file_system().make(outside, "/d/f", 0644, {}, second).code(), Code::unsupported);
    EXPECT_EQ(plain_file_system().rooms(outside, "/d", second).code(), Code::unsupported);
    EXPECT_TRUE(plain_file_system().lies_on(outside, "/d/f").empty());
    EXPECT_EQ(plain_file_system().block_bytes(outside, "/d").value(), 4096u);
    EXPECT_TRUE(outside.asked.empty());
}

}  // namespace
}  // namespace cairn
