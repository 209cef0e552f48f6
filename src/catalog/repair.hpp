// Repair of a series' lineage: what can not be read is written anew from what manifests, images and rosters tell of it, and else, when that is asked for,
// put aside under a name that nobody reads. World only.
//
// Safe beside running jobs: a record takes the damaged one's place in one step and says what its job says of itself; an epoch stays taken whatever is put
// aside (format/names, parse_epoch_taken). Who is killed in between leaves the damaged record, or the new one.
#pragma once

#include <string>
#include <vector>

#include "catalog/lineage.hpp"

namespace cairn {

struct Repair {
    struct Done {
        std::string path, how;
    };
    std::vector<Done> done;
    std::vector<Status> left;  // what is damaged still, each with what could be done
};

struct RepairOptions {
    bool forget = false;     // goes on without what nothing tells, or what can not be read at all
    bool only_look = false;  // `done` is what would be
    Nanos io_wait = 60 * second;
};

// `sealed`: what scratch tells. An error: the series could not be looked at, or something could not be written.
Task<Result<Repair>> repair_lineage(World& world, Layout layout, std::string name, std::vector<SealedVersion> sealed, RepairOptions options);

}  // namespace cairn
