// The production engine on small clusters, where the answer is known by hand.
#include <gtest/gtest.h>

#include "simulate/report.hpp"

namespace cairn::simulate {
namespace {

Cluster small() {
    const Result<Cluster> cluster = parse_cluster(R"(
[job]
nodes = 8
ranks_per_node = 2
image_bytes = "128 MiB"
files = 8
[node]
nic_out_bytes_per_s = "100 MiB"
nic_in_bytes_per_s = "100 MiB"
memory_bytes_per_s = "4 GiB"
scratch_bytes_per_s = "8 GiB"
checksum_bytes_per_s = "8 GiB"
[storage]
servers = 4
server_bytes_per_s = "1 GiB"
targets = 8
target_bytes_per_s = "512 MiB"
)",
                                                  "small.toml");
    EXPECT_TRUE(cluster.ok()) << cluster.status().to_string();
    return *cluster;
}

VersionOutcome last(const Cluster& cluster, Question question = {}) {
    const Result<Outcome> outcome = simulate(cluster, question);
    EXPECT_TRUE(outcome.ok()) << outcome.status().to_string();
    return outcome.ok() ? outcome->versions.back() : VersionOutcome{};
}

TEST(SimulateCairn, CardsBind) {
    const VersionOutcome v = last(small());
    EXPECT_EQ(v.bytes, 16u * (128u << 20));
    EXPECT_NEAR(v.flush_s(), 2.56, 0.1);  // 256 MiB a node at 100 MiB/s
    EXPECT_EQ(v.leaders.size(), 8u);
    EXPECT_NEAR(v.capture_s, 128.0 / 4096, 0.01);
}

TEST(SimulateCairn, TargetsBind) {
    Cluster cluster = small();
    ASSERT_TRUE(set_key(cluster, "storage.target_bytes_per_s=25 MiB").ok());
    EXPECT_NEAR(last(cluster).flush_s(), 10.24, 0.4);  // 2 GiB at 8 x 25 MiB/s
}

TEST(SimulateCairn, FewerWritersAreBoundByTheirCards) {
    Cluster cluster = small();
    cluster.files = 2;
    cluster.flush.leaders = 2;
    const double seconds = last(cluster).flush_s();  // beside its card out a leader's card in is full, and it waits for the first and the last chunk
    EXPECT_GT(seconds, 10.24);
    EXPECT_LT(seconds, 12);
}

TEST(SimulateCairn, TheSameSeedGivesTheSameToTheByte) {
    Cluster cluster = small();
    cluster.imbalance = 0.2;
    const auto text = [&](std::uint64_t seed) {
        Question question;
        question.seed = seed;
        const Result<Outcome> outcome = simulate(cluster, question);
        EXPECT_TRUE(outcome.ok());
        return json_text({{cluster, *outcome, 0}});
    };
    EXPECT_EQ(text(1), text(1));
    EXPECT_NE(text(1), text(2));
}

TEST(SimulateCairn, BothWaysOfSharingAgree) {
    Cluster cluster = small();
    cluster.imbalance = 0.2;
    Question exact, queued;
    exact.sharing = sim::Bandwidth::Sharing::exact;
    queued.sharing = sim::Bandwidth::Sharing::queued;
    EXPECT_NEAR(last(cluster, queued).flush_s() / last(cluster, exact).flush_s(), 1, 0.05);
}

TEST(SimulateCairn, WhatIsNotOverInTimeIsAnError) {
    Question question;
    question.limit_s = 1;
    EXPECT_EQ(simulate(small(), question).code(), Code::deadline);
}

TEST(SimulateRivals, AFilePerRankIsBoundByTheCardsToo) {
    Question question;
    question.strategy = Strategy::file_per_rank;
    EXPECT_NEAR(last(small(), question).flush_s(), 2.56, 0.1);
    question.strategy = Strategy::every_node;
    EXPECT_NEAR(last(small(), question).flush_s(), 2.56, 0.1);
}

}  // namespace
}  // namespace cairn::simulate
