// What `cairn tune` tells of a campaign on a file system that is a formula: table, document, figures and settings say the same.
#include "cli/tune_report.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "base/text_table.hpp"
#include "base/units.hpp"

namespace cairn::cli {
namespace {

using namespace tune;

// Twice as fast with threads, or not at all different.
class Formula final : public Runner {
  public:
    explicit Formula(double gain) : gain_(gain) {}
    Result<Measured> run(const Variant& variant, std::uint32_t followers) override {
        Measured m;
        m.local_bytes = 100 << 20;
        m.received_bytes = followers * m.local_bytes;
        m.durable_s = (variant.uring ? 1 : 1 / gain_) * (1 + 0.001 * static_cast<double>(++runs_ % 7));
        m.write_s = 0.5 * m.durable_s;
        m.wall_s = m.durable_s;
        now_ += static_cast<Nanos>(m.wall_s * second);
        return m;
    }
    Nanos now() const override { return now_; }

  private:
    double gain_;
    Nanos now_ = 0;
    int runs_ = 0;
};

struct TuneReportTest : testing::Test {
    TuneOptions options;
    TuneReport report;
    void run(double gain, Nanos budget = 400 * second, bool figures = false) {
        options.target = "/target";
        options.followers = {1, 2};
        CampaignOptions campaign;
        campaign.levels[Factor::writers] = {2, 8};
        campaign.levels[Factor::files] = {1, 4};
        campaign.levels[Factor::uring] = {0, 1};
        campaign.followers = options.followers;
        campaign.figures = figures;
        campaign.ends = budget;
        report.file_bytes = 1 << 20;
        Formula formula(gain);
        report.campaign = std::make_unique<Campaign>(campaign, formula);
        ASSERT_TRUE(report.campaign->run().ok());
    }
};

TEST_F(TuneReportTest, TableAndDocumentAgree) {
    run(2);
    const std::string text = tune_text(report, options);
    const auto document = tune_json(report, options);
    ASSERT_GE(document["variants"].size(), 4u);
    for (const auto& variant : document["variants"]) {
        char ratio[16];
        std::snprintf(ratio, sizeof ratio, "%.2f", variant["ratio"].get<double>());
        const std::size_t at = text.find("\n" + variant["differs"].get<std::string>() + "  ");
        ASSERT_NE(at, std::string::npos) << variant["differs"];
        const std::string row = text.substr(at + 1, text.find('\n', at + 1) - at - 1);
        for (const std::string& cell : {std::to_string(variant["runs"].get<int>()), format_rate(variant["received_bytes_per_s"]),
                                        format_rate(variant["received_durable_bytes_per_s"]), std::string(ratio)})
            EXPECT_NE(row.find(" " + cell), std::string::npos) << row << " lacks " << cell;
    }
    EXPECT_NE(text.find(document["recommended"]["text"].get<std::string>()), std::string::npos);
}

TEST_F(TuneReportTest, WhatIsBetterIsWrittenAndSaysHowSure) {
    run(2);
    EXPECT_EQ(recommended_changes(report), (std::vector<ConfigChange>{{"flush.io", "\"threads\""}}));
    const auto document = tune_json(report, options);
    EXPECT_EQ(document["recommended"]["settings"].dump(), R"({"flush.io":"threads"})");
    EXPECT_EQ(document["recommended"]["verdict"], "better");
    EXPECT_NEAR(document["recommended"]["ratio"].get<double>(), 2, 0.2);
    EXPECT_TRUE(verdict_text(report).starts_with("threads: 2.0")) << verdict_text(report);
    EXPECT_NE(verdict_text(report).find("(95 %: "), std::string::npos);
    EXPECT_NE(tune_text(report, options).find("flush.io = \"threads\" instead of \"uring\": 2.0"), std::string::npos);
}

TEST_F(TuneReportTest, NothingIsWrittenForNoiseNorWithTooFewRuns) {
    run(1.0001);
    EXPECT_TRUE(recommended_changes(report).empty());
    EXPECT_TRUE(verdict_text(report).starts_with("the present settings; "));
    run(2, 9 * second);
    EXPECT_TRUE(recommended_changes(report).empty());
    EXPECT_TRUE(verdict_text(report).starts_with("the present settings; ")) << verdict_text(report);
}

TEST_F(TuneReportTest, FiguresHaveAChartForEachNumberOfFilesAndFollowers) {
    run(1, 4000 * second, true);
    const std::string svg = tune_figures(report, options);
    for (const char* title : {"1 file, 1 follower", "4 files, 1 follower", "1 file, 2 followers", "4 files, 2 followers"})
        EXPECT_NE(svg.find(std::string(">") + title + "<"), std::string::npos) << title;
    EXPECT_EQ(svg.find("nan"), std::string::npos);
    EXPECT_EQ(svg.find("the time was over"), std::string::npos);
    run(1, 4 * second, true);
    EXPECT_NE(tune_figures(report, options).find("the time was over"), std::string::npos);
}

}  // namespace
}  // namespace cairn::cli
