// Drivers: one file system's way of letting its user choose where a file lies. The seam for more of them.
//
// A new file system: a class here that finds the targets, its name in the settings (placement.driver), and, where a
// target is chosen otherwise than by the name a file is made with, what PlacementTargets needs for that.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "storage/targets.hpp"

namespace cairn {

class PlacementDriver {
  public:
    virtual ~PlacementDriver() = default;
    // The targets among which a file made in or below `directory` can be placed: two or more. The directory need not be
    // there yet. Only what is sure: a driver that does not know says so and why.
    //   unsupported   the directory is not on this file system
    //   unavailable   it is, but here no target can be chosen
    //   others        it could not be asked
    // Blocks, for ever where the file system hangs: call it off the loop, with a deadline.
    virtual Result<PlacementTargets> find(const std::string& directory) const = 0;
};

std::unique_ptr<PlacementDriver> glusterfs_driver();

// The targets by the settings: the driver that is named, or the one whose file system it is; `only` these (none: all).
// automatic: a file system that no driver knows has no targets, and that is no error unless some are named.
// Blocks like find().
Result<PlacementTargets> find_targets(Settings::TargetsDriver driver, const std::vector<std::string>& only,
                                      const std::string& directory);

// The directory, or the nearest one above it that is there. Absolute.
Result<std::string> existing_directory(std::string path);

}  // namespace cairn
