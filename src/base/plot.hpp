// Plot: charts as SVG, for reports and documents. Lines with markers, or bars in groups, over named places of the x axis; a y axis from 0 with round
// numbers; error bars; one legend for all charts of a picture. No dependencies, the same bytes for the same values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cairn {

struct PlotSeries {
    std::string name;
    std::vector<double> values;     // one a place of the x axis; NaN: there is none
    std::vector<double> low, high;  // error bars, as values; empty: none
};

struct Chart {
    enum class Kind : std::uint8_t { lines, bars } kind = Kind::lines;
    std::string title, x_label, y_label;   // labels with their units
    std::vector<std::string> places;       // of the x axis, from left to right
    std::vector<PlotSeries> series;        // of the same name: the same colour in every chart
};

struct Picture {
    std::string title;
    std::string note;            // below: how it was measured; lines
    std::vector<Chart> charts;   // row by row
    std::uint32_t columns = 3;
    bool same_scale = true;      // of y, in all charts
};

std::string plot_svg(const Picture& picture);

// The first step of 1, 2 or 5 times a power of ten by which at most `steps` reach `most`; 1 where there is nothing to reach.
double plot_step(double most, int steps);

}  // namespace cairn
