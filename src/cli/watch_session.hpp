// WatchSession: one watcher's session of libcairn, through the C interface that applications use. Files become routed
// regions of this watcher's image; beside them lies the region "watch", a text that says what the files were.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cairn/cairn.h"
#include "cli/watch_files.hpp"
#include "catalog/layout.hpp"

namespace cairn::cli {

struct WatchOptions {
    std::string name, job;
    std::uint32_t index = 0, watchers = 1;
    std::vector<std::string> overrides;  // "section.key=value"
    std::string persistent;              // absolute
};

// Where the series goes on: after its newest version, after one named, or not at all.
struct ContinueFrom {
    enum class Where : std::uint8_t { newest, version, none } where = Where::newest;
    Version version = 0;
    static Result<ContinueFrom> parse(const std::string& text);
};

// What a committed version is as a whole.
struct CommittedFacts {
    std::uint64_t images = 0, image_bytes = 0, parts = 0, stored_bytes = 0;
};

class WatchSession {
  public:
    // Collective over the watchers.
    static Result<WatchSession> open(WatchOptions options);
    WatchSession(WatchSession&& other) noexcept
        : options_(std::move(other.options_)), handle_(std::exchange(other.handle_, nullptr)) {}
    WatchSession& operator=(WatchSession&&) = delete;
    // Waits for no other watcher: each ends when it is told to, and what is captured is the daemons'. cairn_close would wait for one that was killed.
    ~WatchSession();
    const std::string& name() const noexcept { return options_.name; }

    // Collective. The version from which the series goes on; 0: it begins.
    Result<Version> continue_from(const ContinueFrom& from);
    std::string warnings() const;

    // Captures these files as this watcher's image. nothing: a file changed meanwhile, and nothing of the version is
    // kept.
    Result<std::optional<std::uint64_t>> capture(Version version, const WatchedFiles& watched,
                                                 const std::map<std::string, WatchedFile>& files);
    Status committed(Version version);  // ok, deadline (not yet), or why not
    Status captured_by_all(Version version);  // the same; names one that has not
    Status cancel(Version version);

    // The newest manifest of a committed version; not_found when there is none.
    Result<CommittedFacts> facts(Version version) const;

  private:
    explicit WatchSession(WatchOptions options) : options_(std::move(options)) {}
    Status status(int code) const;

    WatchOptions options_;
    cairn_session* handle_ = nullptr;
};

// How watchers without files (--files 0) learn of versions: the others leave a file for each,
// <persistent>/.cairn/watch/<job>/<version>.
class WatchBoard {
  public:
    WatchBoard(const std::string& persistent, const std::string& job);
    Status clear();  // watcher 0, before the session opens: nothing of an earlier run is seen after that
    Status announce(Version version);
    Result<std::vector<Version>> announced() const;  // in order
    void retract(Version version);

  private:
    std::string folder_;
};

}  // namespace cairn::cli
