// TreeOutput: a directory tree that appears whole or not at all: made under another name beside its own, then renamed.
//
// What an index says is done by its letters and nowhere but below the new directory: every name is made in a directory that is opened component by component and is no link; what is there
// already is not opened. Order: directories; files, and their bytes as they come; FIFOs, sockets, devices; links, of which nothing is made behind; owners, attributes, modes and times,
// of directories last and from below.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "client/files.hpp"
#include "format/tree_index.hpp"

namespace cairn::cli {

class TreeOutput {
  public:
    // folder/<the tree's name>; makes missing directories above it. already_exists unless `replace`. The index is a valid one.
    // `open_max`: files that are open at a time.
    static Result<std::unique_ptr<TreeOutput>> create(const std::string& folder, Tree tree, bool replace, std::size_t open_max = 256);
    TreeOutput(const TreeOutput&) = delete;
    ~TreeOutput();  // without commit(): nothing is left

    // Bytes of an entry that is a file, in any order. Where the index says that it had a hole, zeros are left out.
    Status write_at(std::size_t entry, std::uint64_t offset, ByteView bytes);
    Status commit();

    // What this user or file system could not have, a sentence each.
    std::vector<std::string> not_restored() const;

  private:
    TreeOutput(std::string folder, Tree tree, bool replace, std::size_t open_max) : folder_(std::move(folder)), tree_(std::move(tree)), replace_(replace), open_max_(open_max) {}
    struct Missing {
        std::uint64_t entries = 0;
        std::string first, why;
    };
    Status begin();
    Status failed(const TreeEntry& entry, const char* what) const;
    // The directory that an entry lies in, and its name there. Of the tree itself: its own, and ".".
    Result<int> directory_of(const TreeEntry& entry);
    static std::string leaf_of(const TreeEntry& entry) { return entry.path.empty() ? "." : entry.path.substr(entry.path.rfind('/') + 1); }
    Result<int> file_of(std::size_t entry);
    Status finish_file(std::size_t entry);
    Status make_special(const TreeEntry& entry);
    Status make_link(const TreeEntry& entry);
    Status describe(const TreeEntry& entry);
    Status set_attributes(const TreeEntry& entry, int directory);
    Status publish();
    void miss(Missing& missing, const TreeEntry& entry, int error);

    std::string folder_;
    Tree tree_;
    bool replace_;
    std::size_t open_max_;
    std::string temporary_;
    files::Descriptor root_, directory_;
    std::string directory_path_;  // of directory_
    std::map<std::size_t, files::Descriptor> open_;
    std::deque<std::size_t> opened_;  // those first that were opened first
    std::vector<bool> made_;          // files that are there
    Missing owners_, attributes_, nodes_;
};

}  // namespace cairn::cli
