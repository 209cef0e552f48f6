// Tuner: a campaign over a bench in directories of our own. Looks first (what killed runs left, room, direct I/O, io_uring), then finds the size
// of a run, then lets the campaign run, and takes everything away again, however it ends.
#pragma once

#include <functional>
#include <optional>

#include "tune/bench.hpp"
#include "tune/campaign.hpp"
#include "tune/place.hpp"

namespace cairn::tune {

struct TuneOptions {
    Settings settings;
    std::string target, scratch;     // existing directories
    Nanos budget = 120 * second;
    std::uint64_t file_bytes = 0;    // 0: so that enough runs fit into the budget, at most 1 GiB
    std::uint32_t files_local = 8;
    std::vector<std::uint32_t> followers = {1, 2, 4};
    Levels levels;                   // what was asked for; the default levels of factors without any. The first number of files is what is tuned for
    bool durable = true;
    bool figures = false;
    std::uint64_t seed = 1;
    std::function<bool()> stop = [] { return false; };
    // What is going on; how much of the budget has passed.
    std::function<void(const std::string& what, double share, double left_s)> tell = [](const std::string&, double, double) {};
};

struct TuneReport {
    std::vector<std::string> notes;  // what was left out, what was removed
    Variant present;                 // as it comes out on this machine
    unsigned cores = 0;
    std::uint64_t file_bytes = 0, local_bytes = 0;  // mean and sum of the local files
    double took_s = 0;
    std::unique_ptr<Campaign> campaign;
};

// invalid_argument, out_of_space, permission, cancelled and so on: one text for a person; nothing is left behind.
Result<TuneReport> tune(TuneOptions options);

// Levels by default: writers from 1 to beyond the cores, all placements and splits, 1, 4 and 8 files, ...
std::vector<std::uint64_t> default_levels(Factor factor, unsigned cores);

}  // namespace cairn::tune
