// Evidence: what speaks for a job being alive, or over. No clock can tell that a process of another machine is dead;
// but a job leaves a roster under persistent, which its coordinator's daemon takes away when it ends with nothing left
// to finish, and without the coordinator's images no version commits (catalog/removal.hpp, job_on_record).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "cli/place.hpp"
#include "cli/series.hpp"

namespace cairn::cli {

// Of a file or directory, in seconds since 1970 by the file system's clock: changed before that is old. Nothing there:
// not old.
bool is_old(const std::string& path, std::int64_t before_s);

class Evidence {
  public:
    // Everything under <persistent>/.cairn. What can not be listed is an error: then nothing may be removed.
    static Result<Evidence> gather(Place& place, std::int64_t before_s);

    struct Record {
        bool has_roster = false;
        bool is_young = false;  // some file of it changed lately
        std::string name;       // of the series, from the roster; "" when it can not be read
        std::vector<std::string> files;
        std::uint64_t bytes = 0;
    };
    const std::map<Id128, Record>& records() const { return records_; }
    // Below which the jobs on record put parts, besides persistent.
    const std::set<std::string>& roots() const { return roots_; }

    // Nobody publishes versions of this incarnation any more: its roster is gone, or declared so by dismiss().
    bool over(Id128 incarnation) const;
    void dismiss(Id128 incarnation) { dismissed_.insert(incarnation); }
    bool dismissed(Id128 incarnation) const { return dismissed_.count(incarnation) != 0; }
    // A daemon of this host that answers (or does not say no) has taken part in this job. Of an incarnation whose
    // second half is not known (0), any with the same first half.
    bool served_here(Id128 incarnation);
    // The whole of an incarnation of which parts tell only the first half.
    std::optional<Id128> whole_id(std::uint64_t half) const;

  private:
    explicit Evidence(Place& place) : place_(&place) {}

    Place* place_;
    std::map<Id128, Record> records_;
    std::set<std::string> roots_;
    std::set<Id128> dismissed_;
    std::map<std::string, bool> answers_;  // by daemon's directory
};

}  // namespace cairn::cli
