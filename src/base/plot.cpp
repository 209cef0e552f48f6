// Drawn by hand: what Debian keeps for C++ (PLplot, MathGL) brings fonts, a PDF writer and a dozen packages into the command of every node, and draws other bytes
// from release to release; matplotlib, which the scripts of bench/ use, would need Python where the command runs.
#include "base/plot.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/text_table.hpp"

namespace cairn {

namespace {

constexpr double chart_width = 400, chart_height = 300, left_margin = 66, right_margin = 14, top_margin = 40, bottom_margin = 58;
constexpr double title_height = 40, legend_height = 26, note_line = 17, edge = 12;
constexpr double note_letter = 6.4;  // of its font, in the mean
constexpr double least_width = 720;  // of titles and legends
constexpr int steps_most = 6;
constexpr const char* ink = "#222222";
constexpr const char* faint = "#dddddd";
// Told apart also by people who see fewer colours (Okabe and Ito), and by their markers.
constexpr const char* colours[] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#555555"};

std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f", value);
    std::string cut(text);
    if (cut.ends_with(".0")) cut.resize(cut.size() - 2);
    return cut == "-0" ? "0" : cut;
}

std::string escaped(const std::string& text) {
    std::string out;
    for (const char c : text) {
        if (c == '&') out += "&amp;";
        else if (c == '<') out += "&lt;";
        else if (c == '>') out += "&gt;";
        else if (c == '"') out += "&quot;";
        else out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
    return out;
}

std::string text_at(double x, double y, const std::string& text, const std::string& anchor, int size, const std::string& more = "") {
    return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" + anchor + "\" font-size=\"" + std::to_string(size) + "\" fill=\"" + ink +
           "\"" + (more.empty() ? "" : " " + more) + ">" + escaped(text) + "</text>\n";
}

std::string line(double x1, double y1, double x2, double y2, const std::string& colour, double width) {
    return "<line x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" + number(x2) + "\" y2=\"" + number(y2) + "\" stroke=\"" + colour +
           "\" stroke-width=\"" + number(width) + "\"/>\n";
}

std::string marker(std::size_t series, double x, double y) {
    const std::string colour = colours[series % std::size(colours)];
    const std::string fill = "\" fill=\"" + colour + "\" stroke=\"white\" stroke-width=\"1\"/>\n";
    switch (series % 3) {
        case 0: return "<circle cx=\"" + number(x) + "\" cy=\"" + number(y) + "\" r=\"4.5" + fill;
        case 1: return "<rect x=\"" + number(x - 4) + "\" y=\"" + number(y - 4) + "\" width=\"8\" height=\"8" + fill;
        default:
            return "<path d=\"M " + number(x) + " " + number(y - 5.5) + " L " + number(x + 5) + " " + number(y + 3.5) + " L " + number(x - 5) + " " +
                   number(y + 3.5) + " Z" + fill;
    }
}

double highest(const Chart& chart) {
    double most = 0;
    for (const PlotSeries& series : chart.series)
        for (const auto* values : {&series.values, &series.high})
            for (const double value : *values)
                if (std::isfinite(value)) most = std::max(most, value);
    return most;
}

// One chart with its place on the page and its scale.
class Drawing {
  public:
    Drawing(const Chart& chart, const std::vector<std::string>& names, double x, double y, double most)
        : chart_(chart), names_(names), left_(x + left_margin), right_(x + chart_width - right_margin), top_(y + top_margin),
          bottom_(y + chart_height - bottom_margin), step_(plot_step(most, steps_most)), most_(std::max(1.0, std::ceil(most / step_ - 1e-9)) * step_) {}

    std::string draw() {
        axes();
        for (const PlotSeries& series : chart_.series) {
            if (chart_.kind == Chart::Kind::lines) lines(series);
            else bars(series);
        }
        return out_;
    }

  private:
    double y_of(double value) const { return bottom_ - value / most_ * (bottom_ - top_); }
    double slot() const { return (right_ - left_) / static_cast<double>(std::max<std::size_t>(1, chart_.places.size())); }
    double x_of(std::size_t place) const { return left_ + (static_cast<double>(place) + 0.5) * slot(); }
    std::size_t colour_of(const PlotSeries& series) const {
        return static_cast<std::size_t>(std::find(names_.begin(), names_.end(), series.name) - names_.begin());
    }
    static double at(const std::vector<double>& values, std::size_t i) { return i < values.size() ? values[i] : NAN; }

    void axes() {
        for (double value = 0; value <= most_ + step_ / 2; value += step_) {
            out_ += line(left_, y_of(value), right_, y_of(value), value == 0 ? ink : faint, 1);
            char label[32];
            std::snprintf(label, sizeof label, "%g", std::round(value / step_) * step_);
            out_ += text_at(left_ - 7, y_of(value) + 4, label, "end", 12);
        }
        out_ += line(left_, top_, left_, bottom_, ink, 1);
        for (std::size_t i = 0; i < chart_.places.size(); ++i) {
            out_ += line(x_of(i), bottom_, x_of(i), bottom_ + 4, ink, 1);
            out_ += text_at(x_of(i), bottom_ + 18, chart_.places[i], "middle", 12);
        }
        out_ += text_at((left_ + right_) / 2, top_ - 14, chart_.title, "middle", 14, "font-weight=\"bold\"");
        out_ += text_at((left_ + right_) / 2, bottom_ + 40, chart_.x_label, "middle", 13);
        const double x = left_ - left_margin + 18, y = (top_ + bottom_) / 2;
        out_ += text_at(x, y, chart_.y_label, "middle", 13, "transform=\"rotate(-90 " + number(x) + " " + number(y) + ")\"");
    }

    void error_bar(const PlotSeries& series, std::size_t i, double x, const std::string& colour) {
        const double low = at(series.low, i), high = at(series.high, i);
        if (!std::isfinite(low) || !std::isfinite(high)) return;
        out_ += line(x, y_of(low), x, y_of(high), colour, 1.5);
        for (const double end : {low, high}) out_ += line(x - 4, y_of(end), x + 4, y_of(end), colour, 1.5);
    }

    // A point that is missing breaks the line. Curves stand a little beside each other, or their error bars would hide one another.
    void lines(const PlotSeries& series) {
        const std::size_t colour = colour_of(series);
        const std::string paint = colours[colour % std::size(colours)];
        const double beside = 7 * (static_cast<double>(&series - chart_.series.data()) - static_cast<double>(chart_.series.size() - 1) / 2);
        const std::size_t count = std::min(series.values.size(), chart_.places.size());
        for (std::size_t i = 0; i + 1 < count; ++i)
            if (std::isfinite(series.values[i]) && std::isfinite(series.values[i + 1]))
                out_ += line(x_of(i) + beside, y_of(series.values[i]), x_of(i + 1) + beside, y_of(series.values[i + 1]), paint, 2);
        for (std::size_t i = 0; i < count; ++i) {
            if (!std::isfinite(series.values[i])) continue;
            error_bar(series, i, x_of(i) + beside, paint);
            out_ += marker(colour, x_of(i) + beside, y_of(series.values[i]));
        }
    }

    void bars(const PlotSeries& series) {
        const auto position = static_cast<double>(&series - chart_.series.data());
        const double width = 0.8 * slot() / static_cast<double>(chart_.series.size());
        const std::string paint = colours[colour_of(series) % std::size(colours)];
        for (std::size_t i = 0; i < std::min(series.values.size(), chart_.places.size()); ++i) {
            if (!std::isfinite(series.values[i])) continue;
            const double x = x_of(i) - 0.4 * slot() + position * width;
            out_ += "<rect x=\"" + number(x) + "\" y=\"" + number(y_of(series.values[i])) + "\" width=\"" + number(width * 0.94) + "\" height=\"" +
                    number(bottom_ - y_of(series.values[i])) + "\" fill=\"" + paint + "\"/>\n";
            error_bar(series, i, x + width * 0.47, ink);
        }
    }

    const Chart& chart_;
    const std::vector<std::string>& names_;
    double left_, right_, top_, bottom_, step_, most_;
    std::string out_;
};

std::vector<std::string> names_of(const Picture& picture) {
    std::vector<std::string> names;
    for (const Chart& chart : picture.charts)
        for (const PlotSeries& series : chart.series)
            if (std::find(names.begin(), names.end(), series.name) == names.end()) names.push_back(series.name);
    return names;
}

std::string legend(const Picture& picture, const std::vector<std::string>& names, double width, double y) {
    double needed = 0;
    const auto width_of = [](const std::string& name) { return 34 + 7.0 * static_cast<double>(characters(name)); };
    for (const std::string& name : names) needed += width_of(name);
    const bool marks = !picture.charts.empty() && picture.charts.front().kind == Chart::Kind::lines;
    std::string out;
    double x = std::max(edge, (width - needed) / 2);
    for (std::size_t i = 0; i < names.size(); ++i) {
        const std::string paint = colours[i % std::size(colours)];
        if (marks) out += line(x, y - 4, x + 20, y - 4, paint, 2) + marker(i, x + 10, y - 4);
        else out += "<rect x=\"" + number(x + 4) + "\" y=\"" + number(y - 10) + "\" width=\"12\" height=\"12\" fill=\"" + paint + "\"/>\n";
        out += text_at(x + 25, y, names[i], "start", 13);
        x += width_of(names[i]);
    }
    return out;
}

// At line ends, and at spaces where a line would be longer than `longest` bytes.
std::vector<std::string> lines_of(const std::string& text, std::size_t longest) {
    std::vector<std::string> lines;
    for (std::size_t from = 0; from < text.size();) {
        std::size_t end = std::min(text.find('\n', from), text.size());
        if (end - from > longest)
            if (const std::size_t space = text.rfind(' ', from + longest); space != std::string::npos && space > from) end = space;
        lines.push_back(text.substr(from, end - from));
        from = end + 1;
    }
    return lines;
}

}  // namespace

double plot_step(double most, int steps) {
    if (!(most > 0) || !std::isfinite(most)) return 1;
    double step = std::pow(10, std::floor(std::log10(most / steps)));
    for (const double factor : {2.0, 2.5, 2.0, 2.0}) {  // 1 2 5 10 20
        if (step * steps >= most * (1 - 1e-9)) break;
        step *= factor;
    }
    return step;
}

std::string plot_svg(const Picture& picture) {
    const std::vector<std::string> names = names_of(picture);
    const auto count = static_cast<std::uint32_t>(picture.charts.size());
    const std::uint32_t columns = std::clamp<std::uint32_t>(picture.columns, 1, std::max(1u, count)), rows = (count + columns - 1) / columns;
    const double width = std::max(least_width, columns * chart_width + 2 * edge), top = title_height + legend_height;
    const std::vector<std::string> notes = lines_of(picture.note, static_cast<std::size_t>((width - 4 * edge) / note_letter));
    const double height = top + rows * chart_height + static_cast<double>(notes.size()) * note_line + 2 * edge;
    std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + number(width) + "\" height=\"" + number(height) + "\" viewBox=\"0 0 " +
                      number(width) + " " + number(height) + "\" font-family=\"Helvetica, Arial, sans-serif\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
    out += text_at(width / 2, 27, picture.title, "middle", 17, "font-weight=\"bold\"");
    out += legend(picture, names, width, title_height + 14);
    double most = 0;
    for (const Chart& chart : picture.charts) most = std::max(most, highest(chart));
    for (std::uint32_t i = 0; i < count; ++i) {
        const Chart& chart = picture.charts[i];
        const double x = (width - columns * chart_width) / 2 + (i % columns) * chart_width, y = top + static_cast<double>(i / columns) * chart_height;
        out += Drawing(chart, names, x, y, picture.same_scale ? most : highest(chart)).draw();
    }
    for (std::size_t i = 0; i < notes.size(); ++i)
        out += text_at(2 * edge, top + rows * chart_height + static_cast<double>(i + 1) * note_line, notes[i], "start", 12);
    return out + "</svg>\n";
}

}  // namespace cairn
