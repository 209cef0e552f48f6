// Tables align, the JSON parses, and both say the same.
#include "simulate/report.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/text_table.hpp"
#include "base/units.hpp"
#include "simulate/small_testing.hpp"

namespace cairn::simulate {
namespace {

Answer answered(const Cluster& cluster, Strategy strategy = Strategy::cairn) { return {cluster, answer(cluster, of(strategy)), 0.25}; }

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

bool is_rule(const std::string& line) { return line.size() > 4 && line.find_first_not_of("- ") == std::string::npos; }

// Cells of a row by the columns of its table's rule; fails where text stands between columns.
std::vector<std::string> cells_of(const std::string& row, const std::string& rule) {
    std::vector<std::string> cells;
    for (std::size_t at = 0; at < rule.size();) {
        const std::size_t end = std::min(rule.find(' ', at), rule.size());
        std::string cell = at < row.size() ? row.substr(at, end - at) : "";
        const std::size_t first = cell.find_first_not_of(' ');
        cell = first == std::string::npos ? "" : cell.substr(first, cell.find_last_not_of(' ') - first + 1);
        cells.push_back(cell);
        const std::size_t next = std::min(rule.find('-', end), rule.size());
        EXPECT_EQ(row.substr(std::min(end, row.size()), next - end).find_first_not_of(' '), std::string::npos) << row << "\n" << rule;
        at = next;
    }
    EXPECT_LE(row.size(), rule.size()) << row;
    return cells;
}

using Table = std::vector<std::vector<std::string>>;  // titles, then rows

std::vector<Table> tables_of(const std::string& text) {
    std::vector<Table> all;
    const std::vector<std::string> lines = lines_of(text);
    for (std::size_t i = 1; i < lines.size(); ++i) {
        if (!is_rule(lines[i])) continue;
        Table table{cells_of(lines[i - 1], lines[i])};
        for (std::size_t row = i + 1; row < lines.size() && !lines[row].empty(); ++row) table.push_back(cells_of(lines[row], lines[i]));
        all.push_back(std::move(table));
    }
    return all;
}

TEST(SimulateReport, TablesAlignAndSayWhatTheJsonSays) {
    const Cluster cluster = small({"job.imbalance=0.2", "job.versions=2"});
    std::vector<Answer> answers;
    for (const Strategy strategy : strategies) answers.push_back(answered(cluster, strategy));
    const auto document = nlohmann::json::parse(json_text(answers));
    const std::vector<Table> all = tables_of(tables(answers, false));
    ASSERT_EQ(all.size(), 1u);  // compared: a row each
    const Table& table = all[0];
    ASSERT_EQ(table.size(), 1 + std::size(strategies));
    ASSERT_EQ(document.size(), std::size(strategies));
    for (std::size_t i = 0; i < std::size(strategies); ++i) {
        const auto& one = document[i];
        const auto& v = one["versions"].back();
        const std::vector<std::string> row = {one["strategy"], format_count(one["files"]), format_count(one["writing_nodes"]), format_duration(v["capture_s"]),
                                              format_duration(v["elect_s"]), format_duration(v["write_s"]), format_duration(v["commit_s"]),
                                              format_duration(v["flush_s"]), format_rate(v["bytes_per_s"])};
        EXPECT_EQ(std::vector<std::string>(table[i + 1].begin(), table[i + 1].begin() + 9), row);
        EXPECT_EQ(table[i + 1].back(), "250 ms");
    }
}

TEST(SimulateReport, TheJsonIsInItselfTrue) {
    const Answer one = answered(small({"job.imbalance=0.2", "job.versions=3"}));
    const auto document = nlohmann::json::parse(json_text({one}))[0];
    EXPECT_EQ(document["cluster"], "small");
    EXPECT_EQ(document["nodes"], 8);
    EXPECT_EQ(document["ranks"], 16);
    EXPECT_EQ(document["sharing"], "exact");
    EXPECT_EQ(document["fingerprint"], std::to_string(one.outcome.fingerprint));
    ASSERT_EQ(document["versions"].size(), 3u);
    std::vector<double> flushes;
    for (const auto& v : document["versions"]) {
        const double flush = v["flush_s"];
        flushes.push_back(flush);
        EXPECT_NEAR(flush, v["elect_s"].get<double>() + v["write_s"].get<double>() + v["commit_s"].get<double>(), 1e-9);
        EXPECT_NEAR(v["bytes_per_s"].get<double>(), v["bytes"].get<double>() / flush, 1);
        for (const auto& leader : v["leaders"]) {
            double written = 0;
            for (const auto& writer : leader["writers"]) written += writer["received_bytes"].get<double>() + writer["local_bytes"].get<double>();
            EXPECT_LE(std::abs(leader["bytes"].get<double>() - written), 0.01 * leader["bytes"].get<double>());
            EXPECT_LE(leader["seconds"].get<double>(), flush);
        }
    }
    std::sort(flushes.begin(), flushes.end());
    EXPECT_EQ(document["flush_s_median"], flushes[1]);
    EXPECT_EQ(document["target_bytes"].size(), 8u);
    EXPECT_EQ(document["target_busy_s"].size(), 8u);
}

TEST(SimulateReport, OneAnswerHasItsVersionsLeadersAndBounds) {
    const std::string text = tables({answered(small({"job.versions=2"}))}, false);
    const std::vector<Table> all = tables_of(text);
    ASSERT_EQ(all.size(), 4u) << text;
    EXPECT_EQ(all[1].size(), 3u);  // versions
    EXPECT_EQ(all[2].front().front(), "leader");
    EXPECT_EQ(all[2].size(), 1u + 7);  // the fastest, the slowest, five between
    EXPECT_EQ(all[3].front().front(), "bound");
    EXPECT_NE(text.find("targets: 8 of 8 used"), std::string::npos) << text;
    EXPECT_TRUE(text.starts_with("small: 8 nodes, 16 ranks of 128 MiB, 4 servers, 8 targets; bandwidth shared exactly\n")) << text;
}

TEST(SimulateReport, VerboseTellsOfEachThatIsCompared) {
    const std::vector<Answer> two = {answered(small()), answered(small(), Strategy::file_per_rank)};
    EXPECT_EQ(tables_of(tables(two, false)).size(), 1u);
    EXPECT_EQ(tables_of(tables(two, true)).size(), 1u + 2 + 1);  // leaders and bounds of Cairn, bounds of the other
}

TEST(SimulateReport, BoundsAreInOrderAndNobodyIsAboveThem) {
    for (const std::vector<std::string>& settings : std::vector<std::vector<std::string>>{{}, {"storage.target_bytes_per_s=25 MiB"}, {"job.files=2"}, {"node.client_bytes_per_s=50 MiB"},
                                                                                          {"storage.server_bytes_per_s=50 MiB"}, {"storage.background=0.5"}}) {
        const Cluster cluster = small(settings);
        const VersionOutcome v = last(cluster);
        const std::vector<Bound> bounds = bounds_of(cluster, static_cast<std::uint32_t>(v.leaders.size()));
        for (std::size_t i = 1; i < bounds.size(); ++i) EXPECT_LE(bounds[i - 1].bytes_per_s, bounds[i].bytes_per_s);
        EXPECT_LE(v.bytes_per_s(), bounds[0].bytes_per_s * 1.001) << bounds[0].what;
        EXPECT_GE(v.bytes_per_s(), bounds[0].bytes_per_s * 0.85) << bounds[0].what;  // and here they are what decides
    }
    EXPECT_EQ(bounds_of(small({"node.client_bytes_per_s=50 MiB"}), 8)[0].what, "file system clients of 8 writing nodes");
    for (const std::string codec : {"fast", "auto"}) {
        const std::vector<std::string> slow = {"node.client_bytes_per_s=50 MiB", "codec.bytes_per_s=10 MiB", "flush.codec=" + codec}, quick = {"node.client_bytes_per_s=50 MiB", "codec.bytes_per_s=60 MiB", "codec.ratio=2", "flush.codec=" + codec};
        EXPECT_EQ(bounds_of(small(slow), 8)[0].what, codec == "fast" ? "encoding on 8 writing nodes" : "file system clients of 8 writing nodes") << "auto leaves a codec that would bind";
        EXPECT_EQ(bounds_of(small(quick), 8)[0].what, "encoding on 8 writing nodes");
        EXPECT_DOUBLE_EQ(bounds_of(small(quick), 8)[0].bytes_per_s, 480.0 * (1 << 20));
        const std::vector<std::string> hard = {"node.client_bytes_per_s=50 MiB", "codec.bytes_per_s=2 GiB", "codec.ratio=4", "codec.hard_share=0.5", "codec.hard_bytes_per_s=10 MiB", "codec.hard_ratio=1.1", "flush.codec=" + codec};
        EXPECT_EQ(bounds_of(small(hard), 8)[0].what, codec == "fast" ? "encoding on 8 writing nodes" : "file system clients of 8 writing nodes");
        if (codec == "auto") {
            EXPECT_DOUBLE_EQ(bounds_of(small(hard), 8)[0].bytes_per_s, 400.0 * (1 << 20) / 0.625);
        }
    }
}

TEST(SimulateReport, ServersThatDifferBoundByTheirSum) {
    const Cluster cluster = small({"storage.servers_bytes_per_s=[\"10 MiB\", \"30 MiB\"]"});
    const std::vector<Bound> bounds = bounds_of(cluster, 8);
    EXPECT_EQ(bounds[0].what, "4 servers");
    EXPECT_DOUBLE_EQ(bounds[0].bytes_per_s, 80.0 * (1 << 20));
}

TEST(SimulateReport, APictureHasEachStrategyAndNoHoles) {
    std::vector<Answer> answers;
    for (const char* files : {"job.files=2", "job.files=8"})
        for (const Strategy strategy : {Strategy::cairn, Strategy::file_per_rank}) answers.push_back(answered(small({files}), strategy));
    const std::string svg = picture(answers);
    for (const char* part : {"<svg", "cairn", "file_per_rank", "K, files asked for", "</svg>"}) EXPECT_NE(svg.find(part), std::string::npos) << part;
    EXPECT_EQ(svg.find("nan"), std::string::npos);
}

}  // namespace
}  // namespace cairn::simulate
