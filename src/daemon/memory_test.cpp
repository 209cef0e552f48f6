#include "daemon/memory.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <vector>

namespace cairn {
namespace {

constexpr std::uint64_t mib_here = 1 << 20;

class FakeMachine : public testing::Test {
  protected:
    void SetUp() override {
        std::string pattern = testing::TempDir() + "/cairn-memory-XXXXXX";
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        root = pattern;
        put("/proc/meminfo", "MemFree:  5 kB\nMemTotal:   2048 kB\n");
    }
    void TearDown() override { std::filesystem::remove_all(root); }
    void put(const std::string& path, const std::string& text) {
        std::filesystem::create_directories(std::filesystem::path(root + path).parent_path());
        std::ofstream(root + path) << text;
    }
    std::string root;
};

TEST_F(FakeMachine, AllMemoryWithoutControlGroups) { EXPECT_EQ(node_memory_bytes(root).value(), 2 * mib_here); }

TEST_F(FakeMachine, LowestLimitOfTheGroupsAbove) {
    put("/proc/self/cgroup", "0::/a/b\n");
    put("/sys/fs/cgroup/a/b/memory.max", "max\n");
    put("/sys/fs/cgroup/a/memory.max", "1048576\n");
    EXPECT_EQ(node_memory_bytes(root).value(), mib_here);
    put("/sys/fs/cgroup/a/b/memory.max", "524288\n");
    EXPECT_EQ(node_memory_bytes(root).value(), mib_here / 2);
}

TEST_F(FakeMachine, FirstVersionOfControlGroups) {
    put("/proc/self/cgroup", "3:cpu,memory:/job\n2:memoryless:/x\n");
    put("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "4096\n");
    EXPECT_EQ(node_memory_bytes(root).value(), 4096u);
}

TEST_F(FakeMachine, WhatGroupsAndMachineLeave) {
    put("/proc/meminfo", "MemTotal:   2048 kB\nMemAvailable:  1024 kB\n");
    EXPECT_EQ(available_memory_bytes(root).value(), mib_here);
    put("/proc/self/cgroup", "0::/a/b\n");
    put("/sys/fs/cgroup/a/b/memory.max", "max\n");
    put("/sys/fs/cgroup/a/memory.max", "1048576\n");
    put("/sys/fs/cgroup/a/memory.current", "1000000\n");
    EXPECT_EQ(available_memory_bytes(root).value(), mib_here - 1'000'000);
    put("/sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 900000\n");
    EXPECT_EQ(available_memory_bytes(root).value(), mib_here - 100'000);
    put("/sys/fs/cgroup/a/memory.current", "2000000\n");
    put("/sys/fs/cgroup/a/memory.stat", "anon 5\n");
    EXPECT_EQ(available_memory_bytes(root).value(), 0u);
    EXPECT_EQ(node_memory_bytes(root).value(), mib_here);
}

TEST_F(FakeMachine, WithoutMeminfoItSaysSo) {
    std::filesystem::remove(root + "/proc/meminfo");
    EXPECT_EQ(node_memory_bytes(root).code(), Code::unsupported);
}

TEST(Memory, ThisMachineHasSome) { EXPECT_GT(node_memory_bytes().value(), 16 * mib_here); }

TEST(Ring, StaysWhenItFits) { EXPECT_EQ(fit_ring({8, 64 * mib_here}, mib_here, 2048 * mib_here, 0.25), (Ring{8, 64 * mib_here})); }
TEST(Ring, FewerBuffersFirst) { EXPECT_EQ(fit_ring({8, 64 * mib_here}, mib_here, 1024 * mib_here, 0.25), (Ring{4, 64 * mib_here})); }
TEST(Ring, ThenSmallerOnesInWholeBlocks) {
    EXPECT_EQ(fit_ring({8, 64 * mib_here}, 4 * mib_here, 100 * mib_here, 0.25), (Ring{2, 12 * mib_here}));
}
TEST(Ring, NeverLessThanABlock) { EXPECT_EQ(fit_ring({8, 64 * mib_here}, mib_here, mib_here, 0.25), (Ring{2, mib_here})); }
TEST(Ring, OneStaysOne) { EXPECT_EQ(fit_ring({1, 64 * mib_here}, mib_here, 128 * mib_here, 0.25), (Ring{1, 32 * mib_here})); }

TEST(RingUse, IsAllOfItWhereNothingIsEncoded) { EXPECT_EQ(divide_ring({8, 64 * mib_here}, 0, 64, 0), (RingUse{8, 0, 64})); }
TEST(RingUse, CodecsWorkInBuffersLess) { EXPECT_EQ(divide_ring({8, 64 * mib_here}, 11 * mib_here, 8, 0), (RingUse{6, 0, 8})); }
TEST(RingUse, ThreadsTakeHalfAtMost) { EXPECT_EQ(divide_ring({8, 64 * mib_here}, 11 * mib_here, 64, 0), (RingUse{4, 0, 23})); }
TEST(RingUse, AFollowersBuffersComeOutOfIt) { EXPECT_EQ(divide_ring({8, 64 * mib_here}, 4 * mib_here, 1, 2), (RingUse{5, 2, 1})); }
TEST(RingUse, TwoBuffersStay) {
    EXPECT_EQ(divide_ring({4, mib_here}, 11 * mib_here, 8, 2), (RingUse{2, 2, 1}));
    EXPECT_EQ(divide_ring({3, mib_here}, 0, 8, 2), (RingUse{3, 0, 8})) << "a follower's only beside them";
    EXPECT_EQ(divide_ring({1, mib_here}, 11 * mib_here, 8, 2), (RingUse{1, 0, 1}));
}
TEST(RingUse, TakesNoMoreThanTheRing) {
    for (std::uint32_t buffers = 2; buffers <= 64; ++buffers)
        for (const std::uint64_t buffer_bytes : {mib_here, 4 * mib_here, 64 * mib_here})
            for (const std::uint64_t each : {4 * mib_here, 11 * mib_here})
                for (const unsigned threads : {1u, 7u, 128u}) {
                    const RingUse use = divide_ring({buffers, buffer_bytes}, each, threads, 2);
                    EXPECT_GE(use.buffers, 2u);
                    EXPECT_GE(use.threads, 1u);
                    if (use.buffers == 2 || use.threads == 1) continue;  // the least there must be
                    EXPECT_LE((use.buffers + use.encode_buffers) * buffer_bytes + use.threads * each, buffers * buffer_bytes);
                }
}

TEST(Memory, AnonymousPeakStays) {
    const AnonymousMemory before = sample_anonymous_memory();
    EXPECT_GT(before.now_bytes, 0u);
    {
        std::vector<char> touched(64 * mib_here, 1);
        EXPECT_GE(sample_anonymous_memory().now_bytes, before.now_bytes + 60 * mib_here);
        EXPECT_EQ(touched.back(), 1);
    }
    EXPECT_GE(sample_anonymous_memory().peak_bytes, before.now_bytes + 60 * mib_here);
}

}  // namespace
}  // namespace cairn
