// For tests: a cluster so small that its answers are known by hand.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "simulate/report.hpp"

namespace cairn::simulate {

// 2 GiB of 16 ranks on 8 nodes, whose cards (100 MiB/s each) bind until a test says otherwise.
inline Cluster small(const std::vector<std::string>& settings = {}) {
    const Result<Cluster> parsed = parse_cluster(R"(
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
    EXPECT_TRUE(parsed.ok()) << parsed.status().to_string();
    Cluster cluster = *parsed;
    for (const std::string& setting : settings) EXPECT_TRUE(set_key(cluster, setting).ok()) << setting;
    return cluster;
}

inline Outcome answer(const Cluster& cluster, const Question& question = {}) {
    Result<Outcome> outcome = simulate(cluster, question);
    EXPECT_TRUE(outcome.ok()) << outcome.status().to_string();
    if (!outcome.ok()) return {};
    return std::move(outcome).value();
}

inline VersionOutcome last(const Cluster& cluster, const Question& question = {}) {
    const Outcome outcome = answer(cluster, question);
    return outcome.versions.empty() ? VersionOutcome{} : outcome.versions.back();
}

inline Question of(Strategy strategy) {
    Question question;
    question.strategy = strategy;
    return question;
}

}  // namespace cairn::simulate
