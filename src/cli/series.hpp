// What commands that look at checkpoints have in common: this host's scratch, a series as it stands (read/series.hpp), and how both are told.
#pragma once

#include <string>
#include <vector>

#include "cli/place.hpp"
#include "read/series.hpp"

namespace cairn::cli {

// What this host's scratch holds, of all series.
struct ScratchView {
    std::vector<ScratchImage> images;
    std::vector<Status> problems;
};
ScratchView read_scratch(Place& place, const std::vector<ScratchLayout>& nodes);
ScratchView read_scratch(Place& place);  // of all nodes of this host

// Every name on persistent or in scratch.
Result<std::vector<std::string>> series_names(Place& place, const ScratchView& scratch);
// not_found when neither persistent nor scratch knows the name.
Result<Series> read_series(Place& place, const ScratchView& scratch, const std::string& name, Manifests manifests, Roots roots = Roots::persistent);

void tell_lineage_problems(Console& console, const char* command, const Series& series);
// That newer versions than the newest one that was picked can not be read.
void tell_damage_above(Console& console, const char* command, const Series& series, const Seen& picked);

std::string short_id(Id128 id);                      // the first 8 digits
std::string format_time(std::uint64_t wall_time_s);  // local time; "-" when 0

}  // namespace cairn::cli
