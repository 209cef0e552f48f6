#include "base/plot.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace cairn {
namespace {

std::size_t count(const std::string& text, const std::string& what) {
    std::size_t found = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
    return found;
}

Picture picture_of(Chart::Kind kind) {
    Chart chart;
    chart.kind = kind;
    chart.title = "1 file < 2 & more";
    chart.places = {"1", "2", "4"};
    chart.series = {{"append", {1, 2, 3}, {0.9, 1.8, 2.5}, {1.1, 2.2, 3.5}}, {"contiguous", {1, NAN, 2}, {}, {}}};
    Picture picture;
    picture.title = "throughput";
    picture.note = "one\ntwo";
    picture.charts = {chart, chart};
    return picture;
}

TEST(Plot, StepsAreRound) {
    EXPECT_EQ(plot_step(0, 6), 1);
    EXPECT_EQ(plot_step(NAN, 6), 1);
    EXPECT_EQ(plot_step(6, 6), 1);
    EXPECT_DOUBLE_EQ(plot_step(6.1, 6), 2);
    EXPECT_DOUBLE_EQ(plot_step(1750, 6), 500);
    EXPECT_DOUBLE_EQ(plot_step(0.03, 6), 0.005);
    EXPECT_DOUBLE_EQ(plot_step(59, 6), 10);
}

TEST(Plot, EveryValueIsThereAndMissingOnesAreNot) {
    const std::string lines = plot_svg(picture_of(Chart::Kind::lines));
    EXPECT_EQ(count(lines, "<circle"), 2 * 3u + 1);                       // the first series' markers, and the legend's
    EXPECT_EQ(count(lines, "width=\"8\" height=\"8\""), 2 * 2u + 1);      // the second one's
    EXPECT_EQ(count(lines, "stroke=\"#D55E00\""), 1u);                    // broken where its value is missing: only the legend has a line
    EXPECT_EQ(lines.find("nan"), std::string::npos);
    const std::string bars = plot_svg(picture_of(Chart::Kind::bars));
    EXPECT_EQ(count(bars, "fill=\"#0072B2\""), 2 * 3u + 1);
    EXPECT_EQ(count(bars, "fill=\"#D55E00\""), 2 * 2u + 1);
}

TEST(Plot, TextsAreEscapedAndTheSameValuesMakeTheSameBytes) {
    const std::string svg = plot_svg(picture_of(Chart::Kind::lines));
    EXPECT_NE(svg.find("1 file &lt; 2 &amp; more"), std::string::npos);
    EXPECT_EQ(svg, plot_svg(picture_of(Chart::Kind::lines)));
    EXPECT_TRUE(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    EXPECT_EQ(count(svg, "<text"), count(svg, "</text>"));
}

TEST(Plot, ANoteIsAsWideAsThePicture) {
    Picture picture = picture_of(Chart::Kind::lines);
    const std::size_t before = count(plot_svg(picture), "<text");
    for (int i = 0; i < 60; ++i) picture.note += " word";
    EXPECT_EQ(count(plot_svg(picture), "<text"), before + 2);  // 300 letters; 824 wide
    picture.note = std::string(1000, 'x');                     // has no place to be broken at
    EXPECT_NE(plot_svg(picture).find(picture.note), std::string::npos);
}

TEST(Plot, NothingToDrawIsAPictureToo) {
    EXPECT_TRUE(plot_svg({}).ends_with("</svg>\n"));
    Picture picture;
    picture.charts = {Chart{}};
    EXPECT_EQ(plot_svg(picture).find("nan"), std::string::npos);
}

}  // namespace
}  // namespace cairn
