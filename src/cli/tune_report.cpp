#include "cli/tune_report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "base/plot.hpp"
#include "base/text_table.hpp"
#include "base/units.hpp"

namespace cairn::cli {

using namespace tune;

namespace {

constexpr double wide_spread = 0.2;

std::string ratio_text(double ratio) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2f", ratio);
    return text;
}

std::string percent_text(double share) { return std::to_string(std::lround(100 * share)) + " %"; }

std::string metric_text(const TuneOptions& options) { return options.durable ? "until all was durable" : "until the last writer ended"; }

double relative_spread(const std::vector<double>& values) { return median(values) > 0 ? spread(values) / median(values) : 0; }

std::string workload_text(const TuneReport& report, const TuneOptions& options) {
    const std::uint32_t followers = options.followers.front();
    return plural(options.files_local, "local file") + " of " + format_bytes(report.file_bytes) + " plus or minus 20 %, the same again from " +
           plural(followers, "follower") + ": " + format_bytes(report.local_bytes * (1 + followers)) + " a run";
}

// What several files for each leader won: told, and not among the settings.
std::vector<std::string> files_advice(const TuneReport& report) {
    std::vector<std::string> lines;
    for (const Row& row : report.campaign->rows()) {
        const std::vector<Factor> changed = differences(row.variant, report.campaign->options().present);
        if (std::find(changed.begin(), changed.end(), Factor::files) == changed.end() || row.ratios.empty()) continue;
        lines.push_back(plural(row.variant.files, "file") + " a leader: " + ratio_text(median(row.ratios)) + " x in " + plural(row.ratios.size(), "round") +
                        " of screening (flush.files = " + std::to_string(row.variant.files) + " x the nodes that write)");
    }
    return lines;
}

// What each setting that changes won by itself.
std::vector<std::string> reasons(const TuneReport& report) {
    std::vector<std::string> lines;
    const Variant& present = report.campaign->options().present;
    const Variant& best = report.campaign->verdict().best;
    for (const Factor factor : differences(best, present)) {
        Variant alone = present;
        set_level(alone, factor, level(best, factor));
        alone = normal(alone);
        std::string text = setting_name(factor) + " = " + setting_value(factor, level(best, factor)) + " instead of " +
                           setting_value(factor, level(present, factor));
        for (const Row& row : report.campaign->rows())
            if (row.variant == alone && !row.ratios.empty())
                text += ": " + ratio_text(median(row.ratios)) + " x by itself, in " + plural(row.ratios.size(), "round");
        lines.push_back(text);
    }
    return lines;
}

TextTable table_of(const TuneReport& report) {
    TextTable table({left("what differs"), right("runs"), right("received"), right("durably"), right("x present"), right("spread")});
    for (const Row& row : report.campaign->rows()) {
        table.add({difference_text(row.variant, report.campaign->options().present), std::to_string(row.all_per_s.size()),
                   format_rate(median(row.received_per_s)), format_rate(median(row.durable_per_s)), row.ratios.empty() ? "-" : ratio_text(median(row.ratios)),
                   row.all_per_s.size() > 1 ? percent_text(relative_spread(row.all_per_s)) : "-"});
        if (table.rows() == 1) table.rule();
    }
    return table;
}

}  // namespace

std::vector<ConfigChange> recommended_changes(const TuneReport& report) {
    std::vector<ConfigChange> changes;
    const Verdict& verdict = report.campaign->verdict();
    if (verdict.kind != Verdict::Kind::better) return changes;
    for (const Factor factor : differences(verdict.best, report.campaign->options().present))
        if (!setting_name(factor).empty()) changes.emplace_back(setting_name(factor), setting_value(factor, level(verdict.best, factor)));
    return changes;
}

std::string verdict_text(const TuneReport& report) {
    const Verdict& verdict = report.campaign->verdict();
    const std::string best = difference_text(verdict.best, report.campaign->options().present);
    const std::string interval = verdict.interval.known ? " (95 %: " + ratio_text(verdict.interval.low) + " to " + ratio_text(verdict.interval.high) + ")" : "";
    const std::string how = ratio_text(verdict.ratio) + " x the present settings" + interval + ", in " + plural(verdict.pairs, "pair") + " of runs made after the choice";
    switch (verdict.kind) {
        case Verdict::Kind::better: return best + ": " + how;
        case Verdict::Kind::within_noise: return "the present settings; the best of the others is no better for sure: " + best + ", " + how;
        case Verdict::Kind::too_few:
            return "the present settings; the best of the others was tried too seldom to be sure (a longer --budget helps): " + best + ", " +
                   ratio_text(verdict.ratio) + " x in " + plural(verdict.pairs, "pair") + " of runs";
        case Verdict::Kind::none_faster: return "the present settings; nothing that was tried is worth a change";
    }
    return {};
}

std::string tune_text(const TuneReport& report, const TuneOptions& options) {
    std::string text;
    const auto line = [&](const std::string& title, const std::string& what) {
        text += title + std::string(10 - std::min<std::size_t>(9, title.size()), ' ') + for_terminal(what) + "\n";
    };
    line("target", options.target);
    line("scratch", options.scratch);
    line("workload", workload_text(report, options));
    line("present", whole_text(report.campaign->options().present));
    for (const std::string& note : report.notes) line("note", note);
    text += "\n" + table_of(report).to_string();
    text += "\nreceived: bytes from followers / time until the last writer ended (ispdc23). durably: the same bytes / time until all was durable.\n"
            "x present: all bytes a second " + metric_text(options) + ", to the present settings of the same round; median.\n\n";
    text += "recommended: " + verdict_text(report) + "\n";
    if (report.campaign->verdict().kind == Verdict::Kind::better)
        for (const std::string& reason : reasons(report)) text += "  " + reason + "\n";
    for (const std::string& advice : files_advice(report)) text += "  " + advice + "\n";
    if (const std::vector<Row> rows = report.campaign->rows(); !rows.empty() && relative_spread(rows.front().all_per_s) > wide_spread)
        text += "  the same settings differ by " + percent_text(relative_spread(rows.front().all_per_s)) +
                " from run to run: somebody else uses this file system or this machine; try again when it is quiet, or with a longer --budget\n";
    text += plural(report.campaign->runs().size(), "run") + " in " + format_duration(report.took_s) + "; nothing of them is left\n";
    return text;
}

namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Variant& v) {
    return {{"writers", v.writers},
            {"files", v.files},
            {"placement", level_text(Factor::placement, level(v, Factor::placement))},
            {"local_split", level_text(Factor::local_split, level(v, Factor::local_split))},
            {"buffer_bytes", v.buffer_bytes},
            {"block_bytes", v.block_bytes},
            {"direct", v.direct},
            {"io", v.uring ? "uring" : "threads"}};
}

Json rows_json(const TuneReport& report) {
    Json rows = Json::array();
    for (const Row& row : report.campaign->rows()) {
        const Interval interval = median_interval(row.ratios);
        rows.push_back({{"differs", difference_text(row.variant, report.campaign->options().present)},
                        {"settings", json_of(row.variant)},
                        {"runs", row.all_per_s.size()},
                        {"received_bytes_per_s", median(row.received_per_s)},
                        {"received_durable_bytes_per_s", median(row.durable_per_s)},
                        {"all_bytes_per_s", median(row.all_per_s)},
                        {"spread", relative_spread(row.all_per_s)},
                        {"ratio", row.ratios.empty() ? Json() : Json(median(row.ratios))},
                        {"ratio_low", interval.known ? Json(interval.low) : Json()},
                        {"ratio_high", interval.known ? Json(interval.high) : Json()}});
    }
    return rows;
}

Json runs_json(const TuneReport& report) {
    Json runs = Json::array();
    for (const Run& run : report.campaign->runs())
        runs.push_back({{"stage", stage_name(run.stage)},
                        {"round", run.round},
                        {"settings", json_of(run.variant)},
                        {"followers", run.followers},
                        {"received_bytes", run.measured.received_bytes},
                        {"local_bytes", run.measured.local_bytes},
                        {"write_s", run.measured.write_s},
                        {"durable_s", run.measured.durable_s},
                        {"wall_s", run.measured.wall_s}});
    return runs;
}

}  // namespace

Json tune_json(const TuneReport& report, const TuneOptions& options) {
    constexpr const char* kinds[] = {"better", "within_noise", "too_few_runs", "none_faster"};
    const Verdict& verdict = report.campaign->verdict();
    Json changes = Json::object();
    for (const auto& [name, value] : recommended_changes(report)) changes[name] = Json::parse(value);
    Json recommendation = {{"settings", std::move(changes)},
                           {"verdict", kinds[static_cast<std::size_t>(verdict.kind)]},
                           {"best", json_of(verdict.best)},
                           {"ratio", verdict.ratio},
                           {"ratio_low", verdict.interval.known ? Json(verdict.interval.low) : Json()},
                           {"ratio_high", verdict.interval.known ? Json(verdict.interval.high) : Json()},
                           {"pairs", verdict.pairs},
                           {"text", verdict_text(report)}};
    return {{"target", options.target},
            {"scratch", options.scratch},
            {"metric", options.durable ? "durable" : "written"},
            {"seed", options.seed},
            {"budget_s", static_cast<double>(options.budget) / second},
            {"took_s", report.took_s},
            {"cores", report.cores},
            {"local_files", options.files_local},
            {"local_bytes", report.local_bytes},
            {"followers", options.followers},
            {"notes", report.notes},
            {"present", json_of(report.campaign->options().present)},
            {"recommended", std::move(recommendation)},
            {"variants", rows_json(report)},
            {"runs", runs_json(report)}};
}

namespace {

constexpr double mib = 1 << 20;

std::vector<double> values_at(const TuneReport& report, Placement placement, std::uint64_t writers, std::uint64_t files, std::uint32_t followers) {
    const Variant variant =
        Campaign::figure_variant(report.campaign->options(), placement, static_cast<std::uint32_t>(writers), static_cast<std::uint32_t>(files));
    return report.campaign->figure_values(variant, followers);
}

// NaN where a point has no run, or stands for another point (fewer writers than files). `rounds`: the fewest runs of any point so far.
Chart chart_of(const TuneReport& report, std::uint64_t files, std::uint32_t followers, std::size_t& rounds) {
    constexpr const char* names[] = {"append (Cairn's own order)", "interleaved (equation 2)", "contiguous (equation 1)"};
    Chart chart;
    chart.title = plural(files, "file") + ", " + plural(followers, "follower");
    chart.x_label = "writers";
    chart.y_label = "received bytes / time, MiB/s";
    const std::vector<std::uint64_t>& levels = report.campaign->options().levels[Factor::writers];
    for (const std::uint64_t writers : levels) chart.places.push_back(std::to_string(writers));
    for (const Placement placement : {Placement::contiguous, Placement::interleaved, Placement::append}) {
        PlotSeries series{names[static_cast<std::size_t>(placement)], {}, {}, {}};
        for (const std::uint64_t writers : levels) {
            const std::vector<double> values = writers < files ? std::vector<double>() : values_at(report, placement, writers, files, followers);
            const auto [low, high] = std::minmax_element(values.begin(), values.end());
            series.values.push_back(values.empty() ? NAN : median(values) / mib);
            series.low.push_back(values.size() < 2 ? NAN : *low / mib);
            series.high.push_back(values.size() < 2 ? NAN : *high / mib);
            if (writers >= files) rounds = std::min(rounds, values.size());
        }
        chart.series.push_back(std::move(series));
    }
    return chart;
}

}  // namespace

std::string tune_figures(const TuneReport& report, const TuneOptions& options) {
    const CampaignOptions& campaign = report.campaign->options();
    Picture picture;
    picture.title = "Aggregated write throughput of one leader (ispdc23, Figures 1 to 3)";
    picture.columns = static_cast<std::uint32_t>(campaign.levels[Factor::files].size());
    std::size_t rounds = SIZE_MAX;
    const std::set<std::uint32_t> all_followers(campaign.followers.begin(), campaign.followers.end());
    const std::set<std::uint64_t> all_files(campaign.levels[Factor::files].begin(), campaign.levels[Factor::files].end());
    for (const std::uint32_t followers : all_followers)
        for (const std::uint64_t files : all_files) picture.charts.push_back(chart_of(report, files, followers, rounds));
    const Variant& present = campaign.present;
    picture.note = options.target + ", " + plural(report.cores, "core") + "; " + plural(options.files_local, "local file") + " of " +
                   format_bytes(report.file_bytes) + " plus or minus 20 %, as much again from each follower; blocks of " +
                   format_bytes_exact(present.block_bytes) + ", " + (present.direct ? "direct I/O, " : "through the page cache, ") +
                   level_text(Factor::uring, present.uring ? 1 : 0) + ".\nTime until the last writer ended, not until all was durable. " +
                   (rounds == 0 ? "Medians; the time was over before all points were measured" : "Medians of " + plural(rounds, "round") + " or more, in random order") +
                   "; bars: lowest and highest.\nLocal files whole per writer, with append chunk by chunk. A file has a writer at least.";
    return plot_svg(picture);
}

}  // namespace cairn::cli
