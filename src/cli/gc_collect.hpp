// What `cairn gc` would take from one series, and what it spares although nobody may want it, each with its reason.
// Only looks.
#pragma once

#include <string>
#include <vector>

#include "cli/gc_evidence.hpp"
#include "catalog/gc_rules.hpp"

namespace cairn::cli {

struct Leftover {
    enum class Kind : std::uint8_t {
        version,    // committed: a tombstone takes its manifest's place, then its files go
        give_up,    // without a manifest: a tombstone is published, then its files go
        tombstone,  // it stands: what else is there goes, and with Fence::lift itself
        files,      // names that nothing looks at, in `directory`, and the directory if it is empty then
    };
    Kind kind = Kind::files;
    VersionKey key;  // version 0: of no version
    std::string why;
    std::uint64_t bytes = 0;
    Fence fence = Fence::keep;
    Manifest tombstone;  // version, give_up, tombstone
    std::string directory;
    std::vector<std::string> files;
    std::int64_t before_s = 0;  // not 0: files that somebody may take up again under the same name; looked at once more before they go
};

struct Collected {
    std::vector<Leftover> take;  // in an order to keep: a job's record goes before what it guards
    std::vector<Leftover> spare;
};

struct CollectOptions {
    std::int64_t before_s = 0;  // what changed before that, by the file system's clock, is old
    // The same for where ranks meet: besides, no call that could be under way has so long a deadline.
    std::int64_t meeting_before_s = 0;
    bool other_lineages = false;
    bool unknown = false;
};

Collected collect(Place& place, const Series& series, Evidence& evidence, const CollectOptions& options);
// What belongs to no series: records of jobs whose series is not there any more (`names` are those that are), and
// temporary files of persistent itself.
Collected collect_others(Place& place, Evidence& evidence, const std::vector<std::string>& names,
                         const CollectOptions& options);
// What ranks without MPI left where they met (client/rendezvous.hpp), when they were killed: taken when it is old and the incarnation that
// it names is over, which a job that lives is not, however long it calls nothing.
Collected collect_meetings(Place& place, Evidence& evidence, const CollectOptions& options);

// The rule of the same name (catalog/gc_rules.hpp), of what was found.
bool fence_can_go(const Series& series, const Seen& seen, const Evidence& evidence,
                  const std::vector<const Seen*>& gone);

// After something was removed; what stands in the reserve's place and is none is named.
void fill_reserve(Place& place, Console& console, const char* command);

// What removals put aside in a directory, because it was a full directory in a file's place, is named: nobody else looks for it.
void tell_put_aside(Place& place, Console& console, const char* command, const std::string& directory);

}  // namespace cairn::cli
