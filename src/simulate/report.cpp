// Tables: what was asked, one row an answer; phases, leaders, writers, targets; what bounds it.
#include "simulate/report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/text_table.hpp"
#include "base/units.hpp"

namespace cairn::simulate {

namespace {

using Json = nlohmann::ordered_json;

std::string text(const char* format, double value) {
    char out[64];
    std::snprintf(out, sizeof out, format, value);
    return out;
}
std::string percent(double share) { return text("%.1f %%", 100 * share); }

const VersionOutcome& last(const Answer& answer) { return answer.outcome.versions.back(); }

double mean(const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double median_flush_s(const Answer& answer) {
    std::vector<double> all;
    for (const VersionOutcome& version : answer.outcome.versions) all.push_back(version.flush_s());
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
}

std::vector<double> leader_seconds(const VersionOutcome& version) {
    std::vector<double> all;
    for (const LeaderOutcome& leader : version.leaders) all.push_back(leader.seconds);
    std::sort(all.begin(), all.end());
    return all;
}

std::uint32_t writing_nodes(const Answer& answer) {
    std::vector<std::uint32_t> nodes;
    for (const LeaderOutcome& leader : last(answer).leaders) nodes.push_back(leader.node);
    std::sort(nodes.begin(), nodes.end());
    return static_cast<std::uint32_t>(std::unique(nodes.begin(), nodes.end()) - nodes.begin());
}

TextTable summary(const std::vector<Answer>& answers) {
    const bool restarts = std::any_of(answers.begin(), answers.end(), [](const Answer& answer) { return answer.outcome.restart_s.has_value(); });
    std::vector<TextTable::Column> columns = {left("strategy"), right("files"), right("writing nodes"), right("blocked"), right("elect"), right("write"), right("commit"), right("flush"),
                                              right("throughput"), right("slowest leader")};
    if (restarts) columns.push_back(right("restart"));
    columns.push_back(right("took"));
    TextTable table(std::move(columns));
    for (const Answer& answer : answers) {
        const VersionOutcome& v = last(answer);
        const std::vector<double> seconds = leader_seconds(v);
        const double slowest = seconds.empty() ? 0 : seconds.back() / mean(seconds) - 1;
        std::vector<std::string> cells = {std::string(name_of(answer.outcome.strategy)), format_count(answer.outcome.files), format_count(writing_nodes(answer)),
                                          format_duration(v.capture_s), format_duration(v.elect_s), format_duration(v.write_s), format_duration(v.commit_s),
                                          format_duration(v.flush_s()), format_rate(v.bytes_per_s()), "+" + percent(slowest)};
        if (restarts) cells.push_back(format_duration(answer.outcome.restart_s.value_or(0)));
        cells.push_back(format_duration(answer.real_s));
        table.add(std::move(cells));
    }
    return table;
}

TextTable versions_table(const Answer& answer) {
    TextTable table({right("version"), right("bytes"), right("blocked"), right("of a rank, mean"), right("elect"), right("write"), right("commit"), right("throughput")});
    std::uint64_t number = 0;
    for (const VersionOutcome& v : answer.outcome.versions)
        table.add({std::to_string(++number), format_bytes(v.bytes), format_duration(v.capture_s), format_duration(v.capture_mean_s), format_duration(v.elect_s),
                   format_duration(v.write_s), format_duration(v.commit_s), format_rate(v.bytes_per_s())});
    return table;
}

// The fastest, the slowest and some in between, as the paper's Figure 7 shows them.
TextTable leaders_table(const Answer& answer) {
    TextTable table({left("leader"), right("node"), right("bytes"), right("seconds"), right("throughput"), right("received"), right("at"), right("local"), right("at"),
                     right("fastest writer"), right("slowest")});
    std::vector<LeaderOutcome> leaders = last(answer).leaders;
    std::stable_sort(leaders.begin(), leaders.end(), [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
    const std::size_t count = leaders.size(), shown = std::min<std::size_t>(7, count);
    for (std::size_t i = 0; i < shown; ++i) {
        const std::size_t at = shown == 1 ? 0 : i * (count - 1) / (shown - 1);
        const LeaderOutcome& leader = leaders[at];
        WriterOutcome sum;
        double fastest = 0, slowest = 0;
        for (const WriterOutcome& writer : leader.writers) {
            sum.received_s += writer.received_s;
            sum.local_s += writer.local_s;
            sum.received_bytes += writer.received_bytes;
            sum.local_bytes += writer.local_bytes;
            const double seconds = writer.received_s + writer.local_s;
            const double rate = seconds > 0 ? static_cast<double>(writer.received_bytes + writer.local_bytes) / seconds : 0;
            fastest = std::max(fastest, rate);
            slowest = slowest == 0 ? rate : std::min(slowest, rate);
        }
        const auto rate = [](std::uint64_t bytes, double seconds) { return seconds > 0 ? format_rate(static_cast<double>(bytes) / seconds) : std::string("-"); };
        const std::string name = i == 0 ? "fastest" : i + 1 == shown ? "slowest" : percent(static_cast<double>(at) / static_cast<double>(count)) + " are faster";
        table.add({name, std::to_string(leader.node), format_bytes(leader.bytes), format_duration(leader.seconds), rate(leader.bytes, leader.seconds),
                   format_bytes(sum.received_bytes), rate(sum.received_bytes, sum.received_s), format_bytes(sum.local_bytes), rate(sum.local_bytes, sum.local_s),
                   fastest > 0 ? format_rate(fastest) : "-", slowest > 0 ? format_rate(slowest) : "-"});
    }
    return table;
}

// A file per rank makes more files than were asked for.
std::vector<Bound> bounds_of(const Answer& answer) {
    Cluster cluster = answer.cluster;
    cluster.files = answer.outcome.files;
    return bounds_of(cluster, std::max(1u, writing_nodes(answer)), answer.outcome.seed);
}

TextTable bounds_table(const Answer& answer) {
    TextTable table({left("bound"), right("at most"), right("reached")});
    for (const Bound& bound : bounds_of(answer))
        table.add({bound.what, format_rate(bound.bytes_per_s), percent(last(answer).bytes_per_s() / bound.bytes_per_s)});
    return table;
}

std::string targets_line(const Answer& answer) {
    const std::vector<std::uint64_t>& bytes = answer.outcome.target_bytes;
    const auto [least, most] = std::minmax_element(bytes.begin(), bytes.end());
    double sum = 0;
    for (const std::uint64_t each : bytes) sum += static_cast<double>(each);
    const double usual = sum / static_cast<double>(bytes.size());
    const auto used = std::count_if(bytes.begin(), bytes.end(), [](std::uint64_t each) { return each > 0; });
    return "targets: " + format_count(static_cast<std::uint64_t>(used)) + " of " + format_count(bytes.size()) + " used; the fullest holds " +
           percent(static_cast<double>(*most) / usual - 1) + " more than the mean, the emptiest " + percent(1 - static_cast<double>(*least) / usual) + " less\n";
}

Json leader_json(const LeaderOutcome& leader) {
    Json writers = Json::array();
    for (const WriterOutcome& writer : leader.writers)
        writers.push_back({{"received_s", writer.received_s}, {"local_s", writer.local_s}, {"received_bytes", writer.received_bytes}, {"local_bytes", writer.local_bytes}});
    return {{"node", leader.node}, {"seconds", leader.seconds}, {"bytes", leader.bytes}, {"writers", std::move(writers)}};
}

Json version_json(const VersionOutcome& v) {
    Json leaders = Json::array();
    for (const LeaderOutcome& leader : v.leaders) leaders.push_back(leader_json(leader));
    return {{"bytes", v.bytes},       {"capture_s", v.capture_s}, {"capture_mean_s", v.capture_mean_s}, {"elect_s", v.elect_s},
            {"write_s", v.write_s},   {"commit_s", v.commit_s},   {"flush_s", v.flush_s()},             {"bytes_per_s", v.bytes_per_s()},
            {"leaders", std::move(leaders)}};
}

}  // namespace

std::string images_text(const Cluster& cluster) {
    if (cluster.images_bytes.empty()) return format_bytes(cluster.image_bytes) + (cluster.imbalance > 0 ? " +- " + text("%.0f %%", 100 * cluster.imbalance) : "");
    const auto [least, most] = std::minmax_element(cluster.images_bytes.begin(), cluster.images_bytes.end());
    return format_bytes(static_cast<std::uint64_t>(*least)) + " to " + format_bytes(static_cast<std::uint64_t>(*most));
}

std::string tables(const std::vector<Answer>& answers, bool verbose) {
    const Cluster& c = answers.front().cluster;
    std::string out = for_terminal(c.name) + ": " + plural(c.nodes, "node") + (c.io_nodes ? " and " + plural(c.io_nodes, "I/O node") : "") + ", " + plural(c.ranks(), "rank") + " of " +
                      images_text(c) + ", " + plural(c.servers, "server") + ", " +
                      plural(c.targets, "target") + "; bandwidth shared " +
                      (answers.front().outcome.sharing == sim::Bandwidth::Sharing::exact ? "exactly" : "by queues") + "\n\n";
    out += summary(answers).to_string();
    for (const Answer& answer : answers) {
        const bool cairn = answer.outcome.strategy == Strategy::cairn;
        if (answers.size() > 1 && !verbose) continue;
        if (answers.size() > 1) out += "\n" + std::string(name_of(answer.outcome.strategy)) + ", " + plural(answer.outcome.files, "file") + "\n";
        if (answer.outcome.versions.size() > 1) out += "\n" + versions_table(answer).to_string();
        if (cairn) out += "\n" + leaders_table(answer).to_string();
        out += "\n" + bounds_table(answer).to_string() + "\n" + targets_line(answer);
    }
    return out;
}

std::string json_text(const std::vector<Answer>& answers) {
    Json all = Json::array();
    for (const Answer& answer : answers) {
        Json versions = Json::array(), bounds = Json::array();
        for (const VersionOutcome& version : answer.outcome.versions) versions.push_back(version_json(version));
        for (const Bound& bound : bounds_of(answer)) bounds.push_back({{"what", bound.what}, {"bytes_per_s", bound.bytes_per_s}});
        const Outcome& o = answer.outcome;
        all.push_back({{"cluster", answer.cluster.name},
                       {"strategy", name_of(o.strategy)},
                       {"nodes", o.nodes},
                       {"ranks", o.ranks},
                       {"files", o.files},
                       {"io_nodes", answer.cluster.io_nodes},
                       {"servers", answer.cluster.servers},
                       {"targets", answer.cluster.targets},
                       {"image_bytes", answer.cluster.image_bytes},
                       {"images_bytes", answer.cluster.images_bytes},
                       {"imbalance", answer.cluster.imbalance},
                       {"seed", o.seed},
                       {"sharing", o.sharing == sim::Bandwidth::Sharing::exact ? "exact" : "queued"},
                       {"writing_nodes", writing_nodes(answer)},
                       {"flush_s_median", median_flush_s(answer)},
                       {"simulated_s", o.seconds},
                       {"events", o.events},
                       {"fingerprint", std::to_string(o.fingerprint)},
                       {"versions", std::move(versions)},
                       {"bounds", std::move(bounds)},
                       {"target_bytes", o.target_bytes},
                       {"target_busy_s", o.target_busy_s}});
        if (o.restart_s) all.back()["restart_s"] = *o.restart_s;
    }
    return all.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace cairn::simulate
