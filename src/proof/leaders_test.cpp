// Several leaders a part, and work that changes hands: a flush ends when all targets together could have ended it, every byte once.
#include <gtest/gtest.h>

#include <algorithm>

#include "proof/cluster.hpp"
#include "format/part.hpp"

namespace cairn {
namespace {

using testing::Cluster;
using testing::ClusterOptions;

constexpr std::uint64_t mib = 1u << 20;

// Eight nodes of two ranks, in the proportions of a machine whose storage servers are what is slow.
ClusterOptions slow_storage(std::uint32_t files, std::uint64_t image_bytes) {
    ClusterOptions options;
    options.ranks_per_node.assign(8, 2);
    options.files = files;
    options.block_bytes = mib;
    options.image_bytes = [image_bytes](Rank, Version) { return image_bytes; };
    options.settings.buffer_bytes = 16 * mib;
    options.model.nic_rate = 50e6;
    options.model.persistent_client_rate = 50e6;
    options.model.persistent_rate = 1e9;
    options.model.target_rates.assign(4, 50e6);
    return options;
}

double seconds_to_commit(Cluster& cluster, Version version) {
    EXPECT_TRUE(cluster.capture_all(version, 600 * second).ok());
    const Nanos begun = cluster.sim.now();
    EXPECT_TRUE(cluster.run_until_committed(version, 600 * second)) << cluster.state(0, version).failure.to_string();
    return static_cast<double>(cluster.sim.now() - begun) / second;
}

std::uint64_t taken_over(const Cluster& cluster) {
    std::uint64_t bytes = 0;
    for (const testing::Host& host : cluster.hosts) bytes += host.daemon->counters().taken_over_bytes;
    return bytes;
}

TEST(Leaders, AllNodesWriteOnePartTogether) {
    ClusterOptions options = slow_storage(1, 32 * mib);
    options.model.target_rates.clear();
    options.model.persistent_rate = 400e6;  // eight cards
    Cluster cluster(options);
    ASSERT_TRUE(cluster.open_job().ok());
    const double limit = 16 * 32.0 * mib / 400e6;
    EXPECT_LT(seconds_to_commit(cluster, 1), 1.1 * limit);
    const Status whole = cluster.check_committed(cluster.key(1));
    EXPECT_TRUE(whole.ok()) << whole.to_string();
    for (const testing::Host& host : cluster.hosts) EXPECT_GT(host.daemon->counters().written_bytes, 0u);
}

TEST(Leaders, AreAsManyAsAskedFor) {
    for (std::uint32_t leaders : {1u, 2u, 3u, 8u}) {
        ClusterOptions options = slow_storage(2, 8 * mib);
        options.settings.leaders = leaders;
        Cluster cluster(options);
        ASSERT_TRUE(cluster.open_job().ok());
        seconds_to_commit(cluster, 1);
        std::uint32_t wrote = 0;
        for (const testing::Host& host : cluster.hosts) wrote += host.daemon->counters().written_bytes > 0;
        EXPECT_EQ(wrote, leaders);
        const Status whole = cluster.check_committed(cluster.key(1));
        EXPECT_TRUE(whole.ok()) << whole.to_string();
    }
}

// What `cairn status` and the figures of the race show. Two leaders with eight parts each and a writer for each part: nobody is busy for longer
// than the flush took.
TEST(Leaders, TellHowLongEachWriterWasBusy) {
    ClusterOptions options = slow_storage(16, 8 * mib);
    options.settings.leaders = 2;
    options.settings.writers = 8;
    Cluster cluster(options);
    ASSERT_TRUE(cluster.open_job().ok());
    const double virtual_s = seconds_to_commit(cluster, 1);
    for (const testing::Host& host : cluster.hosts) {
        const NodeCounters& counters = host.daemon->counters();
        if (counters.written_bytes == 0) continue;
        EXPECT_GT(counters.last_flush_s, 0);
        EXPECT_LE(counters.last_flush_s, virtual_s);
        std::uint64_t bytes = 0;
        for (const WriterTimes& writer : counters.writers) {
            EXPECT_LE(writer.received_s + writer.local_s, counters.last_flush_s);
            EXPECT_GT(writer.received_bytes + writer.local_bytes, 0u);
            bytes += writer.received_bytes + writer.local_bytes;
        }
        EXPECT_EQ(bytes, counters.written_bytes);
    }
}

struct Shape {
    std::uint32_t files, leaders;  // leaders 0: Cairn's choice
};
class SlowTarget : public ::testing::TestWithParam<Shape> {};

// One target at a tenth of its speed: its leaders' work goes to the others' parts.
TEST_P(SlowTarget, CostsNoMoreThanItsShareOfAllRates) {
    ClusterOptions options = slow_storage(GetParam().files, 128 * mib);
    options.settings.leaders = GetParam().leaders;
    options.model.target_rates[1] = 5e6;
    Cluster cluster(options);
    ASSERT_TRUE(cluster.open_job().ok());
    const double limit = 16 * 128.0 * mib / 155e6;
    const double virtual_s = seconds_to_commit(cluster, 1);
    EXPECT_LT(virtual_s, 1.15 * limit) << GetParam().files << " files, limit " << limit << " s";
    EXPECT_GT(taken_over(cluster), 0u);
    const Status whole = cluster.check_committed(cluster.key(1));
    EXPECT_TRUE(whole.ok()) << whole.to_string();
}
// With more parts than leaders, and with leaders that share parts, a leader writes on the slow target and on others.
INSTANTIATE_TEST_SUITE_P(Files, SlowTarget, ::testing::Values(Shape{4, 0}, Shape{8, 0}, Shape{8, 7}, Shape{8, 5}, Shape{16, 0}, Shape{16, 3}));

class Placed : public ::testing::TestWithParam<std::uint32_t> {};

// Every target holds the same bytes, whatever K is, also where images differ and work changes hands: planned to the block, and within a few
// percent when leaders of one target help those of another. With fewer parts than targets they are on those whose turn it is.
TEST_P(Placed, EveryTargetHoldsTheSame) {
    const std::uint32_t files = GetParam(), on = std::min(files, 4u);
    ClusterOptions options = slow_storage(files, 0);
    options.image_bytes = [](Rank rank, Version version) { return (108 + 5 * ((rank * 7 + version * 3) % 9)) * mib; };
    options.placed = true;
    Cluster cluster(options);
    ASSERT_TRUE(cluster.open_job().ok());
    std::vector<double> sums(4);
    double all = 0;
    for (Version version = 1; version <= 4; ++version) {
        seconds_to_commit(cluster, version);
        const Status whole = cluster.check_committed(cluster.key(version));
        EXPECT_TRUE(whole.ok()) << whole.to_string();
        double bytes = 0;
        for (Rank rank = 0; rank < 16; ++rank) bytes += static_cast<double>(options.image_bytes(rank, version));
        all += bytes;
        const std::vector<std::uint64_t> held = cluster.bytes_on_targets(version);
        EXPECT_EQ(4 - std::count(held.begin(), held.end(), 0u), on);
        for (std::size_t target = 0; target < 4; ++target) {
            sums[target] += static_cast<double>(held[target]);
            if (held[target] > 0) {
                EXPECT_NEAR(static_cast<double>(held[target]), bytes / on, 0.03 * bytes / on) << "version " << version << ", target " << target;
            }
        }
    }
    for (const double sum : sums) EXPECT_NEAR(sum, all / 4, 0.02 * all / 4);
}
INSTANTIATE_TEST_SUITE_P(Files, Placed, ::testing::Values(1, 2, 3, 4, 5, 7, 8, 16));

TEST(Moves, AreFewWhenAllAreEquallyFast) {
    Cluster cluster(slow_storage(8, 128 * mib));
    ASSERT_TRUE(cluster.open_job().ok());
    const double virtual_s = seconds_to_commit(cluster, 1);
    EXPECT_LT(virtual_s, 1.05 * 16 * 128.0 * mib / 200e6);
    EXPECT_LT(taken_over(cluster), 16 * 128 * mib / 20);
}

// A node whose card is slow is helped by the others, also within one part.
TEST(Moves, HelpASlowNode) {
    ClusterOptions options = slow_storage(1, 64 * mib);
    options.model.target_rates.clear();
    options.model.persistent_rate = 400e6;
    options.model.persistent_client_rates[3] = 5e6;
    Cluster cluster(options);
    ASSERT_TRUE(cluster.open_job().ok());
    const double virtual_s = seconds_to_commit(cluster, 1);
    EXPECT_LT(virtual_s, 1.25 * 16 * 64.0 * mib / 355e6);
    EXPECT_GT(taken_over(cluster), 64 * mib);
    const Status whole = cluster.check_committed(cluster.key(1));
    EXPECT_TRUE(whole.ok()) << whole.to_string();
}

}  // namespace
}  // namespace cairn
