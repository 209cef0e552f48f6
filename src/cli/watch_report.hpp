// WatchReport: what `cairn watch` says, a line an event, for people or as JSON lines for programs.
#pragma once

#include <set>
#include <string>

#include "cli/console.hpp"
#include "cli/watch_session.hpp"

namespace cairn::cli {

class WatchReport {
  public:
    WatchReport(Console& console, const WatchOptions& options) : console_(console), options_(options) {}

    void watching(const std::string& folder, const std::string& pattern, Version after);
    void captured(Version version, std::uint64_t files, std::uint64_t bytes, double capture_s);
    void committed(Version version, const CommittedFacts& facts, std::uint64_t files, double flush_s);
    void removed(Version version, std::uint64_t files);
    // Something a person should know; the same text is said once.
    void note(Version version, const std::string& text);
    void notes(const std::string& lines);  // one a line
    // A version that will not be committed, or not with all its files.
    void lost(Version version, const std::string& text);
    void ended(std::uint64_t committed);

    bool any_lost() const noexcept { return !first_lost_.empty(); }
    const std::string& first_lost() const noexcept { return first_lost_; }

  private:
    std::string label(Version version) const;

    Console& console_;
    const WatchOptions& options_;
    std::set<std::string> noted_;
    std::string first_lost_;
};

}  // namespace cairn::cli
