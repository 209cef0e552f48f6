// Cluster files: every way to be wrong is one clear error; the documentation has every key.
#include "simulate/cluster.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>
#include <set>
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
    expect_contains(wrong("storage = 3\n" + good.substr(0, good.find("[storage]"))), "c.toml:1: storage is a section: write [storage]");
    expect_contains(wrong("name = 3\n" + good), "c.toml:1: name: not a value it can have; allowed: text");
    expect_contains(wrong("[job]\nnodes = 8\nnodes = 9\n"), "c.toml:3: not TOML");
    expect_contains(wrong(with("targets = 8", "targts = 8")), "unknown key storage.targts; allowed in [storage]: servers");
    expect_contains(wrong(with("[job]", "[job")), "c.toml:1: not TOML");
    expect_contains(wrong(good + "[flush]\nplacement = \"somewhere\"\n"), "flush.placement");
    expect_contains(wrong(good + "[flush]\ncodec = \"small\"\n"), "flush.codec");
    expect_contains(wrong(good + "[flush]\nblock_bytes = 5000\n"), "power of two");
}

// ---- every key, by the table that the documentation shows ----

struct Row {
    std::string key, allowed;
    bool required = false;
    std::string section() const { return key.substr(0, key.find('.')); }
    std::string name() const { return key.substr(key.find('.') + 1); }
};

std::vector<Row> rows() {
    std::vector<Row> all;
    std::istringstream lines(cluster_markdown());
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with("| `")) continue;
        std::vector<std::string> cells;
        for (std::size_t at = 2; at < line.size();) {
            const std::size_t end = line.find(" |", at);
            cells.push_back(line.substr(at, end - at));
            at = end + 3;
        }
        all.push_back({cells.at(0).substr(1, cells.at(0).size() - 2), cells.at(2), cells.at(1) == "yes"});
    }
    return all;
}

using Sections = std::map<std::string, std::map<std::string, std::string>>;

// What must be given, and no more.
Sections least() {
    Sections sections;
    std::istringstream lines(good);
    std::string section;
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("[")) section = line.substr(1, line.size() - 2);
        else sections[section][line.substr(0, line.find(" = "))] = line.substr(line.find(" = ") + 3);
    }
    return sections;
}

std::string file_of(const Sections& sections) {
    std::string text;
    for (const auto& [section, keys] : sections) {
        text += "[" + section + "]\n";
        for (const auto& [name, value] : keys) text += name + " = " + value + "\n";
    }
    return text;
}

// Which line of a file a key stands on.
std::size_t line_of(const std::string& text, const Row& row) {
    const std::size_t section = text.find("[" + row.section() + "]\n");
    const std::size_t at = text.find("\n" + row.name() + " = ", section) + 1;
    return 1 + static_cast<std::size_t>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

void expect_refused(const Row& row, const std::string& value) {
    Sections sections = least();
    sections[row.section()][row.name()] = value;
    const std::string text = file_of(sections);
    EXPECT_EQ(wrong(text), "c.toml:" + std::to_string(line_of(text, row)) + ": " + row.key + ": not a value it can have; allowed: " + row.allowed) << value;
    Cluster cluster = *parse_cluster(good, "c.toml");
    EXPECT_EQ(set_key(cluster, row.key + "=" + value).text(), "--set " + row.key + "=" + value + ": not a value it can have; allowed: " + row.allowed);
}

TEST(ClusterFile, EveryKeyRefusesWhatIsNotItsKind) {
    ASSERT_GT(rows().size(), 45u);
    for (const Row& row : rows()) {
        SCOPED_TRACE(row.key);
        for (const char* value : {"true", "\"\"", "\"much\"", "[]", "[true]", "[1, 2, 3, \"x\"]", "{}", "1979-05-27", "inf", "nan", "-1", "1e300", "\"-1 GiB\""})
            expect_refused(row, value);
        if (row.allowed.starts_with("a whole number")) expect_refused(row, "1.5");
    }
}

TEST(ClusterFile, EveryKeyHoldsToItsBounds) {
    std::size_t seen = 0;
    for (const Row& row : rows()) {
        SCOPED_TRACE(row.key);
        double low = 0, high = 0;
        const std::size_t from = row.allowed.rfind("from ");
        if (row.allowed.starts_with("a size") || from == std::string::npos || std::sscanf(row.allowed.c_str() + from, "from %lf to %lf", &low, &high) != 2) continue;
        ++seen;
        const bool whole = row.allowed.starts_with("a whole number"), list = row.allowed.starts_with("[");
        const auto text = [&](double value) {
            char out[40];
            std::snprintf(out, sizeof out, whole ? "%.0f" : "%.17g", value);
            return list ? std::string("[") + out + "]" : std::string(out);
        };
        Cluster cluster;
        EXPECT_TRUE(set_key(cluster, row.key + "=" + text(low)).ok()) << low;
        EXPECT_TRUE(set_key(cluster, row.key + "=" + text(high)).ok()) << high;
        expect_refused(row, text(low - (whole ? 1 : 0.0001)));
        expect_refused(row, text(high + (whole ? 1 : 0.001 * high)));
    }
    EXPECT_GT(seen, 40u);
}

TEST(ClusterFile, EveryKeyThatMustBeGivenIsMissed) {
    std::size_t required = 0;
    for (const Row& row : rows()) {
        if (!row.required) continue;
        ++required;
        Sections sections = least();
        sections[row.section()].erase(row.name());
        const std::string text = wrong(file_of(sections));
        EXPECT_TRUE(text.starts_with("c.toml: " + row.key + " is missing: ") && text.ends_with("; " + row.allowed)) << text;
        EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    }
    EXPECT_EQ(required, 13u);
}

// Where each key goes.
struct Place {
    std::string key, value;
    std::function<double(const Cluster&)> member;
    double expected;
};
#define PLACE(key, value, member, expected) \
    {key, value, [](const Cluster& c) { return static_cast<double>(c.member); }, expected}
const std::vector<Place> places = {
    PLACE("job.nodes", "7", nodes, 7), PLACE("job.io_nodes", "2", io_nodes, 2), PLACE("job.ranks_per_node", "3", ranks_per_node, 3),
    PLACE("job.image_bytes", "\"3 MiB\"", image_bytes, 3 << 20), PLACE("job.images_bytes", "[1, \"2 KiB\"]", images_bytes[1], 2048),
    PLACE("job.imbalance", "0.2", imbalance, 0.2), PLACE("job.files", "5", files, 5), PLACE("job.versions", "4", versions, 4),
    PLACE("job.compute_s", "60", compute_s, 60), PLACE("job.network_share", "0.3", network_share, 0.3), PLACE("job.restart", "1", restart, 1),
    PLACE("node.nic_out_bytes_per_s", "[1e6, \"1 MiB\"]", nic_out_bytes_per_s.high, 1 << 20), PLACE("node.nic_in_bytes_per_s", "[1e6, 2e6]", nic_in_bytes_per_s.low, 1e6),
    PLACE("node.memory_bytes_per_s", "\"1 GiB\"", memory_bytes_per_s, 1 << 30), PLACE("node.scratch_bytes_per_s", "11", scratch_bytes_per_s, 11),
    PLACE("node.checksum_bytes_per_s", "12", checksum_bytes_per_s, 12), PLACE("node.client_bytes_per_s", "13", client_bytes_per_s, 13),
    PLACE("node.client_crowd", "0.5", client_crowd, 0.5), PLACE("node.client_crowd_from", "6", client_crowd_from, 6),
    PLACE("node.writer_bytes_per_s", "14", writer_bytes_per_s, 14), PLACE("node.network_latency_us", "15", network_latency_us, 15), PLACE("node.connections", "1", connections, 1),
    PLACE("storage.servers", "3", servers, 3), PLACE("storage.server_bytes_per_s", "16", server_bytes_per_s, 16),
    PLACE("storage.servers_bytes_per_s", "[17, \"18 B\"]", servers_bytes_per_s[1], 18), PLACE("storage.targets", "19", targets, 19),
    PLACE("storage.target_bytes_per_s", "20", target_bytes_per_s, 20), PLACE("storage.stripes", "2", stripes, 2),
    PLACE("storage.stripe_bytes", "\"64 KiB\"", stripe_bytes, 65536), PLACE("storage.placeable", "0", placeable, 0), PLACE("storage.spans", "1", spans, 1),
    PLACE("storage.whole_files", "0.65", whole_files, 0.65),
    PLACE("storage.request_us", "21", request_us, 21), PLACE("storage.crowd", "0.25", crowd, 0.25), PLACE("storage.crowd_from", "22", crowd_from, 22),
    PLACE("storage.latency_us", "23", latency_us, 23), PLACE("storage.fsync_ms", "24", fsync_ms, 24), PLACE("storage.metadata_ops_per_s", "25", metadata_ops_per_s, 25),
    PLACE("storage.write_behind_bytes", "\"1 MiB\"", write_behind_bytes, 1 << 20), PLACE("storage.background", "0.1", background, 0.1), PLACE("storage.background_spread", "0.6", background_spread, 0.6),
    PLACE("flush.writers", "9", flush.writers, 9), PLACE("flush.buffers", "10", flush.buffers, 10),
    PLACE("flush.buffer_bytes", "\"8 MiB\"", flush.buffer_bytes, 8 << 20), PLACE("flush.block_bytes", "\"64 KiB\"", block_bytes, 65536),
    PLACE("flush.leaders", "4", flush.leaders, 4), PLACE("flush.placement", "\"contiguous\"", flush.placement, 2),
    PLACE("flush.encode_at", "\"follower\"", flush.encode_at, 1), PLACE("flush.codec", "\"auto\"", codec, 2), PLACE("codec.ratio", "1.25", codec_ratio, 1.25), PLACE("codec.bytes_per_s", "\"3 MiB\"", codec_bytes_per_s, 3 << 20),
    PLACE("codec.decode_bytes_per_s", "\"7 MiB\"", decode_bytes_per_s, 7 << 20),
    PLACE("codec.hard_share", "0.3", hard_share, 0.3), PLACE("codec.hard_ratio", "1.07", hard_ratio, 1.07), PLACE("codec.hard_bytes_per_s", "\"5 MiB\"", hard_bytes_per_s, 5 << 20),
    PLACE("rivals.two_phase", "0.31", efficiency.at("two_phase"), 0.31), PLACE("rivals.at_offset", "0.32", efficiency.at("at_offset"), 0.32),
    PLACE("rivals.every_node", "0.33", efficiency.at("every_node"), 0.33), PLACE("rivals.every_node_uneven", "0.34", efficiency.at("every_node_uneven"), 0.34),
    PLACE("rivals.file_per_rank", "0.35", efficiency.at("file_per_rank"), 0.35),
};
#undef PLACE

TEST(ClusterFile, EveryKeyGoesWhereItBelongs) {
    std::set<std::string> keys, placed;
    for (const Row& row : rows()) keys.insert(row.key);
    for (const Place& place : places) {
        SCOPED_TRACE(place.key);
        placed.insert(place.key);
        Sections sections = least();
        const std::size_t dot = place.key.find('.');
        sections[place.key.substr(0, dot)][place.key.substr(dot + 1)] = place.value;
        if (place.key == "node.client_crowd") sections["node"]["client_bytes_per_s"] = "13";
        const Result<Cluster> read = parse_cluster(file_of(sections), "c.toml");
        ASSERT_TRUE(read.ok()) << read.status().text();
        EXPECT_DOUBLE_EQ(place.member(*read), place.expected);
        Cluster cluster = *parse_cluster(good, "c.toml");
        ASSERT_TRUE(set_key(cluster, place.key + "=" + place.value).ok());
        EXPECT_DOUBLE_EQ(place.member(cluster), place.expected);
    }
    EXPECT_EQ(keys, placed);
}

TEST(ClusterFile, AllThatIsWrongIsOneErrorInTheOrderOfTheFile) {
    const std::string text = wrong(with("files = 8", "files = 0\nfast = 1") + "[disks]\nnumber = 3\n");
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
    const std::size_t first = text.find("c.toml:5: job.files"), second = text.find("c.toml:6: unknown key job.fast"), third = text.find(": unknown section or key disks");
    EXPECT_TRUE(first < second && second < third && third != std::string::npos) << text;
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
    expect_contains(wrong(good + "[flush]\nbuffer_bytes = \"1.5 MiB\"\n"), "multiple of flush.block_bytes");
    expect_contains(wrong(with("ranks_per_node = 2", "ranks_per_node = 2\nversions = 1000\nimages_bytes = [1e15]")), "job.versions may be at most");
    expect_contains(wrong(with("nodes = 8\nranks_per_node = 2", "nodes = 100000\nranks_per_node = 1000")), "job.nodes x job.ranks_per_node is 100000000; at most");
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
