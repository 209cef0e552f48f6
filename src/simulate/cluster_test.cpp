// Cluster files: every way to be wrong is one clear error; the documentation has every key.
#include "simulate/cluster.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace cairn::simulate {
namespace {

const std::string good = R"([job]
nodes = 8
ranks_per_node = 2
image_bytes = "128 MiB"
files = 8
[node]
nic_out_bytes_per_s = ["2 GiB", "2.5 GiB"]
nic_in_bytes_per_s = 1e9
memory_bytes_per_s = "4 GiB"
scratch_bytes_per_s = "8 GiB"
checksum_bytes_per_s = "8 GiB"
[storage]
servers = 4
server_bytes_per_s = "1 GiB"
targets = 8
target_bytes_per_s = 4.6e12
)";

std::string wrong(const std::string& text) {
    const Result<Cluster> cluster = parse_cluster(text, "c.toml");
    EXPECT_FALSE(cluster.ok()) << text;
    if (cluster.ok()) return {};
    EXPECT_EQ(cluster.code(), Code::invalid_argument);
    return cluster.status().text();
}

std::string with(const std::string& from, const std::string& to) {
    std::string text = good;
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
}

void expect_contains(const std::string& text, const std::string& part) { EXPECT_NE(text.find(part), std::string::npos) << text; }

TEST(ClusterFile, SaysWhatItSays) {
    const Result<Cluster> cluster = parse_cluster(good, "dir/some.toml");
    ASSERT_TRUE(cluster.ok()) << cluster.status().text();
    EXPECT_EQ(cluster->name, "some");
    EXPECT_EQ(cluster->ranks(), 16u);
    EXPECT_EQ(cluster->nic_out_bytes_per_s.low, 2.0 * (1u << 30));
    EXPECT_EQ(cluster->nic_out_bytes_per_s.high, 2.5 * (1u << 30));
    EXPECT_EQ(cluster->nic_in_bytes_per_s.low, 1e9);
    EXPECT_EQ(cluster->target_bytes_per_s, 4.6e12);
}

TEST(ClusterFile, EachErrorNamesLineKeyAndWhatIsAllowed) {
    expect_contains(wrong(with("nodes = 8", "nodes = 0")), "c.toml:2: job.nodes: not a value it can have; allowed: a whole number from 1");
    expect_contains(wrong(with("nodes = 8", "nodes = 8.5")), "c.toml:2: job.nodes");
    expect_contains(wrong(with("\"128 MiB\"", "\"128 parsecs\"")), "c.toml:4: job.image_bytes");
    expect_contains(wrong(with("nic_in_bytes_per_s = 1e9", "nic_in_bytes_per_s = -1e9")), "c.toml:8: node.nic_in_bytes_per_s");
    expect_contains(wrong(with("nic_in_bytes_per_s = 1e9", "nic_in_bytes_per_s = nan")), "node.nic_in_bytes_per_s");
    expect_contains(wrong(with("[\"2 GiB\", \"2.5 GiB\"]", "[\"3 GiB\", \"2.5 GiB\"]")), "node.nic_out_bytes_per_s");
    expect_contains(wrong(with("servers = 4", "servers = \"four\"")), "storage.servers");
    expect_contains(wrong(with("[storage]", "[disks]")), "unknown section or key disks");
    expect_contains(wrong(with("targets = 8", "targts = 8")), "unknown key storage.targts; allowed in [storage]: servers");
    expect_contains(wrong(with("[job]", "[job")), "c.toml:1: not TOML");
    expect_contains(wrong(good + "[flush]\nplacement = \"somewhere\"\n"), "flush.placement");
    expect_contains(wrong(good + "[flush]\nblock_bytes = 5000\n"), "power of two");
}

TEST(ClusterFile, WhatIsMissingIsNamed) {
    const std::string text = wrong("[job]\nnodes = 8\n");
    for (const char* key : {"job.ranks_per_node", "job.image_bytes", "job.files", "node.nic_out_bytes_per_s", "storage.targets"})
        expect_contains(text, std::string("c.toml: ") + key + " is missing");
}

TEST(ClusterFile, ImpossibleClustersAreRefused) {
    expect_contains(wrong(with("files = 8", "files = 17")), "there are 16 ranks");
    expect_contains(wrong(with("servers = 4", "servers = 9")), "a server without a target");
    expect_contains(wrong(good + "stripes = 9\n"), "storage.stripes");
    expect_contains(wrong(good + "background = 0.9\nbackground_spread = 0.5\n"), "nothing would be left");
    expect_contains(wrong(good + "[flush]\nleaders = 9\n"), "flush.leaders");
}

TEST(ClusterFile, FilesThatAreNone) {
    EXPECT_EQ(read_cluster("/nonexistent/c.toml").code(), Code::not_found);
    EXPECT_EQ(read_cluster("/tmp").code(), Code::invalid_argument);
}

TEST(ClusterFile, SetChangesOneKey) {
    Cluster cluster = *parse_cluster(good, "c.toml");
    EXPECT_TRUE(set_key(cluster, "job.nodes=3").ok());
    EXPECT_TRUE(set_key(cluster, "node.nic_in_bytes_per_s=[1e9, 2e9]").ok());
    EXPECT_TRUE(set_key(cluster, "storage.target_bytes_per_s=3 GiB").ok());
    EXPECT_TRUE(set_key(cluster, "job.images_bytes=[1e6, 2e6]").ok());
    EXPECT_TRUE(set_key(cluster, "job.images_bytes=[3e6]").ok());
    EXPECT_EQ(cluster.nodes, 3u);
    EXPECT_EQ(cluster.nic_in_bytes_per_s.high, 2e9);
    EXPECT_EQ(cluster.images_bytes, std::vector<double>{3e6});
    for (const char* bad : {"job.nodes", "job.nodes=", "job.nodes=-1", "nodes=3", "job.nodes=3 = 4", "=", ""}) EXPECT_FALSE(set_key(cluster, bad).ok()) << bad;
}

TEST(ClusterFile, TheDocumentHasTheTable) {
    std::ifstream file(CAIRN_SOURCE "/docs/simulate.md");
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_NE(text.str().find(cluster_markdown()), std::string::npos) << "docs/simulate.md: its table is not that of `cairn simulate --keys`";
}

}  // namespace
}  // namespace cairn::simulate
