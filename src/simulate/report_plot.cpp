// The same answers as a picture.
#include <algorithm>
#include <cmath>
#include <set>

#include "base/plot.hpp"
#include "base/text_table.hpp"
#include "base/units.hpp"
#include "simulate/report.hpp"

namespace cairn::simulate {

namespace {

constexpr double gib = 1u << 30;

// A series for each strategy, a place for each number of files; what `value` says of the last version.
template <class Value>
Chart by_files(const std::vector<Answer>& answers, std::string title, std::string y_label, Value value) {
    Chart chart;
    chart.kind = Chart::Kind::bars;
    chart.title = std::move(title);
    chart.x_label = "K, files asked for";
    chart.y_label = std::move(y_label);
    std::set<std::uint32_t> counts;
    for (const Answer& answer : answers) counts.insert(answer.cluster.files);
    for (const std::uint32_t count : counts) chart.places.push_back(format_count(count));
    for (const Strategy strategy : strategies) {
        PlotSeries series{std::string(name_of(strategy)), {}, {}, {}};
        bool any = false;
        for (const std::uint32_t count : counts) {
            const auto found = std::find_if(answers.begin(), answers.end(), [&](const Answer& answer) {
                return answer.outcome.strategy == strategy && answer.cluster.files == count;
            });
            series.values.push_back(found == answers.end() ? NAN : value(found->outcome.versions.back()));
            any |= found != answers.end();
        }
        if (any) chart.series.push_back(std::move(series));
    }
    return chart;
}

// How long a leader took, at every tenth of all.
Chart leaders_chart(const std::vector<Answer>& answers) {
    Chart chart;
    chart.title = "Leaders";
    chart.x_label = "of the leaders are at least as fast, %";
    chart.y_label = "writing and making durable, s";
    for (int tenth = 0; tenth <= 10; ++tenth) chart.places.push_back(std::to_string(10 * tenth));
    for (const Answer& answer : answers) {
        std::vector<double> seconds;
        for (const LeaderOutcome& leader : answer.outcome.versions.back().leaders) seconds.push_back(leader.seconds);
        if (seconds.empty()) continue;
        std::sort(seconds.begin(), seconds.end());
        PlotSeries series{std::string(name_of(answer.outcome.strategy)) + (answers.size() > 1 ? ", K = " + format_count(answer.cluster.files) : ""), {}, {}, {}};
        for (std::size_t tenth = 0; tenth <= 10; ++tenth) series.values.push_back(seconds[tenth * (seconds.size() - 1) / 10]);
        chart.series.push_back(std::move(series));
    }
    return chart;
}

}  // namespace

std::string picture(const std::vector<Answer>& answers) {
    const Cluster& cluster = answers.front().cluster;
    Picture picture;
    picture.title = cluster.name + ": " + plural(cluster.nodes, "node") + ", " + plural(cluster.ranks(), "rank") + " of " + images_text(cluster);
    picture.note = "Simulated; the last of " + plural(answers.front().outcome.versions.size(), "version");
    picture.same_scale = false;
    picture.charts.push_back(by_files(answers, "Throughput of the flush", "GiB/s", [](const VersionOutcome& v) { return v.bytes_per_s() / gib; }));
    picture.charts.push_back(by_files(answers, "The application is blocked", "s", [](const VersionOutcome& v) { return v.capture_s; }));
    if (answers.size() <= 8) picture.charts.push_back(leaders_chart(answers));
    return plot_svg(picture);
}

}  // namespace cairn::simulate
