// Detecting targets: what a file system says of those among which its user can choose. Asked now and then, off the loop; what is found is a plain value
// (targets.hpp), with which the driver of persistent (driver.hpp) makes files.
//
// A new file system whose targets are chosen by the name a file is made with: a function here, in a file of its own. Where it takes a call: a ParallelFileSystem. Both have a name in the settings
// (placement.driver).
#pragma once

#include <string>
#include <vector>

#include "base/config.hpp"
#include "storage/parallel_file_system.hpp"
#include "storage/targets.hpp"

namespace cairn {

// The targets by the settings: of the file system that is named, or of the one that it is; `only` these (none: all).
// automatic: a file system that is not known here has no targets, and that is no error unless some are named.
// Blocks like detect_glusterfs_targets().
Result<PlacementTargets> detect_targets(Settings::TargetsDriver driver, const std::vector<std::string>& only,
                                        const std::string& directory, Outside& outside = this_machine());

// Of that directory by the setting, else by statfs(2): plain where it is none of them, or GlusterFS. Blocks likewise.
Result<const ParallelFileSystem*> file_system_at(Settings::TargetsDriver driver, const std::string& directory);

// The targets among which a file made in or below `directory` can be placed: two or more. The directory need not be
// there yet. Only what is sure: else it says so and why.
//   unsupported   the directory is not on this file system
//   unavailable   it is, but here no target can be chosen
//   others        it could not be asked
// Blocks, for ever where the file system hangs: call it off the loop, with a deadline.
Result<PlacementTargets> detect_glusterfs_targets(const std::string& directory);

// The directory, or the nearest one above it that is there. Absolute.
Result<std::string> existing_directory(std::string path);

}  // namespace cairn
