// Directory trees as they lie on a file system: what is in one, whether that changed, and taking one away. No link is followed, but the way to the tree itself.
#pragma once

#include <sys/stat.h>

#include <string>
#include <vector>

#include "cli/file_mark.hpp"
#include "format/tree_index.hpp"

namespace cairn::cli {

struct TreeItem {
    std::string path;  // below the tree; empty: the tree itself
    struct stat about = {};
};

// All that is in it, by path, bytewise; the first is the tree itself. not_found: there is none; of what goes away meanwhile it is io_error.
Result<std::vector<TreeItem>> list_tree(const std::string& root);
FileMark mark_of(const std::vector<TreeItem>& items);

// All that is told of a tree beside the bytes of its files. `mark`: what it was like when it was listed; a tree that is marked so once the bytes of its files were read had these all the time.
struct TreeOnDisk {
    Tree tree;
    FileMark mark;
};
Result<TreeOnDisk> read_tree(const std::string& root, const std::string& name);

// With all that is in it, also where directories may not be written. A file or a link: itself.
Status remove_tree(const std::string& root);

}  // namespace cairn::cli
