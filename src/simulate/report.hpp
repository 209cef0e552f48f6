// What people and programs read of an outcome.
#pragma once

#include <string>
#include <vector>

#include "simulate/outcome.hpp"

namespace cairn::simulate {

struct Answer {  // one strategy or number of files among those compared
    Cluster cluster;
    Outcome outcome;
    double real_s = 0;  // that the simulation took
};

std::string images_text(const Cluster& cluster);  // how large they are: "1.00 GiB +- 20 %"
std::string tables(const std::vector<Answer>& answers, bool verbose);
std::string json_text(const std::vector<Answer>& answers);
// Throughput by number of files and strategy, the phases of each answer, and how long leaders took, from the fastest to the slowest.
std::string picture(const std::vector<Answer>& answers);

}  // namespace cairn::simulate
