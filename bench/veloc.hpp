// VELOC's way to checkpoint, replayed without VELOC: what its client does while the application waits, then what one worker of its active backend does.
#pragma once

#include <string>

#include "plain.hpp"

namespace bench {

struct VelocTimes {
    double copy_s = 0;   // the application waits: every rank writes its image into a file of its own in scratch
    double flush_s = 0;  // from then on, until the last of these files is copied and durable
};

// Collective. Leaves nothing in scratch, nor in the directory of `plain`.
VelocTimes as_veloc_does(const PlainFiles& plain, const std::string& scratch);

}  // namespace bench
