// What others write checkpoints with, where CMake found it. Each writes every rank's image into as many files as it is asked for, or as many as
// it likes; peer_s() times it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "image.hpp"
#include "options.hpp"
#include "team.hpp"

namespace bench {

struct Peer {
    std::string name;
    // Collective; all it makes is under `path`, which is its own and not there yet but for its parent. `command` has files= and what else it can be told.
    std::function<void(const Team& team, const WarmMemory& image, const std::string& path, const Options& command)> write;
};

// Empty where the library was not there when the benchmark was built.
// adios2: BP5 as it comes. adios2_tuned: files=, and what a sweep may set: aggregation=, writers= (processes that write), chunk= (bytes of a
// buffer; 0: as large as the images). Never any statistics.
std::vector<Peer> adios2_peers();
std::string adios2_version();  // empty without it
// genericio: POSIX, a file for each group of ranks.
std::vector<Peer> genericio_peers();

// Seconds from the first begin to the last end, all durable. What it left is removed afterwards.
double peer_s(const Team& team, const Peer& peer, const WarmMemory& image, const std::string& path, const Options& command);

}  // namespace bench
