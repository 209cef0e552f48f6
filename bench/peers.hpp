// What others write checkpoints with, where CMake found it. Each writes every rank's image into as many files as it is asked for, or as many as
// it likes; peer_s() times it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "image.hpp"
#include "team.hpp"

namespace bench {

struct Peer {
    std::string name;
    // Collective; all it makes is under `path`, which is its own and not there yet but for its parent.
    std::function<void(const Team& team, const WarmMemory& image, const std::string& path, int files)> write;
};

// Empty where the library was not there when the benchmark was built.
// adios2: BP5 as it comes. adios2_tuned: the files asked for, buffers as large as the images, no statistics.
std::vector<Peer> adios2_peers();
// genericio: POSIX, a file for each group of ranks.
std::vector<Peer> genericio_peers();

// Seconds from the first begin to the last end, all durable. What it left is removed afterwards.
double peer_s(const Team& team, const Peer& peer, const WarmMemory& image, const std::string& path, int files);

}  // namespace bench
