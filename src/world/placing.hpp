// Placing: where a new file shall lie, on a file system that is told so by a call and not by the file's name. A plain value, which travels with OpenOptions: the real
// world has a Placer, which makes the call (storage/placer.hpp), and the simulated one does as it is told.
//
// Nobody's file fails because it could not be placed: then it lies where the file system puts it, and File::is_placed() says so.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "world/clock.hpp"

namespace cairn {

struct Placing {
    std::string by;                    // whose call it takes, as placement.driver names it; empty: the file is not placed
    std::vector<std::string> targets;  // its stripes go round these, in this order; none: any
    std::uint32_t stripes = 0;         // 0: as many as there are targets, or as the file system has it
    std::uint64_t stripe_bytes = 0;    // on one target before the next; 0: as the file system has it
    bool operator==(const Placing&) const = default;
};

struct TargetRoom {
    std::string name;
    std::uint64_t free_bytes = 0;
    bool operator==(const TargetRoom&) const = default;
};

// Blocks, and is called from several threads.
class Placer {
  public:
    virtual ~Placer() = default;
    // Makes the new, empty file `path`, so that it lies as asked. Any error means that it does not; an empty file may be left, of that name.
    // Takes no longer than `limit`, as far as that is in its hands.
    virtual Status make(const std::string& path, std::uint32_t permissions, const Placing& placing, Nanos limit) = 0;
    // What the targets of that directory's file system still take. unsupported: it does not say.
    virtual Result<std::vector<TargetRoom>> rooms(const std::string& directory, const std::string& by, Nanos limit) = 0;
};

}  // namespace cairn
