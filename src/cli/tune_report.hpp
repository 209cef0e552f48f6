// What `cairn tune` tells: a table and the recommendation for people, one document for programs, figures for papers.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/config_edit.hpp"
#include "tune/tuner.hpp"

namespace cairn::cli {

// The settings that the verdict says to change, with their values as cairn.toml has them; none where the present ones stay.
std::vector<ConfigChange> recommended_changes(const tune::TuneReport& report);

// "1.32 x the present settings (95 %: 1.21 to 1.44), 12 pairs of runs": how sure, in one line.
std::string verdict_text(const tune::TuneReport& report);

std::string tune_text(const tune::TuneReport& report, const tune::TuneOptions& options);
nlohmann::ordered_json tune_json(const tune::TuneReport& report, const tune::TuneOptions& options);

// ispdc23's Figures 1 to 3 on this machine, a row for each number of followers: throughput over writers, by placement; one chart for each number of files.
std::string tune_figures(const tune::TuneReport& report, const tune::TuneOptions& options);

}  // namespace cairn::cli
