// The tree index: what the directory trees of an image are, beside the bytes of their files, which are routed files like any other. It is what the region
// "watch.trees" holds. What it says is done to a file system by whoever restores it, so nothing in it can name a place outside its tree.
//
// Order of entries: by path, bytewise, so that a directory comes before all that is in it. The first is the tree itself.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"
#include "model/types.hpp"

namespace cairn {

inline constexpr const char* tree_index_region = "watch.trees";
inline constexpr std::uint32_t tree_path_bytes_max = 4095;        // of a path, and of what a symbolic link leads to: PATH_MAX
inline constexpr std::uint32_t attribute_name_bytes_max = 255;    // XATTR_NAME_MAX
inline constexpr std::uint32_t attribute_value_bytes_max = 65536;  // XATTR_SIZE_MAX

enum class TreeEntryKind : std::uint8_t { directory, file, hard_link, symbolic_link, fifo, socket, character_device, block_device };

struct TreeTime {
    std::int64_t seconds = 0;  // since 1970
    std::uint32_t nanoseconds = 0;
    bool operator==(const TreeTime&) const = default;
};

struct TreeHole {
    std::uint64_t offset = 0, length = 0;
    bool operator==(const TreeHole&) const = default;
};

struct TreeAttribute {
    std::string name, value;
    bool operator==(const TreeAttribute&) const = default;
};

struct TreeEntry {
    std::string path;  // below the tree, its components separated by '/'; bytes. Empty: the tree itself
    TreeEntryKind kind = TreeEntryKind::directory;
    std::uint32_t mode = 0;  // 07777 at most
    std::uint32_t uid = 0, gid = 0;
    TreeTime modified, accessed;
    std::uint64_t bytes = 0;          // of a file
    std::string region = {};          // whose bytes are the file's; empty: tree_region_name() says it. A file without bytes has none
    std::vector<TreeHole> holes = {};  // of a file: increasing, apart
    std::string target = {};          // of a symbolic link
    std::uint64_t link = 0;           // a hard link: the entry, an earlier one, whose other name it is. Nothing else of it counts
    std::uint32_t major = 0, minor = 0;              // of a device
    std::vector<TreeAttribute> attributes = {};      // extended ones, by name
    bool operator==(const TreeEntry&) const = default;
};

struct Tree {
    std::string name;  // of the tree's directory: one component, and a valid region name
    std::vector<TreeEntry> entries;
    bool operator==(const Tree&) const = default;
};

// The region of a file of a tree.
std::string tree_region_name(const Tree& tree, const TreeEntry& file);

Status check_trees(const std::vector<Tree>& trees);
Bytes encode_tree_index(const std::vector<Tree>& trees);
Result<std::vector<Tree>> decode_tree_index(ByteView bytes);

}  // namespace cairn
