// Which file system a directory lies on, as the kernel names it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.hpp"

namespace cairn {

struct MountInfo {
    std::string type;   // "fuse.glusterfs"
    std::string point;  // where it is mounted; of the file system's root, where that is mounted at all
    bool operator==(const MountInfo&) const = default;
};
// The mount of the device major:minor, from the text of /proc/self/mountinfo. Asking by device needs no comparison of paths,
// which links and mounts upon mounts would make a guess.
std::optional<MountInfo> mount_of_device(std::string_view mountinfo, unsigned major, unsigned minor);

// Of a directory that is there. Blocks where its file system hangs.
Result<MountInfo> mount_of(const std::string& directory);

}  // namespace cairn
