// BeeGFS: a file is made with its targets by the command `beegfs` (since version 8) or `beegfs-ctl` (before), which is for root alone: for anybody else files lie as their directory has it, which
// `cairn layout` and the log say. A target is a storage target, by its ID.
//
// Manuals: `beegfs-ctl --createfile --help`, `beegfs-ctl --listtargets --help`; `beegfs entry create file --help`, `beegfs target list --help`; "Striping" and "Target states" in BeeGFS's documentation.
#pragma once

#include "storage/parallel_file_system.hpp"

namespace cairn {

enum class BeegfsTool : std::uint8_t { beegfs, beegfs_ctl };

struct BeegfsTarget {
    TargetRoom room;
    bool takes_files = true;  // online and good
    bool operator==(const BeegfsTarget&) const = default;
};
// Of the storage servers of the file system that is mounted at, or above, this directory.
Words beegfs_list_words(BeegfsTool tool, const std::string& directory);
Result<std::vector<BeegfsTarget>> targets_of_beegfs_list(BeegfsTool tool, std::string_view printed);

struct BeegfsOwner {
    std::uint32_t user = 0, group = 0;
};
// A chunk is a power of two of at least 64 KiB.
Words beegfs_create_words(BeegfsTool tool, const std::string& path, std::uint32_t permissions, BeegfsOwner owner, const Placing& placing);

// What `beegfs-ctl --getentryinfo`, or `beegfs entry info --retro`, prints of a file: the IDs of its targets.
std::vector<std::string> targets_of_entry_info(std::string_view printed);

}  // namespace cairn
