// WatchedFiles: the files of one folder that match a pattern, by version, and whether a version's files are complete
// (sc12, Section IV: the node learns of a checkpoint by inotify, without a word from the application).
//
// A file is complete when it was closed after writing or moved to its name, and, where the file system can tell (a read
// lease), no process on this node has it open for writing. A file that was there before we looked is complete when it
// is quiet and nobody has it open.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cli/watch_pattern.hpp"
#include "client/files.hpp"

namespace cairn::cli {

using WatchTime = std::chrono::steady_clock::time_point;

// What changes when a file is written, replaced or truncated.
struct FileMark {
    std::uint64_t device = 0, inode = 0, bytes = 0, mode = 0;
    std::int64_t modified_ns = 0, changed_ns = 0;
    bool operator==(const FileMark&) const = default;
    // not_found: gone; invalid_argument: no regular file.
    static Result<FileMark> of(const std::string& path);
};

// Whether a process of this node has it open for writing; `unknown` where the file system has no leases.
enum class Writers : std::uint8_t { none, some, unknown };
Writers writers_of(const std::string& path);

struct WatchedFile {
    enum class Seen : std::uint8_t { created, closed, found } seen = Seen::found;
    FileMark mark;
};

// The files of one version.
struct FileSet {
    std::map<std::string, WatchedFile> files;  // by name
    WatchTime touched;                         // last sign of writing
    WatchTime look_at;                         // not to be judged before
};

// When a version's set is complete on this node.
struct Completeness {
    std::int64_t files = -1;       // exactly so many; -1: not told
    std::uint64_t settle_ms = 0;   // and none was written for so long
    std::uint64_t found_ms = 500;  // the same, where a file was not seen closing
};

class WatchedFiles {
  public:
    // `folder` exists; what is in it is not looked at yet.
    static Result<WatchedFiles> open(const std::string& folder, FilePattern pattern, Completeness completeness);

    int descriptor() const noexcept { return inotify_.get(); }
    const std::string& folder() const noexcept { return folder_; }
    const FilePattern& pattern() const noexcept { return pattern_; }
    std::string path(const std::string& name) const { return folder_ + "/" + name; }

    Status scan();         // what is there, beside what is known
    Status read_events();  // those that wait; never blocks. Fails when the folder is gone.

    std::map<Version, FileSet>& sets() noexcept { return sets_; }
    WatchTime last_event() const noexcept { return last_event_; }

    // Judges a set: complete now? Else look_at says when to ask again. Files that are gone are dropped.
    bool complete(FileSet& set);
    bool count_told() const noexcept { return completeness_.files >= 0; }
    // Enough files, quiet or not.
    bool count_fits(const FileSet& set) const;
    std::chrono::milliseconds quiet(const FileSet& set) const;

    // Versions up to this one are no sets any more; a file of theirs that is written goes to late().
    void close_until(Version version);
    Version closed_until() const noexcept { return closed_until_; }
    struct Late {
        Version version;
        std::string name;
    };
    std::vector<Late> take_late() { return std::exchange(late_, {}); }

  private:
    WatchedFiles(std::string folder, FilePattern pattern, Completeness completeness)
        : folder_(std::move(folder)), pattern_(std::move(pattern)), completeness_(completeness) {}
    void note(const std::string& name, WatchedFile::Seen seen);
    void forget(const std::string& name);
    bool steady(const std::string& name, WatchedFile& file);

    std::string folder_;
    FilePattern pattern_;
    Completeness completeness_;
    files::Descriptor inotify_;
    std::map<Version, FileSet> sets_;
    std::vector<Late> late_;
    Version closed_until_ = 0;
    WatchTime last_event_ = std::chrono::steady_clock::now();
};

}  // namespace cairn::cli
