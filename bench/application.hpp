// The application of the race: it sleeps where it would compute (all but what a machine with few cores can bear), exchanges data with its neighbours over the nodes' cards after each step, and
// checkpoints every so many steps. What is measured is how long it runs.
#pragma once

#include <string>
#include <vector>

#include "image.hpp"
#include "plain.hpp"
#include "session.hpp"
#include "team.hpp"

namespace bench {

struct ApplicationPlan {
    // none: no checkpoints. cairn. file_per_rank: in the background, from a copy, as VELOC does. collective: MPI-IO, the application waits.
    std::string checkpoints = "none";
    int steps = 60;
    int step_ms = 800;                       // asleep
    std::uint64_t work_bytes = 0;            // of memory that a rank goes through before that: processors and memory that the background may want, too
    std::uint64_t message_bytes = 4u << 20;  // of a rank to each of two neighbours, a step
    int every = 60;                          // steps; the first of them begins with a checkpoint
    int files = 1;                           // of collective
    std::uint64_t version = 1;               // of Cairn's first
    int distance = 1;                        // ranks: so far are the neighbours, that they are on other nodes
};

struct ApplicationTimes {
    double run_s = 0;                 // first begin to last end; what the background still does then is not in it
    double communicate_s = 0;         // of all steps; the mean over ranks
    std::vector<double> exchanges_s;  // the same, step by step
    double compute_s = 0;             // all steps' work; the mean over ranks
    double blocked_s = 0;             // in all checkpoints; the longest of all ranks
    double finish_s = 0;              // until the last checkpoint is durable, after the end
    int checkpoints = 0;
};

// Collective. `copy` is as large as the image.
ApplicationTimes run_application(const ApplicationPlan& plan, const Team& team, Image& image, const WarmMemory& copy, const PlainFiles& plain,
                                 CairnSession& cairn);

}  // namespace bench
