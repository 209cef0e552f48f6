// WatchedFiles: the files of one folder that match a pattern, by version, and whether a version's files are complete
// (sc12, Section IV: the node learns of a checkpoint by inotify, without a word from the application).
//
// A file is complete when it was closed after writing or moved to its name, and, where the file system can tell (a read
// lease), no process on this node has it open for writing. A file that was there before we looked is complete when it
// is quiet and nobody has it open.
//
// A directory tree counts as one file, and is as complete as all that is in it. Nobody can tell by looking when another file comes into it, so that it is there was said: it was moved to its
// name, or its last file (--last-file) was closed, or it was there before we looked, or the end was told.
//
// What is written later must show. A file system stamps by a clock that ticks: a file that is written again within the
// tick of its last stamp, and keeps its size, looks as before. So a file is complete only once its stamp has been seen
// to stand for longer than a tick; from then on every write gets another one.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/file_mark.hpp"
#include "cli/watch_pattern.hpp"
#include "client/files.hpp"

namespace cairn::cli {

using WatchTime = std::chrono::steady_clock::time_point;

struct WatchedFile {
    enum class Seen : std::uint8_t { created, closed, found } seen = Seen::found;
    FileMark mark;
    WatchTime marked;  // when this mark had been seen first
};

// The files of one version.
struct FileSet {
    std::map<std::string, WatchedFile> files;  // by name
    WatchTime touched;                         // last sign of writing
    WatchTime look_at;                         // not to be judged before
    std::string obstacle;                      // the file that keeps it from being complete, and why; empty: none known
    std::optional<WatchTime> complete_since;
    bool told = false;  // that it stands still
};

// When a version's set is complete on this node.
struct Completeness {
    std::int64_t files = -1;       // exactly so many; -1: not told
    std::uint64_t settle_ms = 0;   // and none was written for so long
    std::uint64_t found_ms = 500;  // the same, where a file was not seen closing
    std::string last_file = {};    // what a tree has once it is complete, in its own directory; empty: not told
    // Tests: stamps are cut to such a tick, as a file system with a coarse clock would. 0: they are what they are.
    std::chrono::nanoseconds tick{0};
};

class WatchedFiles {
  public:
    // `folder` exists; what is in it is not looked at yet.
    static Result<WatchedFiles> open(const std::string& folder, FilePattern pattern, Completeness completeness);

    int descriptor() const noexcept { return inotify_.get(); }
    const std::string& folder() const noexcept { return folder_; }
    const FilePattern& pattern() const noexcept { return pattern_; }
    std::string path(const std::string& name) const { return folder_ + "/" + name; }
    Result<FileMark> mark(const std::string& name) const;

    Status scan();         // what is there, beside what is known
    Status read_events();  // those that wait; never blocks. Fails when the folder is gone.

    std::map<Version, FileSet>& sets() noexcept { return sets_; }
    WatchTime last_event() const noexcept { return last_event_; }

    // Judges a set: complete now? Else look_at says when to ask again, and obstacle what is in the way. Files that are
    // gone are dropped.
    bool complete(FileSet& set);
    // Its files, and why it is not complete.
    std::string what_is_missing(const FileSet& set) const;
    // Nobody writes any more: trees that are being filled are as they will be, and complete when they are quiet.
    void tell_end();
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
    // Links that lead nowhere. They are no files of their version.
    std::vector<Late> take_dangling() { return std::exchange(dangling_, {}); }

  private:
    WatchedFiles(std::string folder, FilePattern pattern, Completeness completeness)
        : folder_(std::move(folder)), pattern_(std::move(pattern)), completeness_(completeness) {}
    void note(const std::string& name, WatchedFile::Seen seen);
    void forget(const std::string& name);
    void drop_gone(FileSet& set);
    void look_at_marks(FileSet& set);
    void look_at_writers(FileSet& set) const;
    void look_at_writers(FileSet& set, const std::string& name, const WatchedFile& file) const;
    std::string still_filled(const std::string& name, const WatchedFile& file) const;
    bool has_last_file(const std::string& name) const;
    void watch_last_file(const std::string& name, WatchedFile& file);
    void stop_watching(Version until);
    WatchTime settled_at(const WatchedFile& file) const;

    std::string folder_;
    FilePattern pattern_;
    Completeness completeness_;
    files::Descriptor inotify_;
    int folder_watch_ = -1;
    std::map<int, std::string> tree_watches_;  // directories in which a last file will be closed
    bool ending_ = false;
    std::map<Version, FileSet> sets_;
    std::vector<Late> late_, dangling_;
    Version closed_until_ = 0;
    WatchTime last_event_ = std::chrono::steady_clock::now();
};

}  // namespace cairn::cli
