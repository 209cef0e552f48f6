// WatchLoop: one watcher at work: complete sets are captured in increasing order, commits are told, originals removed,
// until it is to end. One thread: a capture that waits for room in scratch keeps the rest waiting, and the kernel
// queues what happens meanwhile.
#pragma once

#include <set>
#include <string>

#include "cli/watch_command.hpp"
#include "cli/watch_report.hpp"

namespace cairn::cli {

struct WatchRules {
    bool no_files = false;                   // --files 0: versions are learned from the board
    std::uint64_t keep_originals = 0;        // of the newest so many committed versions; 0: all
    Version until_commit_of = 0;             // 0: no such end
    std::chrono::milliseconds idle_exit{0};  // 0: no such end
    bool once = false;
    std::chrono::milliseconds stop_wait{0};  // how long it may finish once it was told to stop
    std::chrono::milliseconds once_wait{0};  // the same with --once, and after the command
    std::chrono::milliseconds older_wait{0};  // how long a version that is being written may hold up a complete newer one
};

class WatchLoop {
  public:
    WatchLoop(WatchSession& session, WatchedFiles& watched, WatchBoard& board, WatchReport& report, WatchRules rules,
              std::uint32_t index)
        : session_(session), watched_(watched), board_(board), report_(report), rules_(rules), index_(index) {}

    // Until a signal (`stop_descriptor` gives "s"), the end of the command ("c": one of our processes has ended) or a rule ends it,
    // and what was captured is committed or given up. `scan`: files that are there already are taken, too.
    Status run(Version after, bool scan, int stop_descriptor, WatchedCommand& command);

  private:
    struct Taken {
        std::map<std::string, WatchedFile> files;
        WatchTime captured_at;
        bool committed = false;
        bool earlier = false;  // captured by an earlier session
        int asked = 0;         // how often others were asked for it, since they have not captured it
        std::set<std::string> told;  // what came of that, each once: a daemon that did not answer may know more the next time
    };

    Status step();
    void look_at_signals(int stop_descriptor, WatchedCommand& command);
    Status capture_ready();
    bool held_up(const FileSet& older, Version version, const FileSet& complete);
    void tell_standing();
    Status capture(Version version, FileSet set);
    Status capture_failed(Version version, FileSet& set, const Status& status);
    Status capture_announced();
    void skip_older(Version version, const FileSet& set);
    void look_at_commits();
    void tell_of_others(Version version, Taken& taken);
    void commit_seen(Version version, Taken& taken);
    void look_at_late();
    void look_at_left_out();
    std::string late_advice(bool held) const;
    void remove_originals();
    bool may_still_complete() const;
    bool pending() const;
    void look_for_end();
    // `is_written`: nobody is left who writes, so what is there is all there will be.
    void finish_within(std::chrono::milliseconds wait, bool is_written = true);
    bool finished();
    std::chrono::milliseconds next_look() const;

    WatchSession& session_;
    WatchedFiles& watched_;
    WatchBoard& board_;
    WatchReport& report_;
    WatchRules rules_;
    std::uint32_t index_;
    std::map<Version, Taken> taken_;
    std::uint64_t committed_ = 0;
    Version newest_committed_ = 0;
    std::size_t files_before_ = 0;  // of the version captured last
    bool finishing_ = false;
    WatchTime finishing_since_, finish_by_, next_board_;
    std::optional<WatchTime> command_by_;  // it was told to end by then
};

}  // namespace cairn::cli
